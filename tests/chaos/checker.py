"""The history checker: reads a run's history and says which promises were broken.

It knows nothing of how services work, but for the shape of a stored event (`parley.orchestrator.log.envelope`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from parley.orchestrator.log.envelope import GENESIS, Envelope, open_entry
from parley.orchestrator.log.events import CorruptEventError
from parley.storage.ports import Record
from parley.v1.event_pb2 import (
    Claimed,
    Closed,
    Concluded,
    DebateFailed,
    Intervened,
    Resumed,
    StepFailed,
    StepStarted,
    StepSucceeded,
    WaitFinished,
)
from tests.chaos.history import History, ModelCall, Watch
from tests.support.model_server.answers import digest_of

_TEXT_PATHS = ("/v1/responses", "/v1/chat/completions")
_RECORDING_SECONDS = 2.0
"""From the last byte of an answer until it is safe in the gateway's store, on a slow machine."""
_CLOCK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: which rule, of which debate, and how."""

    rule: str
    debate: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.debate}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. `repeated` calls are those made again, of which `excused` were in flight at a gateway's fault."""

    violations: tuple[Violation, ...]
    debates: int
    events: int
    steps: int
    calls: int
    repeated: int
    excused: int


def check(history: History, *, stored_calls: bool = True, may_fail: Collection[str] = frozenset()) -> Report:
    """Check a history against every promise. `may_fail` are reasons that agents' steps may fail for.

    With `stored_calls` only a call in flight when a gateway was killed, stopped or cut off its store may be made again,
    or when the store of all was in trouble;
    without, one in flight when anything on its way was disturbed may be, too.
    """
    marks = {each.debate: each.mark for each in history.accepted}
    logs = {debate: _read(debate, records) for debate, records in history.logs.items()}
    calls = _group_by_mark(history, set(marks.values()))
    violations: list[Violation] = []
    paid = _Paid(history, stored_calls=stored_calls)
    for debate in [*marks, *history.others]:
        log = logs.get(debate, _Log((), ()))
        violations += [Violation(rule, debate, message) for rule, message in log.problems]
        events = log.events
        for rule in (_ends, _claims, partial(_steps, may_fail=may_fail), _interventions_once):
            violations += [Violation(name, debate, message) for name, message in rule(events)]
        if debate in marks:
            found = paid.check(events, calls[marks[debate]])
            violations += [Violation(name, debate, message) for name, message in found]
    violations += _check_accepted_once(history)
    for watch in history.watches:
        events = logs.get(watch.debate, _Log((), ())).events
        violations += [Violation("watch", watch.debate, message) for message in _check_watch(watch, events)]
    violations += _interventions_kept(history, logs)
    return Report(
        tuple(violations),
        debates=len(marks),
        events=sum(len(log.events) for log in logs.values()),
        steps=sum(isinstance(each.payload, StepSucceeded) for log in logs.values() for each in log.events),
        calls=sum(len(each) for each in calls.values()),
        repeated=paid.repeated,
        excused=paid.excused,
    )


Found = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Log:
    """A log's events as far as they can be read, and what is wrong with how they are stored."""

    events: tuple[Envelope, ...]
    problems: tuple[tuple[str, str], ...]


def _read(debate: str, records: Sequence[Record]) -> _Log:
    """Read every entry by itself, so that one damaged place does not hide the others."""
    events: list[Envelope] = []
    problems: list[tuple[str, str]] = []
    expected, before = 1, GENESIS
    for record in records:
        for place, entry in enumerate(record.entries, start=record.first):
            if place != expected:
                problems.append(("dense", f"entry {place} stands where {expected} belongs"))
            expected = place + 1
            try:
                event = open_entry(entry, None)
            except CorruptEventError as error:
                problems.append(("chain", f"entry {place}: {error}"))
                continue
            if event.sequence != place:
                problems.append(("dense", f"entry {place} says that it is event {event.sequence}"))
            if event.debate != debate:
                problems.append(("dense", f"entry {place} is of debate {event.debate}"))
            try:
                open_entry(entry, before)
            except CorruptEventError as error:
                problems.append(("chain", str(error)))
            if events and event.time < events[-1].time:
                problems.append(("time", f"event {place} is earlier than the one before it"))
            before = event.hash
            events.append(event)
    return _Log(tuple(events), tuple(problems))


def _ends(events: Sequence[Envelope]) -> Found:
    """Accepted debates complete: one `created` first, one `concluded`, one `closed` last."""
    if not events:
        yield "complete", "nothing of it is stored"
        return
    kinds = Counter(event.kind for event in events)
    if events[0].kind != "debate_created" or kinds["debate_created"] != 1:
        yield "complete", f"{kinds['debate_created']} creations, and the first event is {events[0].kind}"
    if kinds["concluded"] != 1:
        yield "concluded", f"{kinds['concluded']} conclusions"
    if kinds["closed"] != 1:
        yield "closed", f"{kinds['closed']} closings"
    if not isinstance(events[-1].payload, Closed):
        yield "complete", f"its last event is {events[-1].kind} ({events[-1].key})"
    if kinds["debate_failed"]:
        failed = next(event.payload for event in events if isinstance(event.payload, DebateFailed))
        yield "complete", f"it failed: {failed.failure.reason}: {failed.failure.message}"


