"""The first key of an installation, which the orchestrator's image creates without the `parley` command."""

import subprocess
from pathlib import Path

import pytest

from parley.orchestrator.audit.key_store import open_keys
from parley.runtime.identity.roles import role_name
from parley.storage.encryption.wrapping import NO_KEYS
from tests.support.warm_start import list_command


def create_key(store: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = list_command(*arguments, module="parley.orchestrator.create_key")
    return subprocess.run(
        command, env={"PARLEY_STORE": store}, capture_output=True, text=True, check=False, timeout=60
    )


def read_files(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.rglob("*.db*"))


async def test_it_is_printed_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'data'}"
    done = create_key(store, "platform", "--tenant", "acme", "--role", "debate", "--role", "steer")
    assert done.returncode == 0, done.stderr
    key = done.stdout.strip()
    async with open_keys(store, NO_KEYS) as keys:
        (found,) = await keys.list_all()
    assert (found.name, found.tenant, set(map(role_name, found.roles))) == (
        "platform",
        "acme",
        {"debate", "steer"},
    )
    assert key.split("_")[:2] == ["parley", found.id]
    assert done.stderr == f"Key {found.id} of tenant acme; it is not shown again.\n"
    assert key.split("_", 2)[2].encode() not in read_files(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([" "], "must be 1 to 64 characters on one line"),
        (["ada", "--tenant", "a b"], "must be 1 to 64 characters of A-Z a-z 0-9"),
        (["ada", "--role", "king"], "invalid choice: 'king'"),
    ],
)
def test_a_wrong_argument_is_refused_and_no_store_is_made(
    arguments: list[str], reason: str, tmp_path: Path
) -> None:
    done = create_key(f"sqlite:///{tmp_path / 'data'}", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert not list(tmp_path.iterdir())
