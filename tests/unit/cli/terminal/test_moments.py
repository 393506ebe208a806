"""What stands out in a debate is in its last lines, and is what memory finds in its record."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from parley.cli.terminal.account import news_lines
from parley.client import Debate
from parley.moment_rules import find_moments
from parley.orchestrator.phases.remember import create_record
from parley.runtime.agent_names import Names
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateSpec, Outcome, Participant, Reply, Work
from parley.v1.effect_pb2 import DebateEffect, TakenPosition
from parley.v1.event_pb2 import StepSucceeded
from parley.v1.panel_pb2 import Objection, PanelOutcome
from tests.unit.orchestrator.made_logs import ADA, BO, JUDGE

KAFKA, RABBIT, WAIT = 1, 2, 3
WORDS = {KAFKA: "Use Kafka.", RABBIT: "Use\n\x07 RabbitMQ.", WAIT: "Wait."}
NAMES = {"di": "", "ada": "Ada \x07Lovelace", "bo": "", "cy": ""}
LONE = {"ada": (KAFKA, KAFKA), "bo": (RABBIT, KAFKA), "cy": (RABBIT, RABBIT)}
FLIP = {"ada": (RABBIT, KAFKA), "bo": (RABBIT, KAFKA)}


def debate(courses: dict[str, tuple[int, int]], decided: int = KAFKA, objects: Sequence[str] = ()) -> Debate:
    """A debate whose agents went from one position to another."""
    effect = DebateEffect(
        positions=[
            TakenPosition(
                text=text,
                first_agent_ids=[agent for agent, (first, _) in courses.items() if first == number],
                last_agent_ids=[agent for agent, (_, last) in courses.items() if last == number],
            )
            for number, text in WORDS.items()
        ],
        decided_position=decided,
    )
    panel = PanelOutcome(objections=[Objection(agent_id=each, text="No.") for each in objects])
    agents = [Participant(agent=Agent(id=agent, name=NAMES[agent])) for agent in courses]
    return Debate(spec=DebateSpec(agents=agents), outcome=Outcome(effect=effect, panel=panel))


def test_a_lone_dissenter_who_won_is_named_in_a_line() -> None:
    assert list(news_lines(debate(LONE))) == [
        (
            "A lone dissenter won. At first Ada Lovelace alone stood for “Use Kafka”, which was decided for;"
            " 2 of 3 agents stood for “Use RabbitMQ”."
        )
    ]


def test_that_all_changed_their_minds_is_said_in_a_line() -> None:
    assert list(news_lines(debate(FLIP))) == [
        (
            "All agents changed their minds. At first all 2 agents stood for “Use RabbitMQ”,"
            " and in the end all for “Use Kafka”."
        )
    ]


CASES = {
    "a lone dissenter": debate(LONE),
    "a flip": debate(FLIP),
    "most won": debate(LONE, decided=RABBIT),
    "a position of none": debate(LONE, decided=WAIT),
    "not known": debate(LONE, decided=0),
    "the winner objects": debate(LONE, objects=["ada"]),
    "one objects after a flip": debate(FLIP, objects=["bo"]),
    "one of two": debate({"ada": (KAFKA, KAFKA), "bo": (RABBIT, KAFKA)}),
    "all differ": debate({"ada": (KAFKA, KAFKA), "bo": (RABBIT, KAFKA), "cy": (WAIT, KAFKA)}),
    "no majority": debate(LONE | {"di": (WAIT, KAFKA)}),
    "alone from the start": debate({"ada": (KAFKA, KAFKA)}),
    "one of another position": debate(FLIP | {"cy": (WAIT, 0)}),
    "one agent": debate({"ada": (RABBIT, KAFKA)}),
    "one goes elsewhere": debate({"ada": (RABBIT, KAFKA), "bo": (RABBIT, WAIT)}),
    "one end not known": debate({"ada": (RABBIT, KAFKA), "bo": (RABBIT, 0)}),
    "two at first": debate({"ada": (RABBIT, KAFKA), "bo": (WAIT, KAFKA)}),
    "one joined": debate({"ada": (RABBIT, KAFKA), "bo": (RABBIT, KAFKA), "cy": (0, KAFKA)}),
    "one joined with another": debate({"ada": (RABBIT, KAFKA), "bo": (RABBIT, KAFKA), "cy": (0, WAIT)}),
    "no agent": debate({}),
    "no effect": Debate(),
}


@pytest.mark.parametrize("found", CASES.values(), ids=CASES)
def test_memory_finds_the_same_in_the_record(found: Debate) -> None:
    replies = [
        StepSucceeded(work=Work(agent_id=each.agent.id, round=1), reply=Reply(position="Mine."))
        for each in found.spec.agents
    ]
    record = create_record(
        "deb-1",
        found.spec,
        found.outcome,
        replies,
        Names((ADA, BO), JUDGE),
        (),
        datetime(2026, 3, 3, tzinfo=UTC),
    )
    assert len(find_moments(record)) == len(list(news_lines(found)))
