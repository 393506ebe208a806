"""What is accepted can be stored, and what cannot be stored is refused."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.orchestrator.log.deletions import DELETIONS
from parley.orchestrator.log.index import DEBATES
from parley.runtime.errors import ParleyError
from parley.storage.ports import Collection, Log, Record, StoreUnavailableError
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.event_pb2 import DebateCreated
from tests.support.debate_logs import StoppingLog
from tests.support.orchestration import Backstage, Replica, backstage, make_debate
from tests.support.passing_log import PassingLog

MAX_BYTES = 4 * 1024 * 1024
"""Of all documents of a request."""


@pytest.mark.parametrize(
    ("character", "count"),
    [
        *((character, MAX_BYTES) for character in ('"', "\\", "\n", "\x01")),
        ("é", MAX_BYTES // 2),
        ("€", MAX_BYTES // 3),
    ],
)
async def test_documents_that_are_large_in_a_store_are_kept_whole(
    tmp_path: Path, character: str, count: int
) -> None:
    text = character * count
    async with backstage(tmp_path) as stage:
        debate = await stage.replica().create(
            make_debate(context=(ContextDocument(path="a.json", text=text),))
        )
        (created,) = [event.payload for event in await stage.events(debate)]
    assert isinstance(created, DebateCreated)
    assert created.spec.context[0].text == text


async def test_a_debate_larger_than_what_a_store_keeps_is_refused_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    spec = make_debate(context=(ContextDocument(path="a.json", text="x" * 3 * MAX_BYTES),))
    async with backstage(tmp_path) as stage:
        replica = stage.replica()
        with pytest.raises(ParleyError) as refused:
            await replica.create(spec)
        assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
        assert [each.field for each in refused.value.violations] == ["spec"]
        assert "bytes to store" in refused.value.message
        index = replica.dependencies.index
        assert (await index.list_owned(), await index.list_waiting()) == ([], ([], True))


class _KnownLogs(PassingLog):
    """Knows which logs there are."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.names: set[str] = set()

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        await super().append(log, record, **beside)
        self.names.add(log)

    async def delete(self, log: str) -> None:
        await super().delete(log)
        self.names.discard(log)


def _large(text: str = "x") -> DebateCreated:
    return make_debate(context=(ContextDocument(path="a.json", text=text * MAX_BYTES),))


async def _kinds(stage: Backstage, replica: Replica, request_id: str) -> list[str]:
    found = await replica.dependencies.index.find_by_request("default", request_id)
    return [] if found is None else await stage.kinds(found.debate)


async def test_no_record_of_a_large_debate_holds_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Mapping[str, Any]] = []
    async with backstage(tmp_path) as stage:
        documents = stage.store.documents
        insert = documents.insert

        async def note_fields(collection: Collection, key: str, fields: Mapping[str, Any]) -> None:
            written.append(fields if collection == DEBATES else {})
            await insert(collection, key, fields)

        monkeypatch.setattr(documents, "insert", note_fields)
        async with stage.replica() as replica:
            await replica.create(_large())
    assert max(len(str(each)) for each in written) < 2000


@pytest.mark.parametrize("same", [True, False], ids=["the same", "another"])
async def test_of_two_large_debates_by_one_request_id_one_is_made_and_nothing_is_left_of_the_other(
    tmp_path: Path, *, same: bool
) -> None:
    specs = [_large(), _large() if same else _large("y")]
    async with backstage(tmp_path) as stage:
        log = _KnownLogs(stage.store.log)
        replicas = [stage.replica(log=log), stage.replica(log=log)]
        made = [replica.create(spec, request_id="one") for replica, spec in zip(replicas, specs, strict=True)]
        found = await asyncio.gather(*made, return_exceptions=True)
        debates = {each for each in found if isinstance(each, str)}
        refused = [each.reason for each in found if isinstance(each, ParleyError)]
        (debate,) = debates
        assert refused == ([] if same else ["REQUEST_ID_REUSED"])
        assert log.names == {f"default/{debate}"}
        assert not await stage.store.documents.find(DELETIONS, {})
        assert (await stage.kinds(debate))[0] == "debate_created"


