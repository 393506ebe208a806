"""What a replica set that others wrote adds: a primary that steps down or is killed, users, and TLS."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from pymongo import MongoClient

from parley.storage.mongodb.database import LOG, open_mongodb
from parley.storage.mongodb.log import MongodbLog
from parley.storage.opening import open_store
from parley.storage.ports import Record, StorageError, StoreUnavailableError
from tests.contract.mongodb_server import Server
from tests.contract.replica_set import run_replica_set, step_down
from tests.contract.sent_commands import SentCommands
from tests.contract.server_process import NoServerError
from tests.support.certificates import Authority

_DATABASE = "contract"
_PASSWORD = "a p@ss/word"


def record(first: int) -> Record:
    return Record(first, f"a{first}", (b"entry %d" % first,))


async def test_an_append_waits_for_the_next_primary(replica_set_url: str) -> None:
    # This server says at once that it steps down, and not that it is the primary again.
    url = f"{replica_set_url}&serverMonitoringMode=poll&heartbeatFrequencyMS=500"
    async with open_store(url, _DATABASE) as store:
        await store.log.append("x", record(1))
        await asyncio.to_thread(step_down, replica_set_url, 2)
        await store.log.append("x", record(2))
        assert await store.log.read("x") == [record(1), record(2)]


async def test_what_was_acknowledged_outlasts_a_killed_primary_and_followers_go_on(
    replica_set_choice: Server | str, replica_set_url: str
) -> None:
    assert isinstance(replica_set_choice, Server)
    assert replica_set_choice.restart is not None
    async with open_store(replica_set_url, _DATABASE, poll_interval=0.02) as store:
        records = store.log.follow("x")
        for number in range(1, 20):
            await store.log.append("x", record(number))
        await asyncio.to_thread(replica_set_choice.restart, 0.0)
        assert await store.log.read("x") == [record(number) for number in range(1, 20)]
        await store.log.append("x", record(20))
        async with asyncio.timeout(60):
            assert [await anext(records) for _ in range(20)] == [record(number) for number in range(1, 21)]
        await records.aclose()


@contextmanager
def fail_inserts(url: str, times: int) -> Iterator[None]:
    """Let the next inserts be carried out and answered with the error that no majority confirmed them."""
    unconfirmed = {
        "code": 64,
        "codeName": "WriteConcernFailed",
        "errmsg": "waiting for replication timed out",
    }
    data = {"failCommands": ["insert"], "writeConcernError": unconfirmed}
    with MongoClient[dict[str, object]](url) as client:
        client.admin.command("configureFailPoint", "failCommand", mode={"times": times}, data=data)
        try:
            yield
        finally:
            client.admin.command("configureFailPoint", "failCommand", mode="off")


async def test_an_append_that_no_majority_confirmed_is_sent_again(replica_set_url: str) -> None:
    commands = SentCommands()
    async with open_mongodb(replica_set_url, _DATABASE, listeners=[commands]) as database:
        log = MongodbLog(database)
        with fail_inserts(replica_set_url, 1):
            await log.append("x", record(1))
        assert len(commands.of("insert")) == 2
        assert await log.read("x") == [record(1)]


async def test_an_append_that_the_server_does_not_take_is_an_error_and_nothing_is_stored(
    replica_set_url: str,
) -> None:
    async with open_store(replica_set_url, _DATABASE) as store:
        await store.log.append("x", record(1))
        with MongoClient[dict[str, object]](replica_set_url) as client:
            database = client[f"{client.get_default_database().name}_{_DATABASE}"]
            database.command("collMod", LOG, validator={"log": "another"})
        with pytest.raises(StorageError, match="validation") as refused:
            await store.log.append("x", record(2))
        assert type(refused.value) is StorageError
        assert await store.log.read("x") == [record(1)]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a replica set that asks for a user and speaks TLS alone, and the file of its authority."""
    authority = Authority(tmp_path)
    certificate, key = authority.sign("mongodb")
    folder = tmp_path / "data"
    try:
        with run_replica_set(folder=folder) as server, MongoClient[dict[str, object]](server.url) as client:
            client.admin.command(
                "createUser", "parley", pwd=_PASSWORD, roles=["readWriteAnyDatabase", "dbAdminAnyDatabase"]
            )
        tls = ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
        with run_replica_set("--auth", *tls, folder=folder) as server:
            yield urlsplit(server.url).netloc, authority.file
    except NoServerError as error:
        pytest.skip(f"MongoDB: {error}")


async def test_a_store_is_opened_with_a_user_and_the_authority_that_the_url_names(
    guarded: tuple[str, Path], tmp_path: Path
) -> None:
    address, authority = guarded

    def url(password: str, authority: Path) -> str:
        options = (
            f"replicaSet=secantus&tls=true&tlsCAFile={quote(str(authority))}&authSource=admin&timeoutMS=5000"
        )
        return f"mongodb://parley:{quote(password, safe='')}@{address}/tested?{options}"

    async with open_store(url(_PASSWORD, authority), _DATABASE) as store:
        await store.log.append("x", record(1))
        assert await store.log.read("x") == [record(1)]
    with pytest.raises(StorageError, match="check the user and password in PARLEY_STORE"):
        async with open_store(url("wrong", authority), _DATABASE):
            pass
    with pytest.raises(StoreUnavailableError, match="certificate verify failed"):
        async with open_store(url(_PASSWORD, Authority(tmp_path, "other").file), _DATABASE):
            pass
