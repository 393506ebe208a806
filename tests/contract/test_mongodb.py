"""What MongoDB adds to the ports: concerns, unknown outcomes, change streams, migrations."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing, nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect, OperationFailure

from parley.runtime.backoff import Backoff
from parley.storage.mongodb.database import Database, open_mongodb
from parley.storage.mongodb.documents import MongodbDocuments
from parley.storage.mongodb.log import MongodbLog
from parley.storage.opening import open_store
from parley.storage.ports import Collection, Document, Index, Record, StorageError, StoreUnavailableError
from tests.contract.cutting_proxy import run_cutting_proxy
from tests.contract.mongodb_server import add_options
from tests.contract.sent_commands import SentCommands

ITEMS = Collection("items", (Index(("a",)), Index(("u",), unique=True)))


def record(first: int, by: str = "a") -> Record:
    return Record(first, f"{by}{first}", (b"entry %d" % first,))


async def use_everything(database: Database) -> None:
    documents, log = MongodbDocuments(database), MongodbLog(database)
    await documents.prepare(ITEMS)
    await documents.insert(ITEMS, "k", {"a": 1})
    await documents.get(ITEMS, "k")
    await documents.find(ITEMS, {"a": 1})
    await documents.update(ITEMS, "k", {"a": 2}, {"a": 1})
    await documents.delete(ITEMS, "k")
    await log.append("x", record(1))
    await log.append("x", record(2))
    await log.append("x", record(1))
    await log.read("x")
    await log.delete("x")


@pytest.mark.parametrize(
    "weak", ["", "w=1&journal=false&readConcernLevel=local&readPreference=secondaryPreferred"]
)
async def test_writes_go_to_a_majority_and_reads_come_from_one_whatever_the_url_says(
    mongodb_url: str, weak: str
) -> None:
    commands = SentCommands()
    async with open_mongodb(add_options(mongodb_url, weak), "contract", listeners=[commands]) as database:
        await use_everything(database)
    writes, reads = (
        commands.of("insert", "update", "delete", "createIndexes"),
        commands.of("find", "aggregate"),
    )
    assert {next(iter(command)) for command in writes} == {"insert", "update", "delete", "createIndexes"}
    assert len(reads) >= 6
    for command in writes:
        assert command["writeConcern"] == {"w": "majority", "j": True}
    for command in reads:
        assert command["readConcern"] == {"level": "majority"}
        assert command.get("$readPreference", {"mode": "primary"})["mode"].startswith("primary")


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("cuts", [1, 2])
async def test_an_append_whose_answer_was_lost_is_sent_again_and_stands_once(
    mongodb_url: str, first: int, cuts: int
) -> None:
    async with run_cutting_proxy(mongodb_url) as (proxy, url), open_mongodb(url, "contract") as database:
        log = MongodbLog(database)
        if first == 2:
            await log.append("x", record(1))
        proxy.lose_answers("insert", cuts)
        await log.append("x", record(first))
        assert proxy.lost == cuts
        assert [one.first for one in await log.read("x")] == list(range(1, first + 1))


async def test_an_append_is_not_sent_for_ever_and_the_caller_may_send_it_again(mongodb_url: str) -> None:
    async with run_cutting_proxy(mongodb_url) as (proxy, url), open_mongodb(url, "contract") as database:
        log = MongodbLog(database)
        proxy.lose_answers("insert", 1000)
        with pytest.raises(StoreUnavailableError):
            await log.append("x", record(1))
        assert proxy.lost < 10
        proxy.lose_answers("insert", 0)
        await log.append("x", record(1))
        assert await log.read("x") == [record(1)]


async def test_a_lost_answer_to_a_losing_append_is_still_a_conflict(mongodb_url: str) -> None:
    async with (
        open_mongodb(mongodb_url, "contract") as direct,
        run_cutting_proxy(mongodb_url) as (proxy, url),
        open_mongodb(url, "contract") as database,
    ):
        await MongodbLog(direct).append("x", record(1, by="winner"))
        proxy.lose_answers("insert", 1)
        with pytest.raises(StorageError, match="another record"):
            await MongodbLog(database).append("x", record(1))
        assert await MongodbLog(direct).read("x") == [record(1, by="winner")]


async def test_a_server_that_is_not_there_is_one_line() -> None:
    with pytest.raises(StoreUnavailableError, match=r"\AMongoDB does not answer: [^\n]{1,200}\Z"):
        async with open_store("mongodb://127.0.0.1:1/?timeoutMS=200", "contract"):
            pass


@pytest.mark.parametrize("url", ["mongodb://", "mongodb://host:port", "mongodb://a@b@c"])
async def test_a_bad_url_is_one_line_that_names_the_setting(url: str) -> None:
    with pytest.raises(ValueError, match=r"\A[^\n]*PARLEY_STORE[^\n]*\Z"):
        async with open_store(url, "contract"):
            pass


async def test_opening_again_runs_no_migration_twice(mongodb_url: str) -> None:
    for expected in (1, 0):
        commands = SentCommands()
        async with open_mongodb(mongodb_url, "contract", listeners=[commands]) as database:
            assert len(commands.of("createIndexes")) == expected
            assert [one["_id"] async for one in database["_migrations"].find({})] == [1]


async def test_many_replicas_may_start_at_once(mongodb_url: str) -> None:
    async def start(number: int) -> None:
        async with open_store(mongodb_url, "contract") as store:
            await store.documents.prepare(ITEMS)
            await store.documents.insert(ITEMS, str(number), {"a": number})

    await asyncio.gather(*(start(number) for number in range(8)))
    async with open_store(mongodb_url, "contract") as store:
        assert len(await store.documents.find(ITEMS, {})) == 8


async def test_each_service_has_a_database_of_its_own(mongodb_url: str) -> None:
    async with open_store(mongodb_url, "contract") as one, open_mongodb(mongodb_url, "other") as database:
        assert not one.exclusive
        await one.documents.insert(ITEMS, "k", {"a": 1})
        assert await one.documents.get(ITEMS, "k") == Document("k", {"a": 1})
        assert await MongodbDocuments(database).get(ITEMS, "k") is None
        await database.client.drop_database(database.name)


class Stream:
    """Stands in for a collection's change stream."""

    alive = True

    def __init__(self, *outcomes: Exception | Record | None) -> None:
        self._outcomes = list(outcomes)
        self.watched = 0

    async def watch(self, _: object, **options: object) -> Any:
        self.watched += 1
        return nullcontext(self)

    async def try_next(self) -> Mapping[str, Any] | None:
        if not self._outcomes:
            await asyncio.Event().wait()
        match self._outcomes.pop(0):
            case Exception() as error:
                raise error
            case Record(first, append_id, entries):
                fields = {"log": "x", "first": first, "append_id": append_id, "entries": list(entries)}
                return {"fullDocument": fields}
            case _:
                return None


