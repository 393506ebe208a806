"""What an arena decides: by the first drafts and the judge's choice, or by the last vote, and what the debate has changed."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.arena import V1
from parley.orchestrator.formats.arena.outcome import decision_lines
from parley.runtime.agent_names import Names
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import DUTY_CRITIC, DUTY_VOTER, AgentDuties, ArenaOutcome, TeamSettings
from parley.v1.convergence_pb2 import GroupPositionsRequest, GroupPositionsResponse, PositionGroup, UnsurePair
from parley.v1.event_pb2 import Warned
from parley.v1.ratings_pb2 import Rating
from parley.v1.voting_pb2 import (
    JUDGE_STANDING_RECORD,
    JUDGE_STANDING_STRONGER,
    JUDGE_STANDING_TIES_ONLY,
    VOTE_BALLOTS_FIRST_DRAFTS,
    VOTE_BALLOTS_LAST_VOTE,
    VOTING_METHOD_MAJORITY,
    JudgeStanding,
    PositionSupport,
    VotingSettings,
)
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec, run_arena
from tests.support.debate_logs import outcome_of
from tests.support.orchestration import agent, backstage
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.scripted_services import unsure_until_settled

LAST = VOTE_BALLOTS_LAST_VOTE
RED_THEN_ALL_RED = {"ada": "red", "bo": "blue", "cy": "blue"}, dict.fromkeys(("ada", "bo", "cy"), "red")
STRONGER = agent("judge", "judge", stronger=True)


def make_gateway_of_positions(
    first: Mapping[str, str], last: Mapping[str, str], script: ArenaScript, *, certain: bool = True
) -> ScriptedGateway:
    """Agents whose first drafts and whose later texts take these positions, by agent."""
    gateway = script.gateway()
    named: dict[str, str] = {}

    def group_by(request: GroupPositionsRequest) -> GroupPositionsResponse:
        taken: dict[str, list[str]] = {}
        for stand in request.positions:
            is_draft = "round/1/propose" in stand.position + stand.text
            position = named.get(stand.agent_id) or (first if is_draft else last)[stand.agent_id]
            taken.setdefault(position, []).append(stand.agent_id)
        for number, position in enumerate(taken, start=1):
            named.setdefault(f"first/{number}", position)
        groups = [PositionGroup(agent_ids=sorted(who), position=what) for what, who in taken.items()]
        return GroupPositionsResponse(groups=groups, certain=certain)

    gateway.group_by = group_by
    return gateway


async def hold_debate(
    folder: Path, gateway: ScriptedGateway, agents: int = 3, judge: Agent | None = None, **settings: object
) -> ArenaOutcome:
    rounds = arena_settings(revision_rounds=1, **settings)
    spec = arena_spec(agents, rounds, **({"judge": judge} if judge else {}))
    async with backstage(folder, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(spec)
        return outcome_of(await stage.comes_to(debate, "COMPLETED")).arena


async def test_first_drafts_and_the_judge_decide_and_it_is_told_what_the_debate_has_changed(
    tmp_path: Path,
) -> None:
    gateway = make_gateway_of_positions(*RED_THEN_ALL_RED, ArenaScript(choice="ada", holds="blue"))
    gateway.weights = {"ada": 1.5, "bo": 1.0, "cy": 0.5}
    gateway.ratings = {"judge": Rating(agent_id="judge", judged_answers=36, right_answers=28)}
    events = await run_arena(tmp_path, gateway, arena_settings(revision_rounds=1))
    arena = outcome_of(events).arena
    decision = arena.decision
    assert (decision.ballots, decision.judge_ballot.agent_id) == (VOTE_BALLOTS_FIRST_DRAFTS, "judge")
    assert [(each.agent_id, each.choice_agent_id, each.weight) for each in decision.count.ballots] == [
        ("ada", "ada", 1.5),
        ("bo", "bo", 1.0),
        ("cy", "cy", 0.5),
        ("judge", "bo", 1.0),
    ]
    assert arena.winner_agent_id == decision.count.winner_agent_id == "bo"
    assert arena.votes[0].winner_agent_id == "ada", "the vote is held and shown as ever"
    assert list(decision.positions) == [
        PositionSupport(position="blue", first_agent_ids=["bo", "cy"], share=0.625),
        PositionSupport(
            position="red", first_agent_ids=["ada"], last_agent_ids=["ada", "bo", "cy"], share=0.375
        ),
    ]
    assert (decision.core_agent_id, decision.core_is_first_draft) == ("bo", True)
    prompt = gateway.asked("synthesis").prompt
    assert "First proposal of agent B (quotation" in prompt
    assert "Its core is the first proposal of agent B" in prompt
    assert "How the last vote went, which did not decide (quotation" in prompt
    (match,) = gateway.matches
    assert [(each.agent_id, each.right, each.HasField("confidence")) for each in match.answers] == [
        ("ada", False, True),
        ("bo", True, False),
        ("cy", True, False),
    ], "what is judged is what decides; who has changed its mind has not said how sure it was"
    report = render_report(fold(events), V1)
    assert "the last vote would have decided otherwise: red" in report
    assert "answer is written around the first draft of Bo" in report
    assert "Vote, which did not decide" in report


async def test_a_final_proposal_that_still_takes_the_position_is_the_core(tmp_path: Path) -> None:
    first = {"ada": "red", "bo": "blue", "cy": "blue"}
    gateway = make_gateway_of_positions(first, first | {"bo": "red"}, ArenaScript(choice="cy", holds="blue"))
    decision = (await hold_debate(tmp_path, gateway)).decision
    assert (decision.core_agent_id, decision.core_is_first_draft) == ("cy", False)
    assert [list(each.last_agent_ids) for each in decision.positions] == [["cy"], ["ada", "bo"]]
    assert "The proposal of agent C is its core." in gateway.asked("synthesis").prompt


@pytest.mark.parametrize(("holds", "winner"), [("red", "ada"), ("blue", "bo"), ("", "")])
async def test_the_judge_breaks_a_tie_and_one_that_holds_nothing_right_leaves_it(
    holds: str, winner: str, tmp_path: Path
) -> None:
    first = {"ada": "red", "bo": "blue"}
    gateway = make_gateway_of_positions(first, first, ArenaScript(choice="ada", holds=holds))
    arena = await hold_debate(tmp_path, gateway, agents=2)
    assert arena.decision.count.tied_agent_ids == ["ada", "bo"]
    assert arena.decision.core_agent_id == (winner or "ada"), "the last vote went to ada"
    assert arena.decision.judge_ballot.agent_id == ("judge" if holds else "")
    told = "\n".join(decision_lines(arena.decision, arena.votes[-1], Names((), Agent())))
    assert ("one of them stands, since the judge chose it" in told) == bool(winner)
    assert ("which broke the tie" in gateway.asked("synthesis").prompt) == bool(winner)


JUDGED = {"judge": Rating(agent_id="judge", judged_answers=60, right_answers=54)}
BAD = {"judge": Rating(agent_id="judge", judged_answers=60, right_answers=20)}


@pytest.mark.parametrize(
    ("judge", "ratings", "standing", "winner"),
    [
        (agent("judge", "judge"), {}, JUDGE_STANDING_TIES_ONLY, "bo"),
        (agent("judge", "judge"), BAD, JUDGE_STANDING_TIES_ONLY, "bo"),
        (agent("judge", "judge"), JUDGED, JUDGE_STANDING_RECORD, "ada"),
        (STRONGER, {}, JUDGE_STANDING_STRONGER, "ada"),
    ],
)
@pytest.mark.parametrize("certain", [True, False])
async def test_a_judge_overrules_two_of_three_only_if_it_was_often_right_or_is_called_stronger(
    judge: Agent,
    ratings: dict[str, Rating],
    standing: JudgeStanding.ValueType,
    winner: str,
    certain: bool,
    tmp_path: Path,
) -> None:
    """`certain`: whether drafts decide; else the last vote does, and the proposal that the judge scored best is its choice."""
    first = {"ada": "red", "bo": "blue", "cy": "blue"}
    gateway = make_gateway_of_positions(first, first, ArenaScript(choice="bo", holds="red"), certain=certain)
    gateway.ratings = ratings
    decision = (await hold_debate(tmp_path, gateway, judge=judge)).decision
    assert (decision.judge_standing, decision.judge_ballot.choice_agent_id) == (standing, "ada")
    if certain:
        assert decision.core_agent_id == winner
    voted = "judge" in {each.agent_id for each in decision.count.ballots}
    assert voted == (standing != JUDGE_STANDING_TIES_ONLY) == (decision.judge_ballot.weight > 0)
    told = "\n".join(decision_lines(decision, None, Names((), Agent())))
    assert ("it breaks ties and overrules nobody" in told) == (not voted)


@pytest.mark.usefixtures("short_restarts")
async def test_where_ratings_are_away_a_judge_breaks_ties_and_a_stronger_one_has_its_weight(
    tmp_path: Path,
) -> None:
    first = {"ada": "red", "bo": "blue", "cy": "blue"}
    for judge, core in ((agent("judge", "judge"), "bo"), (STRONGER, "ada")):
        gateway = make_gateway_of_positions(first, first, ArenaScript(choice="bo", holds="red"))
        gateway.weights = None
        assert (
            await hold_debate(tmp_path / judge.id / core, gateway, judge=judge)
        ).decision.core_agent_id == core


@pytest.mark.parametrize("choice", ["ada", "bo"])
async def test_of_tied_positions_that_no_judge_chose_the_one_stands_that_the_last_vote_went_to(
    choice: str, tmp_path: Path
) -> None:
    first = {"ada": "red", "bo": "blue"}
    arena = await hold_debate(
        tmp_path, make_gateway_of_positions(first, first, ArenaScript(choice=choice)), agents=2
    )
    assert arena.decision.core_agent_id == choice
    told = "\n".join(decision_lines(arena.decision, arena.votes[-1], Names((), Agent())))
    assert "one of them stands, since most votes in the end went to it" in told
    assert "the last vote would have decided the same" in told


async def test_where_it_cannot_be_told_how_drafts_group_the_last_vote_and_the_judges_score_decide(
    tmp_path: Path,
) -> None:
    script = ArenaScript(choice="cy", holds="blue")
    different = {"ada": "red", "bo": "blue", "cy": "green"}
    gateway = make_gateway_of_positions(different, different, script, certain=False)
    decision = (await hold_debate(tmp_path, gateway)).decision
    assert decision.ballots == LAST
    assert decision.last_vote_reason == "which first drafts take the same position cannot be told"
    assert [(each.agent_id, each.choice_agent_id) for each in decision.count.ballots] == [
        ("ada", "cy"),
        ("bo", "cy"),
        ("cy", "cy"),
    ]
    assert (decision.judge_ballot.choice_agent_id, decision.core_agent_id) == ("ada", "cy")
    assert not decision.positions
    assert "Positions that were taken" not in gateway.asked("round/6/judge").prompt


async def test_where_the_model_is_unsure_how_drafts_group_an_agent_is_asked_and_they_decide(
    tmp_path: Path,
) -> None:
    gateway = make_gateway_of_positions(*RED_THEN_ALL_RED, ArenaScript(choice="ada", holds="blue"))
    told = gateway.group_by
    assert told is not None
    unsure = UnsurePair(agent_id="bo", other_agent_id="cy", same_probability=0.5)

    def group_by(request: GroupPositionsRequest) -> GroupPositionsResponse:
        if request.settled or any(each.agent_id == "first/1" for each in request.positions):
            return told(request)
        apart = [PositionGroup(agent_ids=[each.agent_id]) for each in request.positions]
        return GroupPositionsResponse(groups=apart, unsure=[unsure])

    gateway.group_by = group_by
    decision = (await hold_debate(tmp_path, gateway)).decision
    assert decision.ballots == VOTE_BALLOTS_FIRST_DRAFTS
    assert [list(each.first_agent_ids) for each in decision.positions] == [["bo", "cy"], ["ada"]]
    assert len(gateway.steps("first-draft-vote/grouping*")) == 2


async def test_where_one_may_vote_that_proposes_nothing_the_last_vote_decides(tmp_path: Path) -> None:
    gateway = make_gateway_of_positions(*RED_THEN_ALL_RED, ArenaScript(choice="ada", holds="blue"))
    team = TeamSettings(duties=[AgentDuties(agent_id="cy", duties=[DUTY_CRITIC, DUTY_VOTER])])
    decision = (await hold_debate(tmp_path, gateway, team=team)).decision
    assert (decision.ballots, decision.last_vote_reason) == (LAST, "no duty to propose, but to vote: cy")


async def test_settings_say_that_the_last_vote_decides_and_that_the_judge_does_not(tmp_path: Path) -> None:
    gateway = make_gateway_of_positions(*RED_THEN_ALL_RED, ArenaScript(choice="ada", holds="blue"))
    gateway.hold("round/*/vote/cy")
    voting = VotingSettings(method=VOTING_METHOD_MAJORITY, ballots=LAST, judge_ballot=False)
    arena = await hold_debate(tmp_path, gateway, voting=voting)
    assert arena.decision.count == arena.votes[0]
    assert not arena.decision.HasField("judge_ballot")
    assert arena.votes[0].left_out_agent_ids == ["cy"], "such a vote ends early"


async def test_a_judge_that_was_muted_when_it_chose_and_is_heard_again_has_one_ballot(tmp_path: Path) -> None:
    first = {"ada": "red", "bo": "blue", "cy": "green"}
    gateway = make_gateway_of_positions(first, first, ArenaScript(choice="ada", holds="blue"))
    revised, judged = gateway.hold("round/*/refine/ada"), gateway.hold("round/6/judge")
    spec = arena_spec(3, arena_settings(revision_rounds=1), judge=agent("cy"))
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(spec)
        await revised.reached.wait()
        await replica.intervene(debate, "mute", agent_id="cy")
        revised.release()
        await judged.reached.wait()
        await replica.intervene(debate, "unmute", agent_id="cy")
        judged.release()
        events = await stage.comes_to(debate, "COMPLETED")
    count = outcome_of(events).arena.decision.count
    assert [(each.agent_id, each.choice_agent_id) for each in count.ballots] == [
        ("ada", "ada"),
        ("bo", "bo"),
        ("cy", "cy"),
    ]


async def test_a_vote_that_too_few_answer_fails_no_debate_that_its_first_drafts_decide(
    tmp_path: Path,
) -> None:
    gateway = make_gateway_of_positions(*RED_THEN_ALL_RED, ArenaScript(choice="ada", holds="blue"))
    gateway.fail("round/*/vote/ada")
    gateway.fail("round/*/vote/bo")
    events = await run_arena(tmp_path, gateway, arena_settings(revision_rounds=1))
    arena = outcome_of(events).arena
    assert (arena.winner_agent_id, list(arena.votes)) == ("bo", [])
    warnings = [each.payload.message for each in events if isinstance(each.payload, Warned)]
    assert any("too few votes came in, and the first drafts decide without them" in each for each in warnings)
    report = render_report(fold(events), V1)
    assert "the answer is written around the first draft of Bo" in report
    assert "Vote, which did not decide" not in report


async def test_which_proposals_of_a_vote_that_decides_are_alike_is_asked(tmp_path: Path) -> None:
    gateway = ArenaScript(choice="ada").gateway()
    gateway.group_by = unsure_until_settled
    gateway.grouping = lambda _: json.dumps({"groups": [["P1", "P2", "P3"]], "cannot_be_told": []})
    arena = await hold_debate(tmp_path, gateway, voting=VotingSettings(ballots=LAST))
    assert [list(each.agent_ids) for each in arena.votes[0].groups] == [["ada", "bo", "cy"]]
    assert len(gateway.steps("round/5/vote-groups/grouping*")) == 2


async def test_final_positions_are_compared_with_the_first_ones_while_the_agents_vote(tmp_path: Path) -> None:
    gateway = make_gateway_of_positions(*RED_THEN_ALL_RED, ArenaScript(choice="ada", holds="blue"))
    told, voting = gateway.group_by, gateway.hold("round/5/vote/ada")
    assert told is not None

    def group_by(request: GroupPositionsRequest) -> GroupPositionsResponse:
        is_open = not request.settled and any(each.agent_id == "first/1" for each in request.positions)
        return unsure_until_settled(request) if is_open else told(request)

    gateway.group_by = group_by
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(arena_spec(3, arena_settings(revision_rounds=1)))
        await voting.reached.wait()
        await gateway.wait_for("round/5/held-positions/grouping*", 2)
        voting.release()
        events = await stage.comes_to(debate, "COMPLETED")
    positions = outcome_of(events).arena.decision.positions
    assert [list(each.last_agent_ids) for each in positions] == [[], ["ada", "bo", "cy"]]
