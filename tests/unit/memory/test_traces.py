"""Traces of debates: what a process has read of them is kept, since it does not change."""

from typing import Any

import pytest

from parley.memory import traces as traces_module
from parley.memory.debate import storage_key
from parley.memory.traces import TRACES, Traces
from parley.memory.writing import write_together
from parley.storage.ports import Documents
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest
from tests.support.manual_clock import ManualClock
from tests.unit.memory.reads import note_reads

RECORDS = [
    RecordDebateRequest(
        debate=PastDebate(debate_id=f"deb-{n}", question=f"Which {word}?", conclusion="This.")
    )
    for n, word in enumerate(("queue", "store", "cache"))
]
KEYS = [storage_key("acme", each.debate.debate_id) for each in RECORDS]


class KeptTraces:
    """A store with traces, and which of them were read."""

    def __init__(self, documents: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
        self.documents = documents
        self.clock = ManualClock()
        self.traces = Traces(documents, self.clock)
        self.read = note_reads(documents, monkeypatch, "words")

    async def read_now(self) -> list[str]:
        """Load all and return which were read."""
        self.read.clear()
        found = await self.traces.load(KEYS)
        assert [
            found[key].words >= {word} for key, word in zip(KEYS, ("queue", "store", "cache"), strict=True)
        ]
        return sorted(self.read)


@pytest.fixture
async def kept(documents: Documents, monkeypatch: pytest.MonkeyPatch) -> KeptTraces:
    await documents.prepare(TRACES)
    for each in RECORDS:
        await Traces(documents, ManualClock()).apply("acme", each, write_together)
    return KeptTraces(documents, monkeypatch)


async def test_a_trace_is_read_once_in_a_day(kept: KeptTraces) -> None:
    assert await kept.read_now() == KEYS
    kept.clock.advance(23 * 3600)
    assert await kept.read_now() == []
    kept.clock.advance(3600)
    assert await kept.read_now() == KEYS


async def test_a_trace_that_was_written_here_is_not_read(kept: KeptTraces) -> None:
    await kept.traces.apply("acme", RECORDS[0], write_together)
    assert await kept.read_now() == KEYS[1:]
    await kept.traces.remove("acme", RECORDS[0])
    assert KEYS[0] not in await kept.traces.load(KEYS)


async def test_the_traces_that_were_read_last_are_kept(
    kept: KeptTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces_module, "_MAX_KEPT", 2)
    kept.traces = Traces(kept.documents, kept.clock)
    for key in KEYS:
        await kept.traces.load([key])
    assert await kept.read_now() == KEYS[:1]


async def test_nothing_is_kept_of_a_debate_that_is_forgotten(kept: KeptTraces) -> None:
    await kept.read_now()
    await kept.traces.remove("acme", RECORDS[0])
    assert list(await kept.traces.load(KEYS)) == KEYS[1:]


async def test_nothing_is_kept_of_a_debate_that_is_recalled_while_it_is_forgotten(
    kept: KeptTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = kept.documents.delete

    async def recall_first(*given: Any) -> bool:
        await kept.traces.load(KEYS)
        return await delete(*given)

    monkeypatch.setattr(kept.documents, "delete", recall_first)
    await kept.traces.remove("acme", RECORDS[0])
    assert list(await kept.traces.load(KEYS)) == KEYS[1:]


async def test_a_trace_that_was_missing_is_looked_for_again(kept: KeptTraces) -> None:
    missing = RecordDebateRequest(debate=PastDebate(debate_id="deb-9", question="Which?", conclusion="This."))
    key = storage_key("acme", "deb-9")
    assert not await kept.traces.load([key])
    await kept.traces.apply("acme", missing, write_together)
    assert list(await kept.traces.load([key])) == [key]
