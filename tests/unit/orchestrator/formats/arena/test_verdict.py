"""Who disagrees with what an arena decided, in plain words: never one that voted for it."""

import pytest

from parley.orchestrator.api.verdict import verdict_lines
from parley.orchestrator.formats.arena import V1
from parley.orchestrator.formats.arena.outcome import decision_lines
from parley.runtime.agent_names import Names
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import ArenaOutcome
from parley.v1.debate_pb2 import Debate, DebateSpec, DraftGroup, DraftGroups, Outcome, Participant
from parley.v1.effect_pb2 import DebateEffect, TakenPosition
from parley.v1.voting_pb2 import (
    VOTE_BALLOTS_FIRST_DRAFTS,
    VOTE_BALLOTS_LAST_VOTE,
    Ballot,
    Decision,
    PositionSupport,
    Vote,
    VoteOption,
)

AGENTS = ("ada", "bo", "cy")
FOR_ADA = Vote(
    ballots=[Ballot(agent_id=each, choice_agent_id="ada", reason="It holds.") for each in AGENTS],
    winner_agent_id="ada",
)
RED_BLUE_GREEN = [
    PositionSupport(position="Red.", first_agent_ids=["ada"], last_agent_ids=["ada"]),
    PositionSupport(position="Blue.", first_agent_ids=["bo"], last_agent_ids=["bo"]),
    PositionSupport(position="Green.", first_agent_ids=["cy"], last_agent_ids=["cy"]),
]


def dissent(arena: ArenaOutcome) -> list[str]:
    """What is said of who disagrees with an arena that decided for the proposal of ada."""
    return read_verdict(arena, "Dissent")


def read_verdict(arena: ArenaOutcome, what: str) -> list[str]:
    """What stands under this in the verdict of an arena that decided for the proposal of ada."""
    positions = [
        TakenPosition(text=each.position, last_agent_ids=each.last_agent_ids) for each in RED_BLUE_GREEN
    ]
    debate = Debate(
        spec=DebateSpec(agents=[Participant(agent=Agent(id=each, name=each.title())) for each in AGENTS]),
        first_drafts=DraftGroups(groups=[DraftGroup(agent_ids=[each]) for each in AGENTS]),
        outcome=Outcome(
            description="Red.", arena=arena, effect=DebateEffect(positions=positions, decided_position=1)
        ),
    )
    start = f"**{what}:** "
    return [each.removeprefix(start) for each in verdict_lines(debate, V1) if each.startswith(start)]


def decide_by_drafts(*choices: str) -> ArenaOutcome:
    ballots = [
        Ballot(agent_id=agent, choice_agent_id=choice, reason="It holds.")
        for agent, choice in zip(AGENTS, choices, strict=True)
    ]
    return ArenaOutcome(
        decision=Decision(
            ballots=VOTE_BALLOTS_FIRST_DRAFTS, positions=RED_BLUE_GREEN, core_agent_id="ada", count=FOR_ADA
        ),
        votes=[Vote(ballots=ballots)],
    )


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (
            ("ada", "bo", "cy"),
            [
                "Bo still prefers “Blue”, because: It holds.",
                "Cy still prefers “Green”, because: It holds.",
            ],
        ),
        (("ada", "ada", "cy"), ["Cy still prefers “Green”, because: It holds."]),
        (("ada", "cy", "ada"), ["Bo voted for “Green”, because: It holds."]),
        (("ada", "ada", "ada"), ["No agent was asked whether it agrees with the answer."]),
    ],
)
def test_who_voted_in_the_end_for_what_the_first_drafts_decided_does_not_prefer_its_own(
    choices: tuple[str, ...], said: list[str]
) -> None:
    assert dissent(decide_by_drafts(*choices)) == said


def test_who_prefers_another_position_and_can_live_with_the_answer_is_said_to() -> None:
    arena = decide_by_drafts("ada", "bo", "ada")
    arena.consenting_agent_ids[:] = AGENTS
    assert dissent(arena) == ["Bo still prefers “Blue”, because: It holds. It can live with the answer."]


def test_after_a_last_vote_that_all_cast_for_one_proposal_no_agent_prefers_another() -> None:
    decision = Decision(ballots=VOTE_BALLOTS_LAST_VOTE, core_agent_id="ada", count=FOR_ADA)
    arena = ArenaOutcome(decision=decision, votes=[FOR_ADA], consenting_agent_ids=AGENTS)
    assert dissent(arena) == ["Ada, Bo and Cy can live with the answer."]


def test_a_first_draft_whose_author_does_not_vote_is_not_counted_and_not_passed_over() -> None:
    arena = decide_by_drafts("ada", "ada", "cy")
    assert read_verdict(arena, "Decision")[0].startswith("Red. One of three first drafts chose it")
    del arena.decision.positions[2].first_agent_ids[:]
    assert read_verdict(arena, "Decision")[0].startswith("Red. One of two first drafts that count chose it")
    del arena.decision.positions[1].first_agent_ids[:]
    assert read_verdict(arena, "Decision")[0].startswith("Red. The one first draft that counts chose it")
    lines = list(decision_lines(arena.decision, None, Names((), Agent())))
    assert "“Green”: at first no agent that votes; in the end cy; 0% of what counts" in lines


@pytest.mark.parametrize(
    ("choices", "scores", "why"),
    [
        (("bo", "ada", "ada"), (1, 9), "most votes in the end went to it"),
        (("ada", "bo", "cy"), (9, 1), "the judge scored it best"),
        ((), (9, 1), "the judge scored it best"),
        ((), (5, 5), "it comes first by name"),
    ],
)
def test_why_one_of_tied_positions_stands_is_said_as_it_was(
    choices: tuple[str, ...], scores: tuple[int, int], why: str
) -> None:
    arena = decide_by_drafts(*(choices or AGENTS))
    arena.decision.count.CopyFrom(Vote(tied_agent_ids=["ada", "bo"]))
    arena.votes[0].options.extend(
        VoteOption(agent_id=each, share=choices.count(each) / 3) for each in AGENTS if choices
    )
    for agent, score in zip(AGENTS, scores, strict=False):
        arena.ranking.add(agent_id=agent, score=score)
    assert f"It stands, since {why}." in read_verdict(arena, "Decision")[0]
    lines = decision_lines(arena.decision, arena.votes[0], Names((), Agent()), arena.ranking)
    assert any(each.endswith(f"one of them stands, since {why}") for each in lines)
