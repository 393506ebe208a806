"""Envelopes: what is stored of an event, and the chain that holds events together."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.canonical import canonical_json
from parley.orchestrator.envelope import GENESIS, Draft, Envelope, open_entry, seal
from parley.orchestrator.events import CorruptEventError, RoundStarted, StepSucceeded, Warned, Work

NOON = datetime(2031, 2, 3, 12, tzinfo=UTC)


def sealed(payload: object = None, sequence: int = 1, before: str = GENESIS) -> tuple[Envelope, str]:
    draft = Draft("a/key", payload or Warned("look out"), 0)  # type: ignore[arg-type]
    return seal(draft, tenant="t", debate="deb", sequence=sequence, epoch=1, time=NOON, before=before)


@given(text=st.text(), value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_what_is_sealed_is_what_is_opened(text: str, value: object) -> None:
    for payload in (Warned(text), StepSucceeded(Work("recall"), "d", value=value)):  # type: ignore[arg-type]
        envelope, entry = sealed(payload)
        assert open_entry(entry, GENESIS) == envelope


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
