"""Debates that a process knows: they are looked up, and not read again, as long as they are stored."""

from collections.abc import Sequence
from typing import Any

import pytest

from parley.memory import known_debates
from parley.memory.debate import DEBATES, FORGETTING, RECORDING, storage_key, to_fields
from parley.memory.embedding import Embedding
from parley.memory.known_debates import KnownDebates
from parley.memory.stored_vectors import to_vector
from parley.storage.ports import Document, Documents
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest
from tests.support.manual_clock import ManualClock
from tests.unit.memory.reads import note_reads

SMALL = PastDebate(debate_id="deb-1", question="Which?", conclusion="This one.")
LARGE = PastDebate(debate_id="deb-2", question="Which?", conclusion="x" * 10_000)
KEYS = [storage_key("acme", each.debate_id) for each in (SMALL, LARGE)]


class KeptDebates:
    """A store with both debates, and which of them were read whole."""

    def __init__(self, documents: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
        self.documents = documents
        self.clock = ManualClock()
        self.known = KnownDebates(documents, self.clock, alone=False)
        self.read = note_reads(documents, monkeypatch, "record")

    async def read_now(self) -> list[str]:
        """Load both and return which were read whole."""
        self.read.clear()
        assert await self.known.load(KEYS) == dict(zip(KEYS, (SMALL, LARGE), strict=True))
        return sorted(self.read)


@pytest.fixture
async def kept(documents: Documents, monkeypatch: pytest.MonkeyPatch) -> KeptDebates:
    await documents.prepare(DEBATES)
    for key, each in zip(KEYS, (SMALL, LARGE), strict=True):
        fields = to_fields("acme", RecordDebateRequest(debate=each), Embedding(to_vector([1.0]), "m"))
        await documents.insert(DEBATES, key, fields)
    return KeptDebates(documents, monkeypatch)


async def test_a_debate_is_read_once_in_a_day_unless_it_is_large(kept: KeptDebates) -> None:
    assert await kept.read_now() == KEYS
    kept.clock.advance(23 * 3600)
    assert await kept.read_now() == KEYS[1:]
    kept.clock.advance(3600)
    assert await kept.read_now() == KEYS


async def test_of_many_debates_the_last_are_kept(kept: KeptDebates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_debates, "_MAX_KEPT", 2)
    known, other = KnownDebates(kept.documents, kept.clock, alone=True), PastDebate(question="And which?")
    fields = to_fields("acme", RecordDebateRequest(debate=other), Embedding(to_vector([1.0]), "m"))
    keys = [KEYS[0], "acme/deb-3", "acme/deb-4"]
    for key in keys[1:]:
        await kept.documents.insert(DEBATES, key, fields)
    for key in (*keys, keys[1], keys[2], keys[0]):
        assert key in await known.load([key])
    assert kept.read == [*keys, keys[0]]


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "replicas"])
async def test_only_who_is_alone_does_not_look_up_what_it_knows(
    kept: KeptDebates, monkeypatch: pytest.MonkeyPatch, *, alone: bool
) -> None:
    known = KnownDebates(kept.documents, kept.clock, alone=alone)
    await known.load(KEYS[:1])
    found = note_reads(kept.documents, monkeypatch, "key")
    assert await known.load(KEYS[:1]) == {KEYS[0]: SMALL}
    assert (not found) == alone


async def test_a_debate_that_is_to_be_forgotten_while_it_is_read_is_not_kept(
    kept: KeptDebates, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, find = KnownDebates(kept.documents, kept.clock, alone=True), kept.documents.find

    async def find_and_forget(*args: Any, **kwargs: Any) -> Sequence[Document]:
        found = await find(*args, **kwargs)
        await kept.documents.update(DEBATES, KEYS[0], {"unfinished": FORGETTING})
        known.remove(KEYS[0])
        return found

    monkeypatch.setattr(kept.documents, "find", find_and_forget)
    await known.load(KEYS[:1])
    assert await known.load(KEYS[:1]) == {}


async def test_a_debate_whose_mark_has_not_ended_is_not_read_again(kept: KeptDebates) -> None:
    await kept.read_now()
    await kept.documents.update(DEBATES, KEYS[0], {"unfinished": RECORDING})
    assert await kept.read_now() == KEYS[1:]


@pytest.mark.parametrize("known", [True, False])
async def test_a_debate_that_is_forgotten_elsewhere_is_not_returned(kept: KeptDebates, known: bool) -> None:
    if known:
        await kept.read_now()
    await kept.documents.update(DEBATES, KEYS[0], {"unfinished": FORGETTING})
    assert list(await kept.known.load(KEYS)) == KEYS[1:]
    await kept.documents.delete(DEBATES, KEYS[0])
    assert list(await kept.known.load(KEYS)) == KEYS[1:]


@pytest.mark.parametrize("here", [True, False], ids=["here", "elsewhere"])
async def test_nothing_is_kept_of_a_debate_that_was_forgotten(kept: KeptDebates, here: bool) -> None:
    await kept.read_now()
    if here:
        kept.known.remove(KEYS[0])
    else:
        await kept.documents.update(DEBATES, KEYS[0], {"unfinished": FORGETTING})
        await kept.known.load(KEYS)
        await kept.documents.update(DEBATES, KEYS[0], {"unfinished": None})
    assert await kept.read_now() == KEYS, "it is read anew"
