"""Who takes part in an arena and who judges it, where the ratings or the agents choose."""

from pathlib import Path

import pytest

from parley.cli.terminal.words import debating_agents
from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.arena import V1
from parley.orchestrator.model.spec import participants_of
from parley.v1.arena_pb2 import (
    DUTY_CRITIC,
    DUTY_VOTER,
    JUDGE_CHOICE_BY_CALIBRATION,
    JUDGE_CHOICE_BY_RATING,
    JUDGE_CHOICE_LAST,
    JUDGE_CHOICE_VOTED,
    AgentDuties,
    JudgeChoice,
    TeamSettings,
)
from parley.v1.convergence_pb2 import CONVERGENCE_VERDICT_UNDETERMINED, AssessResponse, UnsurePair
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.event_pb2 import JudgeChosen, TeamSelected, Warned
from parley.v1.ratings_pb2 import Rating
from parley.v1.voting_pb2 import VOTE_WEIGHTS_ACCURACY, VOTE_WEIGHTS_ELO, VoteWeights, VotingSettings
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec, run_arena
from tests.support.debate_logs import outcome_of, payloads_of, run_debate
from tests.support.orchestration import agent, backstage
from tests.support.scripted_gateway import ScriptedGateway

ROLES = {"ada": "architect", "bo": "security", "cy": "testing"}
RATINGS = {
    "ada": Rating(agent_id="ada", elo=1480, calibration=0.7, matches=9, judged_answers=9, brier_score=0.1),
    "bo": Rating(agent_id="bo", elo=1620, calibration=0.4, matches=9, judged_answers=9, brier_score=0.3),
    "cy": Rating(agent_id="cy", elo=1500, calibration=0.5),
}


def warnings(events: list) -> list[str]:  # type: ignore[type-arg]
    return [each.message for each in payloads_of(events, Warned)]


