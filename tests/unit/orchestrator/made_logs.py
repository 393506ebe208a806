"""Logs of debates made by hand, sealed as the journal seals them."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from parley.orchestrator.log.envelope import GENESIS, Envelope, create_event, open_entry, seal
from parley.orchestrator.log.events import Payload
from parley.orchestrator.model.times import timestamp
from parley.v1.agent_pb2 import Agent, Usage
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import DebateCreated, Event, StepFailed, StepSucceeded
from tests.support.memory_log import to_event
from tests.support.orchestration import make_debate, panel_settings, with_fields, with_spec

DEBATE = "deb-20270102-030405-abcdefgh"
START = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
ADA = Agent(id="ada", name="Ada", role="architect")
BO = Agent(id="bo", name="Bo", role="security")
JUDGE = Agent(id="judge", name="The judge", role="judge")
FIRST = with_spec(
    make_debate(2),
    question="Which store?",
    history_limit=5,
    agents=(ADA, BO),
    judge=JUDGE,
    settings=panel_settings(rounds=1),
)
SPEC = FIRST.spec

_FOREIGN_PAYLOAD = b"\x82\xfa\x01\x02\x08\x07"
"""Field 4000, which no version has: a message of two bytes."""


def make_created(**fields: Any) -> DebateCreated:
    """Return the first event of a debate, with these fields of its specification."""
    return with_fields(with_spec(FIRST, **fields), request_id="request-1")


CREATED = create_event("created", make_created())


def log(*events: Event | Payload) -> list[Envelope]:
    """Return the events of a log, one second apart; a bare payload gets a key of its own."""
    return list(_seal_all(events))


def foreign_entry(
    before: bytes,
    sequence: int,
    *,
    ignorable: bool,
    tenant: str = "default",
    debate: str = DEBATE,
    epoch: int = 1,
) -> bytes:
    """Return the stored bytes of an event of a kind that only a later version knows."""
    event = Event(
        tenant=tenant,
        debate_id=debate,
        sequence=sequence,
        epoch=epoch,
        key="later",
        time=timestamp(START + timedelta(days=365)),
        ignorable=ignorable,
    )
    body = event.SerializeToString() + _FOREIGN_PAYLOAD
    return body + b"\x7a\x20" + hashlib.sha256(before + body).digest()


def with_foreign(events: list[Envelope], *, ignorable: bool) -> list[Envelope]:
    """Return a log with one event more, of a kind that is not known here."""
    last = events[-1]
    entry = foreign_entry(last.hash, last.sequence + 1, ignorable=ignorable)
    return [*events, open_entry(entry, last.hash)]


def make_success(work: Work, text: str, *, attempt: int = 1, usage: Usage | None = None) -> Event:
    """Return an agent's success at a step."""
    used = usage or Usage(input_tokens=10, output_tokens=5, cost_micros=100, requests=1)
    reply = Reply(text=text, usage=used, route="openai-small", model="small")
    reply.latency.FromMilliseconds(1500)
    return create_event(key_of(work), StepSucceeded(work=work, digest="digest", reply=reply), attempt)


def make_failure(work: Work, message: str = "no answer", *, attempt: int = 1) -> Event:
    """Return an agent's failure at a step."""
    failure = StepFailed(
        work=work,
        digest="digest",
        reason="CALL_TIMEOUT",
        message=message,
        usage=Usage(input_tokens=3, output_tokens=0, cost_micros=7, requests=2),
    )
    return create_event(key_of(work), failure, attempt)


def key_of(work: Work) -> str:
    """Return a key for a step, one a work."""
    parts = (str(work.round), work.activity, work.agent_id, work.target_agent_id)
    return "/".join(each for each in parts if each)


def _seal_all(events: Iterable[Event | Payload]) -> Iterable[Envelope]:
    before = GENESIS
    for sequence, each in enumerate(events, start=1):
        envelope = seal(
            to_event(each, f"key/{sequence}"),
            tenant="default",
            debate=DEBATE,
            sequence=sequence,
            epoch=1,
            time=START + timedelta(seconds=sequence - 1),
            before=before,
        )
        before = envelope.hash
        yield envelope
