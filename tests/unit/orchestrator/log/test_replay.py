"""The fold that an owner stands on."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from parley.orchestrator.log.envelope import GENESIS, Envelope, create_event, seal
from parley.orchestrator.log.events import Payload, UnknownEventError
from parley.orchestrator.log.replay import RecordedState, Steering
from parley.v1.debate_pb2 import DebateFailure, Intervention, Work
from parley.v1.event_pb2 import (
    DebateFailed,
    Intervened,
    Paused,
    Resumed,
    SteeringRead,
    StepFailed,
    StepStarted,
    StepSucceeded,
)
from tests.support.interventions import intervention
from tests.unit.orchestrator.made_logs import with_foreign

WORK = Work(activity="proposal", agent_id="ada", round=1)
FAILED = StepFailed(work=WORK, digest="d", reason="PROVIDER_AUTH", message="no")
STARTED = StepStarted(work=WORK, digest="d")


def log(*made: tuple[str, Payload, int]) -> list[Envelope]:
    events: list[Envelope] = []
    for sequence, (key, payload, attempt) in enumerate(made, start=1):
        envelope = seal(
            create_event(key, payload, attempt),
            tenant="t", debate="deb", sequence=sequence, epoch=1,
            time=datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=sequence),
            before=events[-1].hash if events else GENESIS,
        )  # fmt: skip
        events.append(envelope)
    return events


def make_intervention(act: str, sequence: int, **fields: Any) -> tuple[str, Payload, int]:
    return f"intervention/{sequence}", intervention(act, f"w{sequence}", **fields), 0


def test_a_look_at_the_interventions_shows_what_was_recorded_up_to_then() -> None:
    recorded = RecordedState.from_events(
        log(
            make_intervention("guide", 1, text="be brief"),
            make_intervention("mute", 2, agent_id="bo"),
            ("round/1/control", SteeringRead(through=2), 0),
            make_intervention("guide", 4, text="be long"),
            make_intervention("end", 5),
        )
    )
    seen = recorded.steering(recorded.control_sequences["round/1/control"])
    assert seen == Steering(("be brief",), frozenset({"bo"}))
    assert recorded.steering(99) == Steering(("be brief", "be long"), frozenset({"bo"}), end=True)
    assert recorded.last_steering_sequence() == 5


def test_steps_that_were_started_and_have_no_outcome_are_unfinished() -> None:
    recorded = RecordedState.from_events(
        log(("a", STARTED, 1), ("b", STARTED, 1), ("a", FAILED, 1), ("a", STARTED, 2))
    )
    assert recorded.steps_without_outcome() == [("b", 1), ("a", 2)]


def test_resuming_voids_the_failures_that_the_debate_failed_on_and_no_other() -> None:
    failure = DebateFailure(reason="PROVIDER_AUTH", message="no", steps=["a"])
    events = log(
        ("a", FAILED, 1),
        ("b", FAILED, 1),
        ("failed", DebateFailed(failure=failure), 1),
        ("resumed", Resumed(), 2),
        ("a", StepSucceeded(work=WORK, digest="d"), 2),
    )
    recorded = RecordedState.from_events(events[:4])
    assert recorded.retried == {"a"}
    assert recorded.failure is None
    assert recorded.attempt == 2
    recorded.apply(events[4:])
    assert recorded.retried == set()
    assert recorded.outcomes["a"][0] == 2


def test_a_pause_holds_until_it_is_resumed() -> None:
    events = log(
        make_intervention("pause", 1),
        ("paused", Paused(), 1),
        make_intervention("resume", 3),
        ("resumed", Resumed(), 2),
    )
    assert [(RecordedState.from_events(events[:n]).pausing, RecordedState.from_events(events[:n]).paused) for n in range(5)] == [
        (False, False), (True, False), (True, True), (True, True), (False, False),
    ]  # fmt: skip


def test_a_kind_that_is_not_known_stops_an_owner_unless_it_is_marked() -> None:
    events = log(("a", STARTED, 1), ("a", FAILED, 1))
    with pytest.raises(UnknownEventError, match="event 3 of "):
        RecordedState.from_events(with_foreign(events, ignorable=False))
    passed_over = RecordedState.from_events(with_foreign(events, ignorable=True))
    assert passed_over.outcomes == RecordedState.from_events(events).outcomes
    assert passed_over.started == RecordedState.from_events(events).started


def test_an_intervention_of_a_newer_version_stops_an_owner_as_an_unknown_event_does() -> None:
    newer = Intervened(request_id="w", intervention=Intervention.FromString(b"\xfa\x06\x00"))

    with pytest.raises(UnknownEventError, match="holds an intervention that this version does not know"):
        RecordedState.from_events(
            [
                seal(
                    create_event("w", newer),
                    tenant="t",
                    debate="d",
                    sequence=1,
                    epoch=1,
                    time=datetime(2030, 1, 1, tzinfo=UTC),
                    before=GENESIS,
                )
            ]
        )
