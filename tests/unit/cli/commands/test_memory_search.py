"""`parley memory search`: what is found, short and within the terminal's width, and what is said if there is nothing."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.cells import cell_len

from parley.cli.__main__ import run
from parley.cli.commands.connection import Connection
from parley.cli.errors import GENERAL
from parley.cli.terminal.memories import confidence_text
from parley.runtime.errors import unavailable
from parley.v1.effect_pb2 import (
    DECISION_RELATION_OTHER_MATTER,
    DECISION_RELATION_REVERSES,
    DecisionConfidence,
    RelatedDecision,
)
from parley.v1.memory_pb2 import (
    GetRecordResponse,
    PastDebate,
)
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.unit.cli.commands.remembered import KAFKA, LONG, PRICES, make_record


def test_a_search_shows_each_debate_short_with_date_strength_confidence_and_dissent(
    at: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["memory", "search", "Kafka?", *at]) == 0
    said = capsys.readouterr()
    assert said.out.split("\n\n")[0].splitlines() == [
        "1. Kafka or RabbitMQ for orders?",
        "   2026-03-01, moderate agreement, 84 % sure (2 of 3 votes), 49 % alike",
        "   Use Kafka for orders, since it keeps their order. Use Kafka for orders, since",
        "   it keeps their order. Use Kafka for orders, since it keeps their order. Use",
        "   Kafka for orders, since it keeps their order. Use Kafka for orders, since …",
        "   Against it: cy: It is hard to run. It is hard to run. It is … (and 1 more)",
        f"   {KAFKA}",
    ]
    assert said.out.split("\n\n")[1].startswith("2. ")
    assert said.err == f"All that is remembered of one: parley memory show {KAFKA} --server {at[1]}\n"


def connect_to(orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch, *, own: bool) -> None:
    """Let commands without a server ask this orchestrator; `own`: as if it ran in their process."""

    @asynccontextmanager
    async def connect(*_: object, **__: object) -> AsyncIterator[Connection]:
        yield Connection(orchestrator.address, own=own)

    monkeypatch.setattr("parley.cli.commands.connection.connect", connect)


@pytest.mark.parametrize("own", [True, False])
def test_memory_that_starts_with_the_command_is_waited_for_and_no_other(
    own: bool,
    orchestrator: ScriptedOrchestrator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    connect_to(orchestrator, monkeypatch, own=own)
    orchestrator.memories = {KAFKA: make_record()}
    orchestrator.memory_refusals = [
        unavailable(f"{each}_UNAVAILABLE", f"the {each.lower()} service is away; try again")
        for each in ("MEMORY", "CONVERGENCE")
    ]
    assert run(["memory", "search", "Kafka?"]) == (0 if own else GENERAL)
    said = capsys.readouterr()
    lines = said.err.splitlines()
    if own:
        assert lines[0] == "memory is still starting; waiting for it, at most 60 s"
        assert KAFKA in said.out
    else:
        assert lines == ["parley: the memory service is away; try again"]


def test_memory_that_does_not_start_is_not_waited_for_without_end(
    orchestrator: ScriptedOrchestrator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    connect_to(orchestrator, monkeypatch, own=True)
    monkeypatch.setattr("parley.cli.commands.memory._START_SECONDS", 0.01)
    orchestrator.memory_refusals = [unavailable("MEMORY_UNAVAILABLE", "the memory service is away")] * 9
    assert run(["memory", "search", "Kafka?"]) == GENERAL
    assert capsys.readouterr().err.splitlines()[-1] == "parley: the memory service is away"


@pytest.mark.parametrize(
    "text", [LONG, "kafka" * 600, "注文には何を使うべきでしょうか。" * 200, "# A\n\n* b\n" * 300]
)
def test_no_line_of_a_search_is_wider_than_the_terminal(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    found = make_record(conclusion=text)
    found.debate.question = text
    found.debate.dissents[0].text = text
    orchestrator.memories = {KAFKA: found}
    assert run(["memory", "search", "Kafka?", *at]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize(
    ("conclusion", "shown"),
    [
        (
            "## Decision\n\n**Raise** them,\nsee `prices.yaml`.\n\n- in spring",
            "Decision Raise them, see prices.yaml. in spring",
        ),
        ("```\nx = 1\n```", "``` x = 1 ```"),
        ("a &#x202e;b", "a b"),
    ],
)
def test_the_beginning_of_a_conclusion_is_words_without_markup(
    at: list[str],
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
    conclusion: str,
    shown: str,
) -> None:
    orchestrator.memories = {KAFKA: make_record(conclusion=conclusion)}
    assert run(["memory", "search", "Kafka?", *at]) == 0
    assert capsys.readouterr().out.splitlines()[2] == f"   {shown}"


def test_a_debate_of_which_little_is_known_is_shown_without_gaps(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = PastDebate(debate_id=KAFKA, question="One or two?", conclusion="One.")
    bare.concluded_at.CopyFrom(Timestamp(seconds=1_772_366_400))
    orchestrator.memories = {KAFKA: GetRecordResponse(debate=bare)}
    run(["memory", "search", "One?", *at])
    assert capsys.readouterr().out.splitlines()[1] == "   2026-03-01, 0 % alike"
    run(["memory", "show", KAFKA, *at])
    assert capsys.readouterr().out.splitlines()[3:] == ["", "One."]


def test_no_decision_is_called_certain() -> None:
    assert confidence_text(DecisionConfidence(percent=99.7)) == "over 99 % sure"
    assert confidence_text(DecisionConfidence(percent=0.3)) == "under 1 % sure"


def test_that_an_earlier_decision_is_reversed_is_said_with_its_date_and_why(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    found = make_record(conclusion="Use RabbitMQ.")
    found.debate.related.add(
        debate_id=PRICES,
        decided_at=Timestamp(seconds=1_772_366_400),
        decision="Use Kafka.",
        relation=DECISION_RELATION_REVERSES,
        reason="The team is smaller now.",
    )
    found.debate.related.insert(
        0,
        RelatedDecision(
            debate_id="deb-2",
            decided_at=Timestamp(seconds=1_772_366_400),
            decision="Use paper.",
            relation=DECISION_RELATION_OTHER_MATTER,
        ),
    )
    found.debate.related.add(debate_id="deb-1", decided_at=Timestamp(seconds=1_772_366_400))
    orchestrator.memories = {KAFKA: found}
    assert run(["memory", "search", "Kafka?", *at]) == 0
    assert capsys.readouterr().out.splitlines()[4:6] == [
        f"   Reverses the decision of 2026-03-01 ({PRICES})",
        "   Is about the decision of 2026-03-01 (deb-1)",
    ]
    assert run(["memory", "show", KAFKA, *at]) == 0
    shown = capsys.readouterr().out
    assert (
        f"- Reverses the decision of 2026-03-01 ({PRICES}): Use Kafka. Why: The team is smaller now.\n"
        in shown
    )
    assert "- Is about another matter than the decision of 2026-03-01 (deb-2): Use paper.\n" in shown


def test_a_limit_and_a_domain_are_passed_on(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "search", "Kafka?", "--limit", "1", "--json", *at]) == 0
    assert [each["debate_id"] for each in json.loads(capsys.readouterr().out)] == [KAFKA]
    assert run(["memory", "search", "Kafka?", "--domain", "sales", "--json", *at]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["debate_id"], found["strength"], found["conclusion"]) == (PRICES, "moderate", "Raise them.")


def test_what_to_do_is_said_if_nothing_is_found(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "search", "Kafka?", "--domain", "cooking", *at]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "Nothing like it is remembered; use other words, or leave --domain out. "
        f"All debates: parley list --server {at[1]}\n"
    )
    assert run(["memory", "search", "Kafka?", "--domain", "cooking", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out) == []
