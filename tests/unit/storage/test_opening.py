import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from parley.storage.data_folder import sqlite_folder
from parley.storage.opening import open_store
from parley.storage.ports import Record, StorageError, StoreUnavailableError
from tests.support.commits import count_commits


@pytest.mark.parametrize(
    "url",
    [
        "",
        "data",
        "/data",
        "sqlite://",
        "sqlite:///",
        "sqlite:data",
        "postgres://host/db",
        "mongodb:/host",
        "http://x:1",
    ],
)
async def test_a_bad_url_is_one_line_that_names_the_setting(url: str) -> None:
    with pytest.raises(ValueError, match=r"\A[^\n]*PARLEY_STORE[^\n]*\Z"):
        async with open_store(url, "some"):
            pass


async def test_a_password_in_a_bad_url_is_not_repeated() -> None:
    with pytest.raises(ValueError) as raised:
        async with open_store("postgres://user:secret@host/db", "some"):
            pass
    assert "secret" not in str(raised.value)


async def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file.db"
    file.touch()
    with pytest.raises(ValueError, match=r"PARLEY_STORE.*file\.db.*folder"):
        async with open_store(f"sqlite:///{file}", "some"):
            pass


def test_paths_are_relative_absolute_or_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sqlite_folder("sqlite:///data") == Path("data")
    assert sqlite_folder("sqlite:////var/lib/parley") == Path("/var/lib/parley")
    assert sqlite_folder("sqlite:///~/parley") == tmp_path / "parley"
    assert sqlite_folder("sqlite:////with%20space") == Path("/with space")
    assert sqlite_folder("mongodb://host") is None


async def test_each_service_has_tables_of_its_own_in_one_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/data"
    async with open_store(url, "one") as one, open_store(url, "two") as two:
        assert one.exclusive
        await one.log.append("x", Record(1, "a", (b"entry",)))
        assert await two.log.read("x") == []
        assert {path.name for path in (tmp_path / "data").glob("*.db")} == {"parley.db"}


async def test_services_of_one_process_write_in_common_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}"
    async with open_store(url, "one") as one:
        async with open_store(url, "two") as two:
            commits = count_commits(monkeypatch)
            record = Record(1, "a", (b"entry",))
            await asyncio.gather(one.log.append("x", record), two.log.append("x", record))
            assert commits == [2]
        await one.log.append("x", Record(2, "b", (b"after the other one was closed",)))
    async with open_store(url, "one") as again:
        assert len(await again.log.read("x")) == 2


@pytest.mark.parametrize("service", ["orchestrator", "gateway"])
async def test_a_folder_of_a_parley_with_a_file_for_each_service_is_refused_by_name_to_each(
    service: str, tmp_path: Path
) -> None:
    (tmp_path / "orchestrator.db").touch()
    with pytest.raises(StorageError, match=r"orchestrator\.db is of an earlier Parley"):
        async with open_store(f"sqlite:///{tmp_path}", service):
            pass
    assert not (tmp_path / "parley.db").exists()


async def test_a_server_that_is_away_and_an_option_that_is_unknown_are_each_a_line() -> None:
    url = "mongodb://127.0.0.1:1/?nonsense=1&timeoutMS=300"
    with capture_logs() as lines, pytest.raises(StoreUnavailableError) as raised:
        async with open_store(url, "some"):
            pass
    assert str(raised.value).startswith("MongoDB does not answer: 127.0.0.1:1: ")
    assert "configured timeouts" not in str(raised.value)
    (warned,) = lines
    assert "nonsense" in warned["reason"]
    assert "\n" not in warned["reason"]
