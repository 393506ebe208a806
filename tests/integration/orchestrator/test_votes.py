"""Votes on other terms than a panel's: what is asked, what counts, and what the result says of how it came about."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.phases.count_votes import VoteTerms
from parley.orchestrator.phases.vote import VOTE, run_vote
from parley.v1.convergence_pb2 import Contradiction, GroupPositionsResponse, PositionGroup
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import Concluded, DebateCreated, Settled, Warned
from parley.v1.panel_pb2 import PanelOutcome
from parley.v1.voting_pb2 import (
    VOTE_STRENGTH_MODERATE,
    VOTE_STRENGTH_SPLIT,
    VOTE_STRENGTH_STRONG,
    VOTE_STRENGTH_UNANIMOUS,
    VOTE_STRENGTH_WEAK,
    VOTE_WEIGHTS_RATINGS,
    VOTING_METHOD_MAJORITY,
    VOTING_METHOD_SUPERMAJORITY,
    VOTING_METHOD_UNANIMOUS,
    VOTING_METHOD_WEIGHTED,
    Vote,
    VotingMethod,
)
from tests.support.debate_logs import check_log, run_debate
from tests.support.orchestration import backstage, make_debate, with_spec
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.stopping import Play

PLAIN = VoteTerms(group_choices=False)
WEIGHTED = VoteTerms(
    method=VOTING_METHOD_WEIGHTED, weighted_by=VOTE_WEIGHTS_RATINGS, group_choices=False, round=7
)


def make_formats(terms: VoteTerms) -> Formats:
    """A format that is a vote on what each agent has said."""

    async def run(debate: Debate) -> Outcome:
        work = [
            Contribution(each.id, "proposal", 1, f"{each.id} says so.", f"{each.id} it is")
            for each in debate.participants
        ]
        vote = await run_vote(debate, debate.participants, work, terms=terms)
        return Outcome(description="voted", panel=PanelOutcome(vote=vote))

    return Formats([Format(name="ballot", version=1, run=run, activities=(VOTE,))])


class Voters(ScriptedGateway):
    """Agents that vote for whom they are told to, wherever its proposal stands."""

    def __init__(self, choices: dict[str, str]) -> None:
        super().__init__()
        self.choices = choices
        self.judge = self._ballot

    def _ballot(self, _schema: str) -> str:
        asked = self.calls[-1]
        shown = re.findall(r"Proposal (\d+) \(quotation.*?\n<<<\n(\w+) says", asked.prompt, re.DOTALL)
        (number,) = (int(number) for number, author in shown if author == self.choices[asked.agent.id])
        return json.dumps({"choice": number, "confidence": 0.8, "reason": "it does"})


def assign_choices(*choices: str) -> dict[str, str]:
    return dict(zip(("ada", "bo", "cy", "dee", "eve", "fay", "gil"), choices, strict=False))


def spec(voters: int) -> DebateCreated:
    return with_spec(make_debate(voters, 1), format="ballot@1", settings=None)


async def hold_vote(folder: Path, gateway: Voters, terms: VoteTerms) -> tuple[Vote, list[Envelope]]:
    events = await run_debate(folder, gateway, spec(len(gateway.choices)), make_formats(terms))
    return vote_of(events), events


def vote_of(events: list[Envelope]) -> Vote:
    (concluded,) = [event.payload for event in events if isinstance(event.payload, Concluded)]
    return concluded.outcome.panel.vote


def warnings(events: list[Envelope]) -> list[str]:
    return [event.payload.message for event in events if isinstance(event.payload, Warned)]


async def test_each_voter_is_shown_the_proposals_in_an_order_of_its_own(tmp_path: Path) -> None:
    gateway = Voters(assign_choices(*["ada"] * 7))
    await hold_vote(tmp_path, gateway, replace(PLAIN, early_end=False))
    orders = [re.findall(r"\n<<<\n(\w+) says", asked.prompt) for asked in gateway.calls]
    assert {tuple(sorted(each)) for each in orders} == {tuple(gateway.choices)}
    assert len({tuple(each) for each in orders}) == 7
    assert len({each[0] for each in orders}) > 2, "the first place goes to many"


async def test_ballots_weigh_what_the_ratings_say(tmp_path: Path) -> None:
    gateway = Voters(assign_choices("ada", "bo", "bo"))
    gateway.weights = {"ada": 3.0, "bo": 0.5, "cy": 1.0}
    vote, events = await hold_vote(tmp_path, gateway, replace(WEIGHTED, early_end=False))
    assert (vote.winner_agent_id, vote.strength) == ("ada", VOTE_STRENGTH_MODERATE)
    assert vote.strength_by_ballots == VOTE_STRENGTH_MODERATE, "bo has two thirds of the ballots"
    assert {each.agent_id: each.weight for each in vote.ballots} == gateway.weights
    assert [(each.agent_id, each.votes) for each in vote.options][:2] == [("ada", 1), ("bo", 2)]
    assert vote.options[0].share == pytest.approx(3 / 4.5)
    assert (vote.method, vote.weighted_by, vote.quorum) == (VOTING_METHOD_WEIGHTED, VOTE_WEIGHTS_RATINGS, 2)
    assert "vote-weights" in [event.key for event in events], "the weights are recorded as a step"
    assert not warnings(events)


async def test_weights_that_come_after_the_ballots_still_end_a_vote_early(tmp_path: Path) -> None:
    gateway = Voters(assign_choices("ada", "ada", "ada", "bo", "bo"))
    gateway.weights = {**dict.fromkeys(("ada", "bo", "cy", "dee"), 2.0), "eve": 0.1}
    gateway.hold("vote/eve")
    weights = gateway.hold("weights")
    async with backstage(tmp_path, gateway, make_formats(WEIGHTED)) as stage, stage.replica() as replica:
        debate = await replica.create(spec(5))
        await weights.reached.wait()
        await stage.has(debate, "step_succeeded", 4)
        weights.release()
        events = await stage.comes_to(debate, "COMPLETED")
    assert list(vote_of(events).left_out_agent_ids) == ["eve"]


@pytest.mark.usefixtures("short_restarts")
async def test_without_the_ratings_every_vote_weighs_one_and_that_is_said(tmp_path: Path) -> None:
    gateway = Voters(assign_choices("ada", "bo", "bo"))
    gateway.weights = None
    vote, events = await hold_vote(tmp_path, gateway, WEIGHTED)
    assert vote.winner_agent_id == "bo"
    assert [each.weight for each in vote.ballots] == [1, 1, 1]
    (warning,) = warnings(events)
    assert warning.startswith(
        "every vote weighs the same, since its weight could not be looked up: ratings is away"
    )


@pytest.mark.parametrize(
    ("method", "winner"),
    [
        (VOTING_METHOD_MAJORITY, "ada"),
        (VOTING_METHOD_SUPERMAJORITY, ""),
        (VOTING_METHOD_UNANIMOUS, ""),
    ],
)
async def test_the_method_says_how_much_is_enough(
    tmp_path: Path, method: VotingMethod.ValueType, winner: str
) -> None:
    gateway = Voters(assign_choices("ada", "ada", "ada", "dee", "dee"))
    vote, _ = await hold_vote(tmp_path, gateway, replace(PLAIN, method=method))
    assert (vote.winner_agent_id, vote.strength, vote.method) == (winner, VOTE_STRENGTH_WEAK, method)


async def test_nobody_is_shown_its_own_proposal_where_it_may_not_vote_for_it(tmp_path: Path) -> None:
    gateway = Voters(assign_choices("bo", "cy", "bo"))
    vote, _ = await hold_vote(tmp_path, gateway, replace(PLAIN, self_votes=False))
    assert vote.winner_agent_id == "bo"
    assert not vote.self_votes_allowed
    for agent in ("ada", "bo", "cy"):
        prompt = gateway.asked(f"vote/{agent}").prompt
        assert f"{agent} says so." not in prompt
        assert "your own is not among them" in prompt
        assert json.loads(gateway.asked(f"vote/{agent}").schema)["properties"]["choice"]["maximum"] == 2


def make_groups(certain: bool, *contradictions: tuple[str, str]) -> Callable[[], GroupPositionsResponse]:
    return lambda: GroupPositionsResponse(
        groups=[PositionGroup(agent_ids=["ada", "bo"]), PositionGroup(agent_ids=["cy"])],
        certain=certain,
        contradictions=[Contradiction(agent_id=one, other_agent_id=other) for one, other in contradictions],
    )


@pytest.mark.parametrize("certain", [True, False], ids=["all-certain", "unsure-of-others"])
async def test_choices_that_say_the_same_count_as_one(tmp_path: Path, certain: bool) -> None:
    gateway = Voters(assign_choices("ada", "bo", "cy"))
    gateway.group = make_groups(certain)
    vote, _ = await hold_vote(tmp_path, gateway, VoteTerms())
    assert (vote.winner_agent_id, vote.strength) == ("ada", VOTE_STRENGTH_MODERATE)
    assert [(list(each.agent_ids), each.votes) for each in vote.groups] == [(["ada", "bo"], 2)]
    assert vote.groups[0].share == pytest.approx(2 / 3)


async def test_choices_that_contradict_each_other_are_never_counted_as_one(tmp_path: Path) -> None:
    gateway = Voters(assign_choices("ada", "bo", "cy"))
    gateway.group = make_groups(True, ("ada", "bo"))
    vote, _ = await hold_vote(tmp_path, gateway, VoteTerms())
    assert (vote.winner_agent_id, vote.strength) == ("", VOTE_STRENGTH_SPLIT)
    assert not vote.groups


async def test_one_voice_is_warned_of_and_shows_a_step_less(tmp_path: Path) -> None:
    gateway = Voters(assign_choices("ada", "ada", "ada"))
    vote, events = await hold_vote(tmp_path, gateway, replace(PLAIN, shared_family="openai"))
    assert (vote.strength, vote.undiscounted_strength) == (VOTE_STRENGTH_STRONG, VOTE_STRENGTH_UNANIMOUS)
    assert vote.shared_family == "openai"
    (warning,) = warnings(events)
    assert "all voters share one model family (openai)" in warning


async def test_what_an_early_end_left_out_is_recorded_with_its_weight(tmp_path: Path) -> None:
    gateway = Voters(assign_choices("ada", "ada", "ada", "bo", "bo"))
    gateway.weights = {**dict.fromkeys(("ada", "bo", "cy", "dee"), 2.0), "eve": 0.1}
    hold = gateway.hold("vote/eve")
    terms = replace(WEIGHTED, shared_family="meta")
    async with backstage(tmp_path, gateway, make_formats(terms)) as stage, stage.replica() as replica:
        debate = await replica.create(spec(5))
        await hold.reached.wait()
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    vote = vote_of(events)
    assert (vote.winner_agent_id, vote.undiscounted_strength) == ("ada", VOTE_STRENGTH_MODERATE)
    assert (list(vote.left_out_agent_ids), vote.left_out_weight) == (["eve"], 0.1)
    assert not vote.abstained_agent_ids
    (settled,) = [event.payload for event in events if isinstance(event.payload, Settled)]
    assert list(settled.left_out) == ["eve"]


async def test_everybody_is_waited_for_where_the_vote_may_not_end_early(tmp_path: Path) -> None:
    gateway = Voters(assign_choices("ada", "ada", "ada", "bo", "bo"))
    gateway.weights = {"ada": 10.0, "eve": 0.1}
    hold = gateway.hold("vote/eve")
    terms = replace(WEIGHTED, early_end=False)
    async with backstage(tmp_path, gateway, make_formats(terms)) as stage, stage.replica() as replica:
        debate = await replica.create(spec(5))
        await hold.reached.wait()
        await stage.has(debate, "step_succeeded", 5)  # four ballots and the weights
        assert "settled" not in await stage.kinds(debate)
        hold.release()
        vote = vote_of(await stage.comes_to(debate, "COMPLETED"))
    assert len(vote.ballots) == 5
    assert not vote.left_out_agent_ids


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 4))])
async def test_a_vote_stopped_at_any_event_comes_to_the_same_result(part: int, tmp_path: Path) -> None:
    def gateway() -> Voters:
        made = Voters(assign_choices("ada", "bo", "bo"))
        made.weights = {"ada": 3.0, "bo": 0.5}
        made.group = make_groups(True, ("ada", "bo"))
        return made

    terms = replace(WEIGHTED, group_choices=True, early_end=False)
    held = await Play(spec(3), gateway, make_formats(terms)).held(tmp_path)
    await held.ends_the_same_wherever_it_is_stopped(part, of=4)
