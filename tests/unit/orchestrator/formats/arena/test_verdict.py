"""Who disagrees with what an arena decided, in plain words: never one that voted for it."""

import pytest

from parley.orchestrator.api.verdict import verdict_lines
from parley.orchestrator.formats.arena import V1
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import ArenaOutcome
from parley.v1.debate_pb2 import Debate, DebateSpec, Outcome, Participant
from parley.v1.effect_pb2 import DebateEffect, TakenPosition
from parley.v1.voting_pb2 import (
    VOTE_BALLOTS_FIRST_DRAFTS,
    VOTE_BALLOTS_LAST_VOTE,
    Ballot,
    Decision,
    PositionSupport,
    Vote,
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
    positions = [
        TakenPosition(text=each.position, last_agent_ids=each.last_agent_ids) for each in RED_BLUE_GREEN
    ]
    debate = Debate(
        spec=DebateSpec(agents=[Participant(agent=Agent(id=each, name=each.title())) for each in AGENTS]),
        outcome=Outcome(
            description="Red.", arena=arena, effect=DebateEffect(positions=positions, decided_position=1)
        ),
    )
    lines = verdict_lines(debate, V1)
    return [each.removeprefix("**Dissent:** ") for each in lines if each.startswith("**Dissent:**")]


def by_drafts(*choices: str) -> ArenaOutcome:
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
    assert dissent(by_drafts(*choices)) == said


def test_who_prefers_another_position_and_can_live_with_the_answer_is_said_to() -> None:
    arena = by_drafts("ada", "bo", "ada")
    arena.consenting_agent_ids[:] = AGENTS
    assert dissent(arena) == ["Bo still prefers “Blue”, because: It holds. It can live with the answer."]


def test_after_a_last_vote_that_all_cast_for_one_proposal_no_agent_prefers_another() -> None:
    decision = Decision(ballots=VOTE_BALLOTS_LAST_VOTE, core_agent_id="ada", count=FOR_ADA)
    arena = ArenaOutcome(decision=decision, votes=[FOR_ADA], consenting_agent_ids=AGENTS)
    assert dissent(arena) == ["Ada, Bo and Cy can live with the answer."]