async def test_only_the_chosen_team_debates_and_why_is_recorded(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.team = ("bo", "dee")
    events = await run_arena(
        tmp_path, gateway, arena_settings(revision_rounds=1, team=TeamSettings(size=2)), agents=4
    )
    (selected,) = payloads_of(events, TeamSelected)
    assert selected.agent_ids == ["bo", "dee"]
    assert [(each.agent_id, each.chosen, each.reason) for each in selected.candidates] == [
        (each, each in gateway.team, f"what is known of {each}") for each in ("bo", "dee", "ada", "cy")
    ]
    assert {asked.agent.id for asked in gateway.calls} == {"bo", "dee", "judge"}
    assert "You are agent B of 2 agents." in gateway.asked("round/1/propose/dee").prompt
    assert outcome_of(events).arena.consenting_agent_ids == ["bo", "dee"]
    state = fold(events)
    assert [each.id for each in debating_agents(state)] == ["bo", "dee"]
    assert [each.id for each in participants_of(state)] == ["bo", "dee"]
    assert "dee" in render_report(state, V1)


@pytest.mark.usefixtures("short_restarts")
async def test_without_the_ratings_the_first_agents_debate_and_the_debate_says_so(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    events = await run_arena(
        tmp_path, gateway, arena_settings(revision_rounds=1, team=TeamSettings(size=2)), agents=4
    )
    (selected,) = payloads_of(events, TeamSelected)
    assert selected.agent_ids == ["ada", "bo"]
    assert not selected.candidates
    assert any(each.startswith("the first 2 agents debate, since no team") for each in warnings(events))


async def test_a_team_of_all_asks_nobody(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    events = await run_arena(
        tmp_path, gateway, arena_settings(revision_rounds=1, team=TeamSettings(size=3)), agents=3
    )
    assert not payloads_of(events, TeamSelected)


async def hold_debate(
    folder: Path, gateway: ScriptedGateway, choice: JudgeChoice.ValueType, team: TeamSettings | None = None
) -> list:  # type: ignore[type-arg]
    settings = arena_settings(revision_rounds=1, judge_choice=choice, team=team or TeamSettings())
    agents = tuple(agent(name, role) for name, role in ROLES.items())
    spec = arena_spec(
        3, settings, agents=agents, context=(ContextDocument(path="notes.md", text="Ten users."),)
    )
    return await run_debate(folder, gateway, spec)


async def test_the_agents_vote_for_a_judge_whose_role_alone_they_know(tmp_path: Path) -> None:
    gateway = ArenaScript(judging_role="security").gateway()
    events = await hold_debate(tmp_path, gateway, JUDGE_CHOICE_VOTED)
    assert outcome_of(events).arena.judge_agent_id == "bo"
    (chosen,) = payloads_of(events, JudgeChosen)
    assert chosen.reason == "2 of 3 agents voted for it; every agent that could judge is an author"
    assert sorted(gateway.steps("judge-vote/*")) == [f"judge-vote/{each}" for each in ROLES]
    told = gateway.asked("judge-vote/ada").prompt
    assert "security" in told
    assert "testing" in told
    assert not any(name in told for name in ("Bo", "bo\n", "cy\n"))
    assert "Ten users." not in told, "which it takes to answer, and not to choose a judge"
    assert "Ten users." in gateway.asked("round/1/propose/ada").prompt


async def test_nobody_can_vote_for_itself(tmp_path: Path) -> None:
    gateway = ArenaScript(judging_role="security").gateway()
    await hold_debate(tmp_path, gateway, JUDGE_CHOICE_VOTED)
    assert "security" not in gateway.asked("judge-vote/bo").parts[-1].text


async def test_where_one_agent_alone_proposes_nothing_it_judges_without_a_vote(tmp_path: Path) -> None:
    gateway = ArenaScript(judging_role="security").gateway()
    team = TeamSettings(duties=[AgentDuties(agent_id="cy", duties=[DUTY_CRITIC, DUTY_VOTER])])
    events = await hold_debate(tmp_path, gateway, JUDGE_CHOICE_VOTED, team)
    assert outcome_of(events).arena.judge_agent_id == "cy"
    assert not gateway.steps("judge-vote/*")


async def test_where_nobody_votes_the_designated_judge_judges_and_the_debate_says_so(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.fail("judge-vote/*")
    events = await hold_debate(tmp_path, gateway, JUDGE_CHOICE_VOTED)
    assert outcome_of(events).arena.judge_agent_id == "judge"
    assert "judge judges, since nobody has voted for a judge" in warnings(events)


@pytest.mark.parametrize(
    ("choice", "judge", "why"),
    [
        (JUDGE_CHOICE_BY_RATING, "bo", "Elo rating 1620 after 9 matches"),
        (JUDGE_CHOICE_BY_CALIBRATION, "ada", "calibration 0.70 after 9 judged answers"),
    ],
)
async def test_the_best_by_rating_or_calibration_judges(
    choice: JudgeChoice.ValueType, judge: str, why: str, tmp_path: Path
) -> None:
    gateway = ArenaScript().gateway()
    gateway.weights, gateway.ratings = {}, RATINGS
    events = await hold_debate(tmp_path, gateway, choice)
    assert outcome_of(events).arena.judge_agent_id == judge
    (chosen,) = payloads_of(events, JudgeChosen)
    assert chosen.reason.startswith(f"{why}; ")


@pytest.mark.usefixtures("short_restarts")
@pytest.mark.parametrize("known", [False, True], ids=["the ratings are away", "nothing is known of anybody"])
async def test_where_the_ratings_say_nothing_the_designated_judge_judges_and_the_debate_says_so(
    known: bool,
    tmp_path: Path,
) -> None:
    gateway = ArenaScript().gateway()
    gateway.weights = {} if known else None
    events = await hold_debate(tmp_path, gateway, JUDGE_CHOICE_BY_RATING)
    assert outcome_of(events).arena.judge_agent_id == "judge"
    assert any(each.startswith("judge judges, since no judge could be chosen") for each in warnings(events))


async def test_the_agent_of_ones_choice_is_asked_which_positions_say_the_same(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.assess = lambda _: AssessResponse(
        verdict=CONVERGENCE_VERDICT_UNDETERMINED,
        unsure=[UnsurePair(agent_id="ada", other_agent_id="bo", same_probability=0.5)],
    )
    await run_arena(tmp_path, gateway, arena_settings(revision_rounds=1, grouping_agent_id="cy"))
    assert gateway.asked("round/3/grouping").agent.id == "cy"


async def test_an_agent_that_is_muted_is_not_asked_and_the_judge_is(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.assess = lambda _: AssessResponse(
        verdict=CONVERGENCE_VERDICT_UNDETERMINED,
        unsure=[UnsurePair(agent_id="ada", other_agent_id="bo", same_probability=0.5)],
    )
    gateway.hold("round/1/propose/ada")
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(
            arena_spec(3, arena_settings(revision_rounds=1, grouping_agent_id="cy"))
        )
        await gateway.wait_for("round/1/propose/ada")
        await replica.intervene(debate, "mute", agent_id="cy")
        gateway.release("round/1/propose/ada")
        await stage.comes_to(debate, "COMPLETED")
    assert gateway.asked("round/3/grouping").agent.id == "judge"


@pytest.mark.parametrize("weighted_by", [VOTE_WEIGHTS_ELO, VOTE_WEIGHTS_ACCURACY])
async def test_votes_weigh_by_what_the_debate_says(
    weighted_by: VoteWeights.ValueType, tmp_path: Path
) -> None:
    gateway = ArenaScript(choice="ada").gateway()
    gateway.weights = {"ada": 2.5}
    settings = arena_settings(revision_rounds=1, voting=VotingSettings(weighted_by=weighted_by))
    (vote,) = outcome_of(await run_arena(tmp_path, gateway, settings)).arena.votes
    assert vote.weighted_by == weighted_by
    assert {each.agent_id: each.weight for each in vote.ballots}.get("ada", 2.5) == 2.5


async def test_an_agent_that_is_muted_does_not_judge(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    hold = gateway.hold("round/1/propose/ada")
    settings = arena_settings(revision_rounds=1, judge_choice=JUDGE_CHOICE_LAST)
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(arena_spec(3, settings))
        await hold.reached.wait()
        await replica.intervene(debate, "mute", agent_id="cy")
        hold.release()
        events = await stage.comes_to(debate, "COMPLETED")
    assert outcome_of(events).arena.judge_agent_id == "bo"
    assert [each.agent_id for each in payloads_of(events, JudgeChosen)] == ["bo"]
