"""The token of a system on one's own machine is its user's alone."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from parley.runtime.errors import ConfigurationError
from parley.runtime.identity.guard import Credentials
from parley.runtime.identity.local_token import LocalToken, find_token


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    return tmp_path / "parley"


async def lets_in(token: LocalToken, text: str) -> bool:
    return await token.identify(Credentials(text, "", "", dict)) is not None


async def test_who_can_read_the_file_is_let_in_while_the_system_runs() -> None:
    token = LocalToken()
    with token.publish(7401):
        assert await lets_in(token, find_token(7401))
        assert not await lets_in(token, "")
        assert find_token(7402) == ""
    assert find_token(7401) == ""


def test_the_file_is_its_users_alone_and_is_gone_with_the_system(folder: Path) -> None:
    with LocalToken().publish(7401):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (file,) = folder.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(folder.iterdir()) == []


async def test_a_new_start_has_a_new_token_and_the_older_end_leaves_its_file_alone() -> None:
    older, newer = LocalToken(), LocalToken()
    with older.publish(7401):
        first = find_token(7401)
        with newer.publish(7401):
            assert not await lets_in(newer, first)
            second = find_token(7401)
        with newer.publish(7401):
            assert await lets_in(newer, second)


def test_what_a_process_left_behind_that_is_gone_is_no_token(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    file = folder / "7401.token"
    file.write_text("999999999 local_x")
    file.chmod(0o600)
    assert find_token(7401) == ""
    file.write_text(f"{os.getpid()} local_x")
    assert find_token(7401) == "local_x"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_could_read_or_write_is_not_trusted(folder: Path, mode: int) -> None:
    with LocalToken().publish(7401):
        (folder / "7401.token").chmod(mode)
        assert find_token(7401) == ""


def test_a_folder_that_others_can_enter_is_not_used(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(ConfigurationError, match="PARLEY_AUTH=none"), LocalToken().publish(7401):
        pass
    assert find_token(7401) == ""


def test_a_link_in_place_of_the_folder_or_the_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (target / "7401.token").write_text(f"{os.getpid()} local_x")
    (target / "7401.token").chmod(0o600)
    folder.symlink_to(target)
    assert find_token(7401) == ""
    folder.unlink()
    folder.mkdir(mode=0o700)
    (folder / "7401.token").symlink_to(target / "7401.token")
    assert find_token(7401) == ""