@pytest.mark.parametrize("same", [True, False], ids=["the same", "another"])
async def test_of_two_debates_by_one_request_id_one_runs_and_nothing_is_left_of_the_other(
    tmp_path: Path, *, same: bool
) -> None:
    specs = [make_debate(), make_debate(2 if same else 3)]
    async with backstage(tmp_path) as stage:
        log = _KnownLogs(stage.store.log)
        async with stage.replica("one", log=log) as one, stage.replica("two", log=log) as two:
            made = [each.create(spec, request_id="one") for each, spec in zip((one, two), specs, strict=True)]
            found = await asyncio.gather(*made, return_exceptions=True)
            (debate,) = {each for each in found if isinstance(each, str)}
            refused = [each.reason for each in found if isinstance(each, ParleyError)]
            assert refused == ([] if same else ["REQUEST_ID_REUSED"])
            assert log.names == {f"default/{debate}"}
            await stage.comes_to(debate, "COMPLETED")


class _UnansweredLog(PassingLog):
    """A log whose first append is not answered. `durable`: whether it is made."""

    def __init__(self, log: Log, *, durable: bool) -> None:
        super().__init__(log)
        self._durable = durable
        self._is_first = True

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        is_first, self._is_first = self._is_first, False
        if self._durable or not is_first:
            await super().append(log, record, **beside)
        if is_first:
            raise StoreUnavailableError("the connection was cut")


@pytest.mark.parametrize("durable", [False, True])
async def test_a_debate_that_could_not_be_confirmed_is_made_by_the_same_request(
    tmp_path: Path, *, durable: bool
) -> None:
    async with backstage(tmp_path) as stage:
        log = _UnansweredLog(stage.store.log, durable=durable)
        async with stage.replica(log=log, lease_seconds=0.1) as replica:
            with pytest.raises(StoreUnavailableError):
                await replica.create(make_debate(), request_id="one")
            assert bool(await _kinds(stage, replica, "one")) == durable
            debate = await replica.create(make_debate(), request_id="one")
            await stage.comes_to(debate, "COMPLETED")


@pytest.mark.parametrize("durable", [False, True], ids=["before", "after"])
async def test_a_large_debate_of_which_a_crash_left_no_record_is_made_by_the_same_request(
    tmp_path: Path, *, durable: bool
) -> None:
    async with backstage(tmp_path) as stage:
        log = StoppingLog(stage.store.log, 1, durable=durable)
        made = asyncio.create_task(stage.replica(log=log).create(_large(), request_id="one"))
        await log.stopped.wait()
        made.cancel()
        await asyncio.gather(made, return_exceptions=True)
        async with stage.replica() as replica:
            assert await _kinds(stage, replica, "one") == []
            await replica.create(_large(), request_id="one")
            assert (await _kinds(stage, replica, "one"))[0] == "debate_created"


async def test_a_large_debate_whose_record_could_not_be_confirmed_keeps_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backstage(tmp_path) as stage:
        documents = stage.store.documents
        insert = documents.insert

        async def cut_off(collection: Collection, key: str, fields: Mapping[str, Any]) -> None:
            await insert(collection, key, fields)
            if collection == DEBATES:
                raise StoreUnavailableError("the connection was cut")

        async with stage.replica() as replica:
            monkeypatch.setattr(documents, "insert", cut_off)
            with pytest.raises(StoreUnavailableError):
                await replica.create(_large(), request_id="one")
            monkeypatch.setattr(documents, "insert", insert)
            debate = await replica.create(_large(), request_id="one")
            assert (await stage.kinds(debate))[0] == "debate_created"


async def test_a_large_debate_whose_record_was_inserted_by_a_try_before_keeps_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backstage(tmp_path) as stage:
        documents = stage.store.documents
        insert = documents.insert

        async def insert_twice(collection: Collection, key: str, fields: Mapping[str, Any]) -> None:
            await insert(collection, key, fields)
            if collection == DEBATES:
                await insert(collection, key, fields)

        monkeypatch.setattr(documents, "insert", insert_twice)
        async with stage.replica() as replica:
            debate = await replica.create(_large(), request_id="one")
            assert (await stage.kinds(debate))[0] == "debate_created"
