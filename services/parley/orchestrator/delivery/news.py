"""What there is to tell in a debate's log, and how it is told: the CloudEvent for programs, a short text for people."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import grpc
from google.protobuf.json_format import MessageToDict
from msgspec import Struct

from parley.orchestrator.delivery.deliveries import StoredDelivery
from parley.orchestrator.delivery.message import DeliveryError, Message
from parley.orchestrator.log.envelope import Envelope, open_entry
from parley.orchestrator.log.events import CorruptEventError
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET
from parley.orchestrator.model.short_text import to_beginning, to_line
from parley.orchestrator.model.times import time_of, timestamp
from parley.runtime.errors import ParleyError
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.unreadable import UnreadableError
from parley.storage.ports import Log, StoreDamagedError
from parley.v1.effect_pb2 import DECISION_RELATION_REVERSES, RelatedDecision
from parley.v1.event_pb2 import CheckpointOpened, Concluded, DebateCreated, DebateFailed, LimitReached
from parley.v1.hook_pb2 import (
    HOOK_EVENT_BUDGET_REACHED,
    HOOK_EVENT_CONCLUDED,
    HOOK_EVENT_DECISION_REVERSED,
    HOOK_EVENT_FAILED,
    HOOK_EVENT_TEST,
    HOOK_EVENT_WAITING,
    HookEvent,
    HookNews,
)
from parley.v1.link_pb2 import LINK_ACTION_APPROVE, LINK_ACTION_CONTINUE, LINK_ACTION_END, OneTimeLink

MAX_QUESTION: Final = 1000
MAX_ANSWER: Final = 100_000
_MAX_TITLE: Final = 200
_MAX_TEXT: Final = 1500
_BUDGETS: Final = (TOKEN_BUDGET, COST_BUDGET)
_EVENT: Final = "HOOK_EVENT_"
_TITLES: Final = {
    HOOK_EVENT_CONCLUDED: "Debate concluded",
    HOOK_EVENT_FAILED: "Debate failed",
    HOOK_EVENT_WAITING: "Debate waits for a person",
    HOOK_EVENT_BUDGET_REACHED: "Debate used up its budget",
    HOOK_EVENT_DECISION_REVERSED: "Debate reverses an earlier decision",
}
_LINK_TITLES: Final = {
    LINK_ACTION_CONTINUE: "Continue, by a link that works once",
    LINK_ACTION_END: "End the rounds, by a link that works once",
    LINK_ACTION_APPROVE: "Approve, by a link that works once",
}
_TEST_TEXT: Final = "Test of Parley\n\nThis hook works: what it was created for comes here."

WriteAnswer = Callable[[str, str], Awaitable[str]]
"""Returns the answer of a debate (tenant, id) for people, as CommonMark. Raises ParleyError if the debate is gone."""


WriteLinks = Callable[[str, Envelope], Awaitable[Sequence[OneTimeLink]]]
"""Returns the links for a hook (id) and the event that opened a checkpoint. May raise StorageError."""


def list_news(event: Envelope) -> Iterator[HookEvent.ValueType]:
    """Yield what hooks can be told of an event: mostly nothing, at most two."""
    match event.payload:
        case Concluded() as concluded:
            yield HOOK_EVENT_CONCLUDED
            if _list_reversed(concluded):
                yield HOOK_EVENT_DECISION_REVERSED
        case DebateFailed():
            yield HOOK_EVENT_FAILED
        case CheckpointOpened():
            yield HOOK_EVENT_WAITING
        case LimitReached() as reached if reached.limit in _BUDGETS:
            yield HOOK_EVENT_BUDGET_REACHED


class NewsWriter(Struct, frozen=True):
    """Writes messages for channels, from the log.

    Attributes:
        write_answer: Returns the answer of a concluded debate.
        public_url: Where people reach the console, without a slash at its end; empty if it is not known.
        write_links: Returns the one-time links that answer a checkpoint, for a hook; None: there are none.
    """

    log: Log
    write_answer: WriteAnswer
    public_url: str = ""
    write_links: WriteLinks | None = None

    async def write(self, delivery: StoredDelivery) -> Message | None:
        """Return what is sent for a delivery; None if its debate is gone, or the event tells of no such thing.

        Raise DeliveryError if the debate cannot be read, StorageError if the store is unavailable.
        """
        try:
            return await self._write(delivery)
        except (CorruptEventError, ParleyError, UnreadableError, StoreDamagedError) as error:
            if isinstance(error, ParleyError) and error.code is grpc.StatusCode.NOT_FOUND:
                return None
            raise DeliveryError(f"the debate cannot be read: {error}") from error

    async def _write(self, delivery: StoredDelivery) -> Message | None:
        created = await self._read_event(delivery.log, 1)
        event = await self._read_event(delivery.log, delivery.sequence)
        if created is None or event is None or delivery.event not in tuple(list_news(event)):
            return None
        assert isinstance(created.payload, DebateCreated)
        kind = HookEvent.ValueType(delivery.event)
        news = HookNews(
            event=kind,
            debate_id=event.debate,
            sequence=event.sequence,
            time=timestamp(event.time),
            question=created.payload.spec.question[:MAX_QUESTION],
            format=created.payload.spec.format,
            labels=created.payload.spec.labels,
            link=f"{self.public_url}/debates/{event.debate}" if self.public_url else "",
        )
        await self._add_details(news, event)
        if isinstance(event.payload, CheckpointOpened) and self.write_links is not None:
            news.one_time_links.extend(await self.write_links(delivery.hook, event))
        write = partial(_write_message, delivery, news, event.time)
        return await in_thread_if_large(len(news.answer), write)

    async def _add_details(self, news: HookNews, event: Envelope) -> None:
        match event.payload:
            case Concluded() as concluded:
                news.cancelled = not concluded.HasField("outcome")
                if not news.cancelled:
                    news.answer = (await self.write_answer(event.tenant, event.debate))[:MAX_ANSWER]
                if news.event == HOOK_EVENT_CONCLUDED:
                    news.ended_by = concluded.ended_by
                else:
                    news.reversed.extend(_list_reversed(concluded))
            case DebateFailed() as failed:
                news.failure.CopyFrom(failed.failure)
            case CheckpointOpened() as opened:
                news.checkpoint = event.key
                news.waits_for.CopyFrom(opened)
            case LimitReached() as reached:
                news.limit.CopyFrom(reached)
                del news.limit.late[:]

    async def _read_event(self, log: str, sequence: int) -> Envelope | None:
        records = await self.log.read(log, sequence - 1, 1)
        if not records or not records[0].first <= sequence <= records[0].last:
            return None
        entry = records[0].entries[sequence - records[0].first]
        return await in_thread_if_large(len(entry), partial(open_entry, entry, None))


def write_test(tenant: str, hook: str, test_id: str, now: datetime) -> Message:
    """Return a message that tests a hook."""
    news = HookNews(event=HOOK_EVENT_TEST, time=timestamp(now))
    body = _write_body(test_id, f"/parley/{tenant}", "", news, now)
    return Message(test_id, tenant, hook, HOOK_EVENT_TEST, "", 0, now, body, _TEST_TEXT, "")


def _write_message(delivery: StoredDelivery, news: HookNews, time: datetime) -> Message:
    return Message(
        id=delivery.id,
        tenant=delivery.tenant,
        hook=delivery.hook,
        event=news.event,
        debate=news.debate_id,
        sequence=news.sequence,
        time=time,
        body=_write_body(delivery.id, f"/parley/{delivery.tenant}", news.debate_id, news, time),
        text=_write_text(news),
        link=news.link,
        answers=tuple((_LINK_TITLES[each.action], each.url) for each in news.one_time_links),
    )


def _write_body(event_id: str, source: str, subject: str, news: HookNews, time: datetime) -> bytes:
    # Imported late: most orchestrators have no hook.
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    name = HookEvent.Name(news.event).removeprefix(_EVENT).lower().replace("_", "-")
    attributes = {
        "id": event_id,
        "source": source,
        "type": f"parley.debate.{name}",
        "specversion": "1.0",
        "time": time,
        "datacontenttype": "application/json",
        **({"subject": subject} if subject else {}),
    }
    return JSONFormat().write(CloudEvent(attributes=attributes, data=MessageToDict(news)))


def _write_text(news: HookNews) -> str:
    title = f"{_TITLES[news.event]}: {to_line(news.question, _MAX_TITLE)}"
    return "\n\n".join([title, *filter(None, map(str.strip, _list_paragraphs(news)))])


def _list_paragraphs(news: HookNews) -> Iterator[str]:
    if news.cancelled:
        yield "It was cancelled, without an answer."
    if news.event == HOOK_EVENT_CONCLUDED:
        yield to_beginning(news.answer, _MAX_TEXT)
    for each in news.reversed:
        yield f"It reverses the decision of {time_of(each.decided_at):%Y-%m-%d}: {to_line(each.decision, 300)} {each.reason}"
    if news.HasField("failure"):
        yield to_beginning(f"{news.failure.reason}: {news.failure.message}", _MAX_TEXT)
    if news.HasField("waits_for"):
        opened = news.waits_for
        asked = getattr(opened, opened.WhichOneof("request") or "direction").text
        yield to_beginning(asked, _MAX_TEXT)
        yield f"It waits until {time_of(opened.until):%Y-%m-%d %H:%M} UTC."
    if news.HasField("limit"):
        yield f"Limit: {news.limit.limit}, {news.limit.used:,.0f} used."


def _list_reversed(concluded: Concluded) -> list[RelatedDecision]:
    related: Iterable[RelatedDecision] = concluded.outcome.related
    return [each for each in related if each.relation == DECISION_RELATION_REVERSES]
