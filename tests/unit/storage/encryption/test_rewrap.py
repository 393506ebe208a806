"""Data keys are wrapped anew in a pod of a service, whose image has no `parley` command."""

import subprocess
from pathlib import Path

from parley.storage.encryption.wrapping import FileKey, WrappingKeys
from parley.storage.opening import open_store
from parley.storage.ports import Record
from tests.support.encryption import damage_data_key, write_key
from tests.support.warm_start import list_command


def rewrap(store: str, service: str, keys: str) -> subprocess.CompletedProcess[str]:
    variables = {"PARLEY_STORE": store, "PARLEY_ENCRYPTION_KEYS": keys}
    command = list_command(service, module="parley.storage.rewrap")
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)


async def test_they_are_wrapped_by_the_first_key_of_the_settings(tmp_path: Path) -> None:
    old, new = write_key(tmp_path / "old"), write_key(tmp_path / "new")
    store = f"sqlite:///{tmp_path / 'data'}"
    async with open_store(store, "ratings", wrapping=WrappingKeys((FileKey.read(old),))) as opened:
        await opened.log.append("matches/acme", Record(1, "a", (b"x",)))
    done = rewrap(store, "ratings", f"{new},{old}")
    assert (done.returncode, done.stdout) == (0, "ratings: 1 key wrapped anew\n"), done.stderr
    async with open_store(store, "ratings", wrapping=WrappingKeys((FileKey.read(new),))) as opened:
        assert len(await opened.log.read("matches/acme")) == 1


async def test_damaged_ones_are_counted_and_the_others_are_wrapped(tmp_path: Path) -> None:
    old, new = write_key(tmp_path / "old"), write_key(tmp_path / "new")
    store = f"sqlite:///{tmp_path / 'data'}"
    async with open_store(store, "ratings", wrapping=WrappingKeys((FileKey.read(old),))) as opened:
        for tenant in ("acme", "beta"):
            await opened.log.append(f"matches/{tenant}", Record(1, "a", (b"x",)))
    damage_data_key(tmp_path / "data" / "parley.db", "ratings", "matches/acme")
    done = rewrap(store, "ratings", f"{new},{old}")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "ratings: 1 key wrapped anew"), done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == "1 key of ratings cannot be read; restore the database from a backup"


def test_without_a_key_it_says_what_to_set(tmp_path: Path) -> None:
    done = rewrap(f"sqlite:///{tmp_path}", "ratings", "")
    assert (done.returncode, done.stderr) == (
        4,
        "PARLEY_ENCRYPTION_KEYS: is not set, so there is no key to wrap by; name the file that holds it\n",
    )
