"""The checker catches every kind of broken promise: good histories made by hand, then spoiled in one place."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from parley.orchestrator.log.envelope import GENESIS, create_event, seal
from parley.storage.ports import Record
from parley.v1.debate_pb2 import DebateFailure, Reply, Work
from parley.v1.debate_pb2 import Outcome as DebateOutcome
from parley.v1.event_pb2 import (
    Claimed,
    Closed,
    Concluded,
    DebateFailed,
    StepFailed,
    StepStarted,
    StepSucceeded,
    Warned,
)
from parley.v1.event_pb2 import Event as LogEvent
from tests.chaos.checker import check
from tests.chaos.history import Accepted, Fault, History, Intervention, ModelCall, Seen, Watch
from tests.support.interventions import intervention
from tests.support.memory_log import to_event
from tests.support.model_server import Outcome
from tests.support.model_server.answers import digest_of
from tests.support.orchestration import kind_of, make_debate, with_fields

DEBATE = "deb-20260101-000000-abcdefgh"
MARK = "case-1."
PATH, MODEL = "/v1/responses", "m"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WALL = NOON.timestamp() - 100.0
"""Noon is second 100 of the monotonic clock."""
ADA, BO = "round/1/propose/ada", "round/1/propose/bo"

Event = tuple[int, LogEvent]
"""Epoch and event."""


def prompt(key: str) -> str:
    return f"You are of {MARK} Do {key}"


def make_success(key: str) -> StepSucceeded:
    text = f"Answer {digest_of(PATH, MODEL, prompt(key))[:8]}: yes."
    return StepSucceeded(work=work(key), digest="d", reply=Reply(text=text))


def make_start(key: str) -> StepStarted:
    return StepStarted(work=work(key), digest="d")


def work(key: str) -> Work:
    return Work(activity="proposal", agent_id=key[-3:].strip("/"), round=1)


CREATED = (0, create_event("created", with_fields(make_debate(), request_id="req")))
CLAIMED = (1, create_event("claim/1", Claimed(owner="a")))
INTERVENED = (1, create_event("intervention/w1", intervention("guide", "w1", text="x")))
CONCLUDED = (1, create_event("concluded", Concluded(outcome=DebateOutcome(description="Yes."))))
CLOSED = (1, create_event("closed", Closed()))
GOOD: tuple[Event, ...] = (
    CREATED,
    CLAIMED,
    (1, create_event(ADA, make_start(ADA), 1)),
    (1, create_event(BO, make_start(BO), 1)),
    INTERVENED,
    (1, create_event(ADA, make_success(ADA), 1)),
    (1, create_event(BO, make_success(BO), 1)),
    CONCLUDED,
    CLOSED,
)


def make_records(events: Sequence[Event], *, seconds: float = 1.0) -> list[Record]:
    """Records of one event each, a second after the other from noon on."""
    records, before = [], GENESIS
    for number, (epoch, event) in enumerate(events, start=1):
        envelope = seal(
            to_event(event),
            tenant="default",
            debate=DEBATE,
            sequence=number,
            epoch=epoch,
            time=NOON + timedelta(seconds=seconds * number),
            before=before,
        )
        before = envelope.hash
        records.append(Record(number, f"append-{number}", (envelope.entry,)))
    return records


def call(key: str, started: float, ended: float, number: int = 1) -> ModelCall:
    return ModelCall(
        number,
        PATH,
        MODEL,
        prompt(key),
        1,
        {},
        started,
        ended,
        Outcome.ANSWERED,
        "",
        200,
        1,
        1,
        True,
        (),
        (),
        {},
    )


def list_seen(records: Sequence[Record]) -> list[Seen]:
    read = [LogEvent.FromString(entry) for record in records for entry in record.entries]
    return [Seen(each.sequence, kind_of(each), each.hash) for each in read]


def history(events: Sequence[Event] = GOOD, **changed: Any) -> History:
    records = make_records(events)
    whole = list_seen(records)
    made = History(
        accepted=(Accepted(DEBATE, "req", MARK),),
        logs={DEBATE: records},
        calls=(call(ADA, 103.5, 104.5), call(BO, 104.5, 105.5, 2)),
        watches=(Watch(DEBATE, 0, (whole[:4], whole[4:]), ended=True),),
        interventions=(Intervention(DEBATE, "w1", "guide", 5),),
        wall=WALL,
    )
    return dataclasses.replace(made, **changed)


def rules(history: History, **how: Any) -> set[str]:
    return {violation.rule for violation in check(history, **how).violations}


def test_a_whole_history_is_not_found_fault_with() -> None:
    report = check(history())
    assert report.violations == ()
    assert (report.debates, report.events, report.steps, report.calls) == (1, 9, 2, 2)


def add_events(*more: Event, at: int = len(GOOD)) -> tuple[Event, ...]:
    return (*GOOD[:at], *more, *GOOD[at:])


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        pytest.param("complete", (), id="accepted and never stored"),
        pytest.param("closed", GOOD[:-1], id="left lying before its end"),
        pytest.param("closed", add_events(CLOSED), id="closed twice"),
        pytest.param("concluded", add_events(CONCLUDED, at=8), id="concluded twice"),
        pytest.param("concluded", (*GOOD[:7], CLOSED), id="closed without a conclusion"),
        pytest.param("complete", GOOD[1:], id="never created"),
        pytest.param(
            "complete",
            add_events((1, create_event("x", Warned(message="late")))),
            id="written to after its end",
        ),
        pytest.param(
            "complete",
            add_events(
                (1, create_event("f", DebateFailed(failure=DebateFailure(reason="X", message="y")))), at=7
            ),
            id="failed",
        ),
        pytest.param(
            "claims",
            add_events((2, create_event("x", Warned(message="?"))), at=6),
            id="an epoch nobody claimed",
        ),
        pytest.param(
            "claims",
            add_events((3, create_event("claim/3", Claimed(owner="b"))), at=6),
            id="an epoch skipped",
        ),
        pytest.param(
            "claims",
            add_events((2, create_event("claim/2", Claimed(owner="b"))), at=6),
            id="written by the owner before",
        ),
        pytest.param(
            "steps", add_events((1, create_event(ADA, make_success(ADA), 1)), at=6), id="a second outcome"
        ),
        pytest.param(
            "steps",
            add_events((1, create_event(ADA, make_success(ADA), 2)), at=6),
            id="a second attempt unasked",
        ),
        pytest.param(
            "steps", add_events((1, create_event(ADA, make_start(ADA), 1)), at=6), id="started again"
        ),
        pytest.param("steps", (*GOOD[:2], *GOOD[3:]), id="an outcome of nothing"),
        pytest.param(
            "steps",
            (
                *GOOD[:6],
                (1, create_event(BO, StepFailed(work=work(BO), digest="d", reason="X", message="y"), 1)),
                *GOOD[7:],
            ),
            id="our trouble recorded as an agent's",
        ),
        pytest.param(
            "steps",
            add_events(*[(1, create_event("note", Warned(message="!")))] * 2, at=6),
            id="the same note recorded twice",
        ),
        pytest.param(
            "interventions",
            add_events((1, create_event("again", INTERVENED[1].intervened)), at=6),
            id="an intervention twice",
        ),
        pytest.param("interventions", (*GOOD[:4], *GOOD[5:]), id="an intervention answered and not recorded"),
        pytest.param(
            "plan",
            add_events((1, create_event("x", make_success("x"), 1)), at=6),
            id="an answer nobody asked for",
        ),
    ],
)
def test_a_log_that_breaks_a_promise_is_noticed(rule: str, events: tuple[Event, ...]) -> None:
    assert rule in rules(history(events))


def test_a_missing_record_is_noticed() -> None:
    records = make_records(GOOD)
    assert {"dense", "chain"} <= rules(history(logs={DEBATE: [*records[:3], *records[4:]]}))


def test_a_changed_payload_is_noticed() -> None:
    records = make_records(GOOD)
    spoiled = replace(records[5], entries=(records[5].entries[0].replace(b": yes.", b": no!."),))
    assert rules(history(logs={DEBATE: [*records[:5], spoiled, *records[6:]]})) == {"chain"}


def test_a_record_moved_behind_the_end_is_noticed() -> None:
    """What a log without its lock does to the append of an owner that was left behind."""
    records = make_records(GOOD)
    moved = replace(records[5], first=10)
    assert {"dense", "chain"} <= rules(history(logs={DEBATE: [*records, moved]}))


def test_an_entry_that_cannot_be_read_is_noticed() -> None:
    records = make_records(GOOD)
    spoiled = replace(records[5], entries=(b"{",))
    assert "chain" in rules(history(logs={DEBATE: [*records[:5], spoiled, *records[6:]]}))


def test_time_that_runs_back_is_noticed() -> None:
    assert "time" in rules(history(logs={DEBATE: make_records(GOOD, seconds=-1.0)}))


@pytest.mark.parametrize(
    "streams",
    [
        pytest.param(lambda whole: (whole[:4], whole[5:]), id="a gap between two streams"),
        pytest.param(lambda whole: (whole[:4], whole[3:]), id="an event again after coming back"),
        pytest.param(lambda whole: ([*whole[:4], whole[3], *whole[4:]],), id="an event twice in a stream"),
        pytest.param(lambda whole: ([whole[1], whole[0], *whole[2:]],), id="events out of order"),
        pytest.param(lambda whole: (whole[:-1],), id="an end before the end"),
        pytest.param(lambda whole: ([*whole, Seen(10, "warned", b"x")],), id="an event that is not stored"),
        pytest.param(
            lambda whole: ([*whole[:-1], Seen(9, "closed", bytes(32))],), id="an event stored otherwise"
        ),
    ],
)
def test_a_watcher_that_did_not_see_a_prefix_is_noticed(streams: Any) -> None:
    watch = Watch(DEBATE, 0, streams(list_seen(make_records(GOOD))), ended=True)
    assert rules(history(watches=(watch,))) == {"watch"}


def test_a_watcher_that_was_cut_off_and_began_later_saw_what_it_should() -> None:
    whole = list_seen(make_records(GOOD))
    assert not rules(history(watches=(Watch(DEBATE, 3, (whole[3:6], []), ended=False),)))


def test_a_watcher_that_gave_up_is_noticed() -> None:
    watch = Watch(DEBATE, 0, ([],), ended=False, problem="UNAVAILABLE: silence")
    assert rules(history(watches=(watch,))) == {"watch"}


def test_two_debates_of_one_request_are_noticed() -> None:
    other = Accepted("deb-20260101-000000-zzzzzzzz", "req", "case-2.")
    assert "accepted" in rules(history(accepted=(Accepted(DEBATE, "req", MARK), other)))


def test_a_debate_that_nobody_was_told_of_must_be_whole_too() -> None:
    other = "deb-20260101-000000-zzzzzzzz"
    assert rules(history(others=(other,))) == {"complete"}


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(Intervention(DEBATE, "w1", "guide", 6), id="told another place"),
        pytest.param(Intervention(DEBATE, "w1", "guide", 0), id="refused and recorded"),
        pytest.param(Intervention(DEBATE, "w1", "cancel", 5), id="cancelled and completed all the same"),
    ],
)
def test_an_intervention_whose_answer_was_not_true_is_noticed(sent: Intervention) -> None:
    assert rules(history(interventions=(sent,))) == {"interventions"}


def test_a_call_made_twice_is_noticed() -> None:
    calls = (call(ADA, 103.5, 104.5), call(ADA, 104.6, 105.6, 3), call(BO, 104.5, 105.5, 2))
    report = check(history(calls=calls))
    assert [violation.rule for violation in report.violations] == ["paid twice"]
    assert (report.repeated, report.excused) == (1, 0)


@pytest.mark.parametrize("process", ["gateway-1", "embedded"])
def test_a_call_in_flight_when_its_gateway_was_killed_may_be_made_again(process: str) -> None:
    calls = (call(ADA, 103.5, 104.5), call(ADA, 104.6, 105.6, 3), call(BO, 104.5, 105.5, 2))
    report = check(history(calls=calls, faults=(Fault(process, "kill", 104.0, 104.1),)))
    assert report.violations == ()
    assert (report.repeated, report.excused) == (1, 1)


def test_a_call_in_flight_while_the_store_was_in_trouble_may_be_made_again() -> None:
    calls = (call(ADA, 103.5, 104.5), call(ADA, 104.6, 105.6, 3), call(BO, 104.5, 105.5, 2))
    report = check(history(calls=calls, faults=(Fault("store", "hold", 104.0, 104.1),)))
    assert report.violations == ()
    assert (report.repeated, report.excused) == (1, 1)


def test_a_call_that_the_model_answered_with_a_fault_may_be_made_again() -> None:
    refused = dataclasses.replace(call(ADA, 103.5, 104.0), outcome=Outcome.FAULTED)
    calls = (refused, call(ADA, 104.1, 104.5, 3), call(BO, 104.5, 105.5, 2))
    report = check(history(calls=calls))
    assert report.violations == ()
    assert report.repeated == 0


@pytest.mark.parametrize("other", ["case-0.", "case-2."])
def test_a_call_is_of_the_debate_whose_mark_comes_first(other: str) -> None:
    calls = (call(ADA, 103.5, 104.5), call(BO, 104.5, 105.5, 2))
    quoting = [dataclasses.replace(each, prompt=f"{each.prompt} as {other} said") for each in calls]
    accepted = (Accepted("deb-other", "req-2", other), Accepted(DEBATE, "req", MARK))
    report = check(history(calls=quoting, accepted=accepted))
    assert not [each for each in report.violations if each.debate == DEBATE]


def test_a_call_that_was_over_long_before_a_gateway_was_killed_may_not_be_made_again() -> None:
    calls = (call(ADA, 93.5, 94.5), call(ADA, 104.6, 105.6, 3), call(BO, 104.5, 105.5, 2))
    faults = (Fault("gateway-1", "kill", 104.0, 104.1),)
    assert rules(history(calls=calls, faults=faults)) == {"paid twice"}


def test_a_killed_orchestrator_is_no_reason_to_pay_twice_where_calls_are_stored() -> None:
    calls = (call(ADA, 103.5, 104.5), call(ADA, 104.6, 105.6, 3), call(BO, 104.5, 105.5, 2))
    spoiled = history(calls=calls, faults=(Fault("orchestrator-1", "kill", 104.0, 104.1),))
    assert rules(spoiled) == {"paid twice"}
    assert not rules(spoiled, stored_calls=False)


def test_a_call_made_after_its_answer_was_recorded_is_noticed() -> None:
    calls = (call(ADA, 107.5, 108.5), call(BO, 104.5, 105.5, 2))
    assert rules(history(calls=calls)) == {"done again"}


def test_a_call_outside_of_the_plan_is_noticed() -> None:
    calls = (*history().calls, call("something/else", 104.0, 105.0, 3))
    assert rules(history(calls=calls)) == {"plan"}


def test_an_answer_that_no_model_gave_is_noticed() -> None:
    assert rules(history(calls=history().calls[:1])) == {"plan"}
