"""Messages of a watch as bytes, written once for all watchers."""

import pytest

from parley.orchestrator.api import watch_messages
from parley.orchestrator.api.watch_messages import WatchMessages
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.watch.watcher import Heartbeat
from parley.v1.event_pb2 import Event, Warned
from parley.v1.orchestrator_pb2 import EventBatch, StepDelta, WatchDebateResponse


def make_event(size: int, *, bare: bool = False) -> Envelope:
    message = Event(sequence=7, warned=Warned(message="x" * size))
    entry = b"" if bare else message.SerializeToString()
    return Envelope(entry, message, "warned", message.warned)


@pytest.mark.parametrize("size", [0, 100, 119, 120, 121, 122, 200, 16_400, 3_000_000])
def test_an_event_is_sent_as_it_is_stored(size: int) -> None:
    event = make_event(size)
    written = WatchMessages().write((event,), 6)
    assert event.entry in written
    assert WatchDebateResponse.FromString(written) == WatchDebateResponse(event=event.message)
    assert written == WatchDebateResponse(event=event.message).SerializeToString()


def test_text_and_events_that_are_not_sent_as_they_are_stored_are_written_once() -> None:
    messages, delta, bare = WatchMessages(), StepDelta(key="a", text="so far"), make_event(5, bare=True)
    text, event = (delta,), (bare,)
    assert WatchDebateResponse.FromString(messages.write(text, 6)).delta == delta
    assert WatchDebateResponse.FromString(messages.write(event, 6)).event == bare.message
    assert messages.write(text, 7) is messages.write(text, 6)
    assert messages.write(event, 7) is messages.write(event, 6)


def test_a_batch_holds_its_events_as_they_are_stored_and_its_text() -> None:
    events = (make_event(5), make_event(200, bare=True), make_event(16_400))
    deltas = (StepDelta(key="a", text="so far"), StepDelta(key="b", text="x" * 20_000))
    written = WatchMessages().write((*deltas, *events), 6)
    assert [each.entry in written for each in events] == [True, True, True]
    batch = EventBatch(events=[each.message for each in events], deltas=deltas)
    assert WatchDebateResponse.FromString(written) == WatchDebateResponse(events=batch)


def test_a_heartbeat_says_how_far_its_own_watcher_is() -> None:
    messages, beat = WatchMessages(), Heartbeat()
    for last in (3, 4):
        told = WatchDebateResponse.FromString(messages.write(beat, last))
        assert told.heartbeat.last_sequence == last


def test_few_and_small_messages_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_messages, "_KEPT", 2)
    messages = WatchMessages()
    deltas = [(StepDelta(text=str(number)),) for number in range(3)]
    first = [messages.write(each, 0) for each in deltas]
    assert messages.write(deltas[2], 0) is first[2]
    assert messages.write(deltas[0], 0) is not first[0]
    large = (StepDelta(text="x" * 20_000),)
    assert messages.write(large, 0) is not messages.write(large, 0)
