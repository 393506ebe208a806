"""The fold that an owner stands on."""

from datetime import UTC, datetime, timedelta

from parley.orchestrator.envelope import GENESIS, Draft, Envelope, seal
from parley.orchestrator.events import (
    ControlSeen,
    DebateFailed,
    Intervened,
    Paused,
    Payload,
    Resumed,
    StepFailed,
    StepStarted,
    StepSucceeded,
    Work,
)
from parley.orchestrator.recorded import Recorded, Wishes

WORK = Work("proposal", "ada", 1)
FAILED = StepFailed(WORK, "d", "PROVIDER_AUTH", "no")


def log(*made: tuple[str, Payload, int]) -> list[Envelope]:
    events: list[Envelope] = []
    for sequence, (key, payload, attempt) in enumerate(made, start=1):
        envelope, _ = seal(
            Draft(key, payload, attempt),
            tenant="t", debate="deb", sequence=sequence, epoch=1,
            time=datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=sequence),
            before=events[-1].hash if events else GENESIS,
        )  # fmt: skip
        events.append(envelope)
    return events


def wish(name: str, sequence: int, **fields: str) -> tuple[str, Payload, int]:
    return f"wish/{sequence}", Intervened(f"w{sequence}", name, **fields), 0  # type: ignore[arg-type]


def test_a_look_at_the_wishes_shows_what_was_recorded_up_to_then() -> None:
    recorded = Recorded.of(
        log(
            wish("guide", 1, text="be brief"),
            wish("mute", 2, agent="bo"),
            ("round/1/control", ControlSeen(2), 0),
            wish("guide", 4, text="be long"),
            wish("end", 5),
        )
    )
    assert recorded.wishes(recorded.seen["round/1/control"]) == Wishes(("be brief",), frozenset({"bo"}))
    assert recorded.wishes(99) == Wishes(("be brief", "be long"), frozenset({"bo"}), end=True)


def test_steps_that_were_started_and_have_no_outcome_are_unfinished() -> None:
    recorded = Recorded.of(
        log(
            ("a", StepStarted(WORK, "d"), 1),
            ("b", StepStarted(WORK, "d"), 1),
            ("a", FAILED, 1),
            ("a", StepStarted(WORK, "d"), 2),
        )
    )
    assert recorded.unfinished() == [("b", 1), ("a", 2)]


def test_resuming_voids_the_failures_that_the_debate_failed_on_and_no_other() -> None:
    events = log(
        ("a", FAILED, 1),
        ("b", FAILED, 1),
        ("failed", DebateFailed("PROVIDER_AUTH", "no", steps=("a",)), 1),
        ("resumed", Resumed(), 2),
        ("a", StepSucceeded(WORK, "d"), 2),
    )
    recorded = Recorded.of(events[:4])
    assert recorded.retried == {"a"}
    assert recorded.failure is None
    assert recorded.attempt == 2
    recorded.take(events[4:])
    assert recorded.retried == set()
    assert recorded.outcomes["a"][0] == 2


def test_a_pause_holds_until_it_is_resumed() -> None:
    events = log(wish("pause", 1), ("paused", Paused(), 1), wish("resume", 3), ("resumed", Resumed(), 2))
    assert [(Recorded.of(events[:n]).pausing, Recorded.of(events[:n]).paused) for n in range(5)] == [
        (False, False), (True, False), (True, True), (True, True), (False, False),
    ]  # fmt: skip
