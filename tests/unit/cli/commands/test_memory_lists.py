"""`parley memory moments`, `patterns` and `positions`: what memory keeps of many debates, as lists."""

import json

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from parley.cli.__main__ import run
from parley.v1.memory_pb2 import (
    FLIP_OUTCOME_FLIP,
    FLIP_OUTCOME_NO_FLIP,
    FLIP_OUTCOME_UNKNOWN,
    MOMENT_KIND_LONE_DISSENTER_WON,
    MOMENT_KIND_REVERSAL,
    CritiquePattern,
    FlipOutcome,
    FlipSettlement,
    LedgerPosition,
    Moment,
    StandChange,
)
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.unit.cli.commands.remembered import KAFKA, PRICES


def moment(number: int) -> Moment:
    """A moment of either kind."""
    found = Moment(
        kind=MOMENT_KIND_REVERSAL if number else MOMENT_KIND_LONE_DISSENTER_WON,
        debate_id=f"deb-{number}",
        concluded_at=Timestamp(seconds=1_772_366_400),
        text="At first Ada alone stood for “Use Kafka”, which was decided for;\n2 of 3 agents stood for \x1b “Wait”.",
    )
    if number:
        found.earlier_debate_id = KAFKA
    return found


def test_moments_are_shown_with_their_day_kind_and_debates(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.moments = [moment(number) for number in range(3)]
    assert run(["memory", "moments", *at]) == 0
    first, second, _ = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert first.splitlines() == [
        "2026-03-01  lone dissenter won",
        "   At first Ada alone stood for “Use Kafka”, which was decided for; 2 of 3",
        "   agents stood for “Wait”.",
        "   deb-0",
    ]
    assert second.splitlines()[0] == "2026-03-01  reversal"
    assert second.splitlines()[-1] == f"   deb-1, reverses {KAFKA}"
    assert run(["memory", "moments", "--kind", "reversal", "--limit", "1", "--json", *at]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["debate_id"], found["kind"]) == ("deb-1", "reversal")


def test_that_no_moment_is_known_is_said(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["memory", "moments", *at]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err.partition(":")[0]) == ("", "No moment is known")


def pattern(number: int) -> CritiquePattern:
    """A kind of issue with all that is known of it."""
    found = CritiquePattern(
        pattern_id=f"p{number}",
        domain="data",
        examples=["The retry has no limit. " * 10, "It retries for ever.", "Nothing ends the retry."],
        debates=3,
        raised=7,
        taken_up=5,
        severity=6.4,
        latest_at=Timestamp(seconds=1_772_366_400),
        similarity_percent=48.7,
    )
    found.critics.add(agent_id="cy", raised=4)
    found.critics.add(agent_id="ada", raised=3)
    return found


def test_kinds_of_issue_are_shown_with_examples_who_raises_them_and_how_often_they_are_taken_up(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.patterns = [pattern(number) for number in range(3)]
    orchestrator.patterns[2].CopyFrom(CritiquePattern(examples=["No.", "No."], debates=1, raised=1))
    assert run(["memory", "patterns", *at]) == 0
    first, _, bare = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert first.splitlines() == [
        "1. The retry has no limit. The retry has no limit. The retry has no limit. The",
        "   retry has no limit. The retry has no limit. The retry has no limit. The …",
        "   raised 7 times in 3 debates, taken up 5 times, severity 6.4, 49 % alike",
        "   Also: It retries for ever.",
        "   Also: Nothing ends the retry.",
        "   By cy (4), ada (3); data, 2026-03-01",
    ]
    assert bare.splitlines()[:2] == ["3. No.", "   raised once in 1 debate, never taken up"]
    assert "Also" not in bare, "words that were said before are no example more"
    assert run(["memory", "patterns", "retries", "--limit", "1", "--json", *at]) == 0
    assert [each["pattern_id"] for each in json.loads(capsys.readouterr().out)] == ["p0"]


def test_a_blank_stands_behind_every_number_of_a_list_and_what_follows_stands_below_the_text(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.patterns = [pattern(number) for number in range(10)]
    assert run(["memory", "patterns", *at]) == 0
    last = capsys.readouterr().out.rstrip("\n").split("\n\n")[-1].splitlines()
    assert last[0].startswith("10. The retry has no limit.")
    assert all(line.startswith("    ") and line[4] != " " for line in last[1:])
    assert max(map(len, last)) <= 80


def test_that_no_kind_of_issue_is_known_is_said(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "patterns", "--taken-up", *at]) == 0
    assert capsys.readouterr().err == ("No kind of issue is known there: debates raise them in critiques.\n")


def position(agent: str = "ada", *changes: StandChange) -> LedgerPosition:
    return LedgerPosition(
        agent_id=agent,
        agent_name=agent.title(),
        debate_id=PRICES,
        question="Kafka or RabbitMQ for orders?",
        domain="data",
        concluded_at=Timestamp(seconds=1_772_452_800),
        stand="Use RabbitMQ.",
        for_decision=True,
        changes=changes,
    )


def change(outcome: FlipOutcome.ValueType, settlement: FlipSettlement | None = None) -> StandChange:
    return StandChange(
        earlier_debate_id=KAFKA,
        earlier_concluded_at=Timestamp(seconds=1_772_366_400),
        earlier_stand="Use Kafka.",
        outcome=outcome,
        settlement=settlement,
    )


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        (change(FLIP_OUTCOME_NO_FLIP), []),
        (
            change(FLIP_OUTCOME_UNKNOWN),
            [f"Perhaps a flip, from 2026-03-01 ({KAFKA}): Use Kafka."],
        ),
        (
            change(FLIP_OUTCOME_FLIP),
            [
                f"Flip from 2026-03-01 ({KAFKA}): Use Kafka.",
                "Open: no later decision and no feedback has settled it",
            ],
        ),
        (
            change(
                FLIP_OUTCOME_FLIP,
                FlipSettlement(
                    debate_id="deb-9", concluded_at=Timestamp(seconds=1_772_539_200), took_later_side=True
                ),
            ),
            [
                f"Flip from 2026-03-01 ({KAFKA}): Use Kafka.",
                "Settled on 2026-03-03 by deb-9, for the later side",
            ],
        ),
        (
            change(
                FLIP_OUTCOME_FLIP,
                FlipSettlement(
                    debate_id=PRICES, concluded_at=Timestamp(seconds=1_772_452_800), approved=True
                ),
            ),
            [
                f"Flip from 2026-03-01 ({KAFKA}): Use Kafka.",
                f"Settled on 2026-03-02 by {PRICES}, for the earlier side, and found good",
            ],
        ),
    ],
    ids=("kept", "unknown", "open", "settled", "settled by feedback"),
)
def test_where_an_agent_stood_is_shown_with_the_side_it_left_and_what_settled_that(
    at: list[str],
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
    changed: StandChange,
    shown: list[str],
) -> None:
    orchestrator.positions = [position("ada", changed)]
    assert run(["memory", "positions", *at]) == 0
    assert capsys.readouterr().out.rstrip().splitlines() == [
        "1. Ada (for the decision): Use RabbitMQ.",
        "   2026-03-02, data: Kafka or RabbitMQ for orders?",
        *(f"   {each}" for each in shown),
        f"   {PRICES}",
    ]


def test_stands_are_listed_of_one_agent_or_only_flips_up_to_a_limit(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    flip = change(FLIP_OUTCOME_FLIP)
    orchestrator.positions = [
        position(agent, *changes) for agent in ("ada", "bo") for changes in ((), (flip,))
    ]

    def list_agents(*options: str) -> list[str]:
        assert run(["memory", "positions", "--json", *options, *at]) == 0
        return [each["agent_id"] for each in json.loads(capsys.readouterr().out)]

    assert list_agents() == ["ada", "ada", "bo", "bo"]
    assert list_agents("--limit", "3") == ["ada", "ada", "bo"]
    assert list_agents("--flips") == ["ada", "bo"]
    assert list_agents("--agent", "bo", "--flips") == ["bo"]
    assert run(["memory", "positions", "--agent", "cy", "--flips", *at]) == 0
    assert capsys.readouterr().err == "No flip is known of that agent.\n"
    orchestrator.positions = []
    assert run(["memory", "positions", *at]) == 0
    assert capsys.readouterr().err == "No stand is known yet.\n"
