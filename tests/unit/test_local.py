"""The system in one process: what goes wrong around it does not hide what goes wrong in it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from parley.convergence.settings import ConvergenceSettings
from parley.edge.settings import EdgeSettings
from parley.gateway.settings import GatewaySettings
from parley.local import LocalOptions, _log_file, local_system, rewrap
from parley.memory.settings import MemorySettings
from parley.orchestrator.settings import OrchestratorSettings
from parley.ratings.settings import RatingsSettings
from parley.runtime.errors import ConfigurationError
from parley.runtime.settings import ServiceSettings
from parley.storage import folder_lock
from parley.storage.folder_lock import FolderLock
from parley.storage.opening import open_store
from parley.storage.settings import StoreSettings
from tests.support.encryption import write_key

SETTINGS = (
    OrchestratorSettings,
    GatewaySettings,
    ConvergenceSettings,
    RatingsSettings,
    MemorySettings,
    EdgeSettings,
)


def _fail_after_a_line() -> None:
    with _log_file(Path("/dev/full")) as log:
        with pytest.raises(OSError, match="No space"):
            log.write("a line\n")
        raise ValueError("the other")


def test_a_log_on_a_full_disk_hides_no_other_error() -> None:
    with pytest.raises(ValueError, match="the other"):
        _fail_after_a_line()


async def test_a_system_that_runs_is_found_without_waiting_for_its_lock(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path}")
    lock = FolderLock.acquire(tmp_path)
    assert lock is not None
    pauses: list[float] = []
    monkeypatch.setattr(folder_lock, "time", SimpleNamespace(sleep=pauses.append))
    with lock:
        lock.publish("127.0.0.1:7401,127.0.0.1:7402")
        async with local_system(LocalOptions()) as system:
            assert (system.orchestrator_address, system.own) == ("127.0.0.1:7401", False)
    assert pauses == []


async def test_without_a_key_nothing_is_wrapped_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARLEY_ENCRYPTION_KEYS", raising=False)
    with pytest.raises(ConfigurationError, match="PARLEY_ENCRYPTION_KEYS: is not set"):
        await rewrap()


async def test_only_a_database_that_is_there_is_wrapped_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path / 'data'}")
    monkeypatch.setenv("PARLEY_ENCRYPTION_KEYS", str(write_key(tmp_path / "key")))
    assert list(await rewrap()) == []
    assert not (tmp_path / "data").exists()
    async with open_store(f"sqlite:///{tmp_path / 'data'}", "ratings"):
        pass
    assert "ratings: 0 keys wrapped anew" in list(await rewrap())


async def test_no_key_is_wrapped_anew_in_a_folder_of_an_earlier_parley_which_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path}")
    monkeypatch.setenv("PARLEY_ENCRYPTION_KEYS", str(write_key(tmp_path / "key")))
    (tmp_path / "ratings.db").touch()
    with pytest.raises(ConfigurationError, match=r"ratings\.db is of an earlier Parley"):
        await rewrap()


@pytest.mark.parametrize("settings", [*SETTINGS, StoreSettings])
def test_no_variable_of_another_service_is_taken_for_a_misspelled_one(
    settings: type[ServiceSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in SETTINGS:
        for name in each.model_fields:
            monkeypatch.setenv(f"PARLEY_{name}".upper(), "")
    settings.load()