def _claims(events: Sequence[Envelope]) -> Found:
    """Epochs begin with their claim and never come back: whoever lost a claim writes nothing."""
    epoch = 0
    for event in events:
        if isinstance(event.payload, Claimed):
            if event.epoch != epoch + 1:
                yield "claims", f"event {event.sequence} claims epoch {event.epoch} after {epoch}"
            epoch = event.epoch
        elif event.epoch != epoch:
            yield (
                "claims",
                f"event {event.sequence} ({event.kind}) was written under epoch {event.epoch} in {epoch}",
            )


def _steps(events: Sequence[Envelope], may_fail: Collection[str]) -> Found:
    """No recorded step is done again, and none fails where every model answers."""
    started: set[tuple[str, int]] = set()
    ended: dict[str, int] = {}
    noted: set[tuple[str, str, int]] = set()
    resumed = False
    for event in events:
        match event.payload:
            case StepStarted():
                if (event.key, event.attempt) in started or event.attempt <= ended.get(event.key, 0):
                    yield "steps", f"{event.key} attempt {event.attempt} is started again at {event.sequence}"
                started.add((event.key, event.attempt))
            case StepSucceeded() | StepFailed() as outcome:
                if (event.key, event.attempt) not in started:
                    yield "steps", f"{event.key} has an outcome at {event.sequence} and was never started"
                if event.attempt <= ended.get(event.key, 0) or (event.key in ended and not resumed):
                    yield "steps", f"{event.key} has a second outcome at {event.sequence}"
                ended[event.key] = event.attempt
                if (
                    isinstance(outcome, StepFailed)
                    and outcome.work.agent_id
                    and outcome.reason not in may_fail
                ):
                    yield (
                        "steps",
                        f"{event.key} failed at {event.sequence}: {outcome.reason}: {outcome.message}",
                    )
            case Resumed() | WaitFinished():
                resumed = True
            case _:
                name = (event.kind, event.key, event.attempt)
                if name in noted:
                    yield "steps", f"{event.kind} {event.key} is recorded again at {event.sequence}"
                noted.add(name)


def _interventions_once(events: Sequence[Envelope]) -> Found:
    recorded = Counter(event.payload.request_id for event in events if isinstance(event.payload, Intervened))
    for request_id, times in recorded.items():
        if times > 1:
            yield "interventions", f"intervention {request_id} is recorded {times} times"


def _check_accepted_once(history: History) -> Iterator[Violation]:
    debates: dict[str, str] = {}
    for each in history.accepted:
        other = debates.setdefault(each.request_id, each.debate)
        if other != each.debate:
            yield Violation("accepted", each.debate, f"request {each.request_id} had made {other} already")


def _check_watch(watch: Watch, events: Sequence[Envelope]) -> Iterator[str]:
    """A watcher sees a prefix of the log after its start, each event once, over all its streams."""
    last = watch.after
    if watch.problem:
        yield f"the watcher gave up after {len(watch.streams)} streams: {watch.problem}"
    for number, stream in enumerate(watch.streams, start=1):
        for seen in stream:
            if seen.sequence != last + 1:
                yield f"stream {number} sends event {seen.sequence} after {last}"
            last = seen.sequence
            stored = events[last - 1] if 0 < last <= len(events) else None
            if stored is None:
                yield f"stream {number} sends event {last}, which is not stored"
            elif (stored.kind, stored.hash) != (seen.kind, seen.hash):
                yield f"stream {number} sends {seen.kind} as event {last}; stored is {stored.kind}"
    if watch.ended and last < len(events):
        yield f"the watch ended at {last} of {len(events)}"


def _interventions_kept(history: History, logs: Mapping[str, _Log]) -> Iterator[Violation]:
    """An intervention that was answered is recorded at the sequence that was told, a refused one is not."""
    for sent in history.interventions:
        recorded = {
            event.payload.request_id: event
            for event in logs.get(sent.debate, _Log((), ())).events
            if isinstance(event.payload, Intervened)
        }
        event = recorded.get(sent.request_id)
        told = f"{sent.act} {sent.request_id}"
        if sent.sequence is None:
            continue
        if sent.sequence == 0 and event is not None:
            message = f"{told} was refused and is recorded at {event.sequence}"
        elif sent.sequence > 0 and (event is None or event.sequence != sent.sequence):
            where = event.sequence if event else "nowhere"
            message = f"{told} was said to be recorded at {sent.sequence} and is at {where}"
        else:
            answered = [
                each.payload.HasField("outcome")
                for each in logs[sent.debate].events
                if isinstance(each.payload, Concluded)
            ]
            if not (sent.act == "cancel" and sent.sequence > 0 and answered == [True]):
                continue
            message = f"{told} was answered, and the debate completed"
        yield Violation("interventions", sent.debate, message)