async def test_a_change_stream_wakes_followers_before_they_poll(
    mongodb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.storage.mongodb.log._STREAM_BACKOFF", Backoff(first=0, maximum=0))
    async with open_mongodb(mongodb_url, "contract") as database, asyncio.timeout(20):
        log = MongodbLog(database, poll_interval=3600)
        await log.append("x", record(1))
        async with aclosing(log.follow("x")) as records:
            assert await anext(records) == record(1)
            stream = Stream(AutoReconnect("cut"), None, record(2))
            monkeypatch.setattr(log, "_records", stream)
            listening = asyncio.create_task(log.listen())
            assert await anext(records) == record(2)
            listening.cancel()
        assert stream.watched == 2


@pytest.mark.parametrize(
    "error",
    [
        AutoReconnect("cut"),
        OperationFailure("resume of change stream was not possible", 286),
        OperationFailure("not authorized", 13),
        KeyError("fullDocument"),
    ],
)
async def test_a_change_stream_begins_again_after_every_kind_of_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.storage.mongodb.log._STREAM_BACKOFF", Backoff(first=0, maximum=0))
    log = MongodbLog(cast("Any", {"_log": None}))
    stream = Stream(error, error, None, record(2))
    monkeypatch.setattr(log, "_records", stream)
    offered = asyncio.Event()
    tails = SimpleNamespace(begin_notices=lambda: None, hear=lambda: None, offer=lambda *_: offered.set())
    monkeypatch.setattr(log, "_tails", tails)
    listening = asyncio.create_task(log.listen())
    async with asyncio.timeout(20):
        await offered.wait()
    listening.cancel()
    assert stream.watched == 3


async def test_an_idle_change_stream_lives_longer_than_any_operation_may_take(
    replica_set_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    commands = SentCommands()
    url = add_options(replica_set_url, "timeoutMS=2000")
    async with (
        open_mongodb(replica_set_url, "contract") as elsewhere,
        open_mongodb(url, "contract", listeners=[commands]) as database,
        asyncio.timeout(60),
    ):
        log = MongodbLog(database, poll_interval=3600)
        async with aclosing(log.follow("x")) as records:
            await MongodbLog(elsewhere).append("x", record(1))
            assert await anext(records) == record(1)
            listening = asyncio.create_task(log.listen())
            await commands.wait_for("getMore", 5)  # the server takes a second for each
            await MongodbLog(elsewhere).append("x", record(2))
            assert await anext(records) == record(2)
        listening.cancel()
    assert len(commands.of("aggregate")) == 1
    assert not [one.message for one in caplog.records if one.name.startswith("parley")]


async def test_a_server_without_change_streams_is_told_of_once(
    mongodb_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with open_mongodb(mongodb_url, "contract") as database, asyncio.timeout(20):
        log = MongodbLog(database)
        monkeypatch.setattr(
            log, "_records", Stream(OperationFailure("only supported on replica sets", 40573))
        )
        await log.listen()
    assert [one.message for one in caplog.records if one.name.startswith("parley")] == [
        "followers of logs poll, because this MongoDB has no change streams: only supported on replica sets"
    ]
