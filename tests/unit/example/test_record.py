"""The example debate: its record is whole, shows today's format, and says what its source says."""

import json
from pathlib import Path

import pytest

from parley.example import LOG, read_example, record
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.events import CorruptEventError
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED
from parley.v1.event_pb2 import StepSucceeded
from tests.support.debate_logs import check_log
from tests.support.example_debate import source

RECORD_AGAIN = "record it again: python -m tests.support.example_debate"


def read_replies() -> dict[str, str]:
    """What the agents say in the record, by step."""
    return {
        event.key: event.payload.reply.text
        for event in record.read_events()
        if isinstance(event.payload, StepSucceeded) and event.payload.work.agent_id
    }


def test_the_record_comes_to_a_completed_debate_with_an_answer_and_a_report() -> None:
    events = list(record.read_events())
    check_log(events)
    example = read_example()
    assert example.debate.status == DEBATE_STATUS_COMPLETED
    assert "\n- **Decision:** Record the payment before you make it" in example.debate.answer
    assert not example.debate.warnings
    assert not example.debate.failures
    assert example.report.startswith("# How should we take payments")
    assert "## Answer" in example.report


def test_a_record_that_was_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = LOG.read_text("ascii").splitlines()
    changed = tmp_path / "debate.log"
    changed.write_text("\n".join([*lines[:5], *lines[6:]]), "ascii")
    monkeypatch.setattr(record, "LOG", changed)
    with pytest.raises(CorruptEventError):
        read_example()


def without_positions(told: dict[str, str]) -> dict[str, str]:
    """Return the texts by step, without the groups of positions: the source names these by steps, and the record by places."""
    answer = json.loads(told["synthesis"])
    del answer["positions"]
    return {**told, "synthesis": json.dumps(answer)}


def test_the_record_says_what_its_source_says() -> None:
    written = source()
    assert read_example().debate.spec.question == written.question
    told = {step: written.text(step) for step in read_replies()}
    assert without_positions(read_replies()) == without_positions(told), RECORD_AGAIN
    count = len(written.agents)
    assert len(read_replies().keys() - {"requirements"}) == count + count * (count - 1) + count + 1


def test_the_record_shows_the_latest_version_of_the_default_format() -> None:
    formats = all_formats()
    latest = formats.get(formats.default())
    assert read_example().debate.spec.format == latest.id, RECORD_AGAIN


def test_nobody_is_taken_for_a_model() -> None:
    models = {each.reply.model for each in read_example().debate.contributions}
    assert models == {"written by hand"}


def test_it_takes_some_ten_seconds() -> None:
    events = read_example().events
    assert 7 < (events[-1].time.ToNanoseconds() - events[0].time.ToNanoseconds()) / 1e9 < 13