def _group_by_mark(history: History, marks: set[str]) -> Mapping[str, list[ModelCall]]:
    found: defaultdict[str, list[ModelCall]] = defaultdict(list)
    for call in history.calls:
        if call.path in _TEXT_PATHS:
            # A debate that recalls another may quote its mark, after its own.
            places = {at: mark for mark in marks if (at := call.prompt.find(mark)) >= 0}
            if places:
                found[places[min(places)]].append(call)
    return found


class _Paid:
    """Whether every call was planned, and made once. Counts what was repeated over all debates."""

    def __init__(self, history: History, *, stored_calls: bool) -> None:
        self._wall = history.wall
        self.repeated = self.excused = 0
        self._faults = [
            fault
            for fault in history.faults
            if fault.service in ("store", "embedded")
            or (fault.service == "gateway" and (fault.kind != "cut" or fault.target.endswith(">store")))
            or (not stored_calls and fault.service in ("gateway", "orchestrator"))
        ]

        self._owner_faults = [
            fault for fault in history.faults if fault.service in ("orchestrator", "embedded", "store")
        ]

    def check(self, events: Sequence[Envelope], calls: Sequence[ModelCall]) -> Found:
        """Check one debate's calls against its log."""
        by_prompt: defaultdict[str, list[ModelCall]] = defaultdict(list)
        for call in sorted(calls, key=lambda each: each.started):
            by_prompt[digest_of(call.path, call.model, call.prompt)].append(call)
        outcomes = {
            event.key: event
            for event in events
            if isinstance(event.payload, StepSucceeded) and event.payload.HasField("reply")
        }
        asked = {
            event.key
            for event in events
            if isinstance(event.payload, StepStarted) and event.payload.work.agent_id
        }
        planned = len(asked) + self._lost_with_owner(events, by_prompt)
        if len(by_prompt) > planned:
            yield "plan", f"{len(by_prompt)} different prompts were sent for {len(asked)} steps"
        if len(by_prompt) < len(outcomes):
            yield "plan", f"{len(outcomes)} answers are recorded, and {len(by_prompt)} prompts were sent"
        recorded = self._recorded(outcomes)
        attempts = sum(isinstance(event.payload, StepStarted) and event.attempt > 1 for event in events)
        for digest, same in by_prompt.items():
            for call, again in _list_repeated(same):
                self.repeated += 1
                if self._excused(call):
                    self.excused += 1
                elif attempts and call.outcome != "answered":
                    attempts -= 1  # it failed, and was waited for
                else:
                    yield "paid twice", _describe_repeat(call, again)
            done = recorded.get(digest[:8])
            for call in same:
                if done is not None and call.started > done + _CLOCK_SECONDS and not self._woken(call):
                    yield (
                        "done again",
                        f"a call started {call.started - done:.3f} s after its answer was recorded",
                    )

    def _lost_with_owner(
        self, events: Sequence[Envelope], by_prompt: Mapping[str, Sequence[ModelCall]]
    ) -> int:
        """Return how many prompts may lack a step: a call begins before its start is durable.

        The next owner makes the same call again, unless the debate was cancelled and has no use for it.
        """
        if not any(
            isinstance(event.payload, Concluded) and not event.payload.HasField("outcome") for event in events
        ):
            return 0
        return sum(
            any(
                call.started <= fault.ended and call.ended + _RECORDING_SECONDS >= fault.began
                for call in same
                for fault in self._owner_faults
            )
            for same in by_prompt.values()
        )

    def _recorded(self, outcomes: Mapping[str, Envelope]) -> dict[str, float]:
        """Return when the answer to each prompt was recorded, found by the digest that answers in text begin with."""
        found = {}
        for event in outcomes.values():
            assert isinstance(event.payload, StepSucceeded)
            found[event.payload.reply.text[7:15]] = event.time.timestamp() - self._wall
        return found

    def _excused(self, call: ModelCall) -> bool:
        return any(
            call.started <= fault.ended and call.ended + _RECORDING_SECONDS >= fault.began
            for fault in self._faults
        )

    def _woken(self, call: ModelCall) -> bool:
        """Tell whether a gateway that was stopped for a while sent this call when it went on."""
        return any(
            fault.kind == "stop" and fault.began <= call.started <= fault.ended + _RECORDING_SECONDS
            for fault in self._faults
        )


def _list_repeated(same: Sequence[ModelCall]) -> Iterator[tuple[ModelCall, ModelCall]]:
    """Yield calls, and those after them, but for calls that the model answered with a fault: these cost nothing."""
    return ((call, again) for call, again in pairwise(same) if call.outcome != "faulted")


def _describe_repeat(call: ModelCall, again: ModelCall) -> str:
    return (
        f"call {call.number} ({call.outcome} after {call.ended - call.started:.3f} s) was made again as call"
        f" {again.number}, {again.started - call.ended:.3f} s after its end; {call.prompt[:60]!r}"
    )
