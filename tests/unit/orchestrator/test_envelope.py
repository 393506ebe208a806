"""Envelopes: what is stored of an event, and the chain that holds events together."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.canonical import canonical_json
from parley.orchestrator.envelope import GENESIS, Draft, Envelope, open_entry, seal
from parley.orchestrator.events import (
    CorruptEventError,
    DebateCreated,
    Reply,
    RoundStarted,
    StepSucceeded,
    ToolCall,
    Warned,
    Work,
)

DATA = Path(__file__).parents[2] / "data"
NOON = datetime(2031, 2, 3, 12, tzinfo=UTC)


def sealed(payload: object = None, sequence: int = 1, before: str = GENESIS) -> tuple[Envelope, str]:
    draft = Draft("a/key", payload or Warned("look out"), 0)  # type: ignore[arg-type]
    return seal(draft, tenant="t", debate="deb", sequence=sequence, epoch=1, time=NOON, before=before)


@given(text=st.text(), value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_what_is_sealed_is_what_is_opened(text: str, value: object) -> None:
    for payload in (Warned(text), StepSucceeded(Work("recall"), "d", value=value)):  # type: ignore[arg-type]
        envelope, entry = sealed(payload)
        assert open_entry(entry, GENESIS) == envelope


def test_a_log_from_before_tools_is_read_and_its_chain_holds() -> None:
    before, payloads = GENESIS, []
    for entry in (DATA / "log-before-tools.jsonl").read_text().splitlines():
        envelope = open_entry(entry, before)
        before = envelope.hash
        payloads.append(envelope.payload)
    created, succeeded = payloads
    assert isinstance(created, DebateCreated)
    assert isinstance(succeeded, StepSucceeded)
    assert (created.spec.agents[0].tools, created.spec.judge.tool_call_limit) == ((), 0)
    assert succeeded.reply is not None
    assert succeeded.reply.tool_calls == ()


def test_what_was_looked_up_is_kept_with_the_reply() -> None:
    calls = (ToolCall("file_read", '{"path":"a.md"}', characters=12), ToolCall("nonsense", failed=True))
    payload = StepSucceeded(Work("proposal", "ada", 1), "d", Reply("Use A.", tool_calls=calls))
    assert open_entry(sealed(payload)[1], GENESIS).payload == payload


def test_an_entry_is_the_same_bytes_every_time() -> None:
    assert sealed()[1] == sealed()[1]
    assert sealed()[1] == canonical_json(json.loads(sealed()[1]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tenant", "u"), ("debate", "bed"), ("sequence", 2), ("epoch", 2), ("key", "b"), ("attempt", 1),
        ("kind", "other"), ("schema", 2), ("time", "2031-02-03T12:00:01+00:00"), ("payload", "{}"), ("hash", "0" * 64),
    ],
)  # fmt: skip
def test_a_change_to_any_field_is_found(field: str, value: object) -> None:
    entry = canonical_json({**json.loads(sealed(RoundStarted(1, 2))[1]), "kind": "unknown_kind"})
    whole = json.loads(entry)
    with pytest.raises(CorruptEventError):
        open_entry(canonical_json({**whole, field: value}), GENESIS)


def test_an_event_that_followed_another_one_is_found() -> None:
    first, _ = sealed()
    _, second = sealed(Warned("again"), 2, first.hash)
    assert open_entry(second, first.hash).sequence == 2
    with pytest.raises(CorruptEventError, match="does not follow"):
        open_entry(second, GENESIS)


def test_a_kind_that_is_not_known_is_passed_over_and_still_chained() -> None:
    envelope, entry = sealed()
    stored = json.loads(entry)
    assert open_entry(entry, None).payload == envelope.payload
    foreign = open_entry(canonical_json({**stored, "kind": "from_the_future"}), None)
    assert foreign.payload is None
    assert foreign.payload_text == envelope.payload_text


@pytest.mark.parametrize("entry", ["", "[]", "{}", "null", '{"tenant":"t"}'])
def test_a_damaged_entry_says_so(entry: str) -> None:
    with pytest.raises(CorruptEventError):
        open_entry(entry, None)
