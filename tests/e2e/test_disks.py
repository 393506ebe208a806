"""What the command does where a disk is full or read-only, or what is stored was damaged. Nothing recorded is lost."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import model_server as models
from tests.support.command import Command
from tests.support.mounts import fill, mount, mount_for_block
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(300)  # a start takes its time on a machine that is busy

TWO = ["--agents", "architect,security", "--rounds", "1"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with models("--latency-ms", "300") as address:
        yield address


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, url: str) -> Path:
    """A folder with one debate in `data`."""
    folder = tmp_path_factory.mktemp("kept")
    assert debate(folder, url).end().code == 0
    return folder


@pytest.fixture
def folder(tmp_path: Path, kept: Path) -> Path:
    shutil.copytree(kept / "data", tmp_path / "data")
    return tmp_path


@pytest.fixture
def disk(folder: Path) -> Iterator[Path]:
    """A folder whose `data` is a disk of 64 MB."""
    shutil.move(folder / "data", folder / "before")
    (folder / "data").mkdir()
    with mount_for_block(folder / "data", "-t", "tmpfs", "-o", "size=64m", "tmpfs"):
        # The files of the vector index have holes, which a copy fills.
        without_index = shutil.ignore_patterns("vectors")
        shutil.copytree(folder / "before", folder / "data", dirs_exist_ok=True, ignore=without_index)
        yield folder
        Command.kill_all()


def debate(folder: Path, url: str) -> Command:
    return Command(["debate", "Which?", *TWO], folder, {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"})


def test_a_full_disk_lists_and_shows_and_refuses_a_debate_with_one_line(disk: Path, url: str) -> None:
    fill(disk / "data")
    listed = Command(["list"], disk).end()
    assert listed.code == 0, listed.err
    (known,) = re.findall(r"deb-\d{8}-\d{6}-[a-z0-9]{8}", listed.out)
    assert Command(["show", known], disk).end().code == 0
    ended = debate(disk, url).end()
    assert ended.code == 4
    assert "is full; free some room and try again" in ended.err[-1]


@pytest.mark.long
def test_a_full_disk_shows_agents_and_ratings_and_takes_feedback_when_there_is_room(
    disk: Path, url: str
) -> None:
    variables = {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"}
    (known,) = re.findall(r"deb-\d{8}-\d{6}-[a-z0-9]{8}", Command(["list"], disk).end().out)
    before = Command(["ratings"], disk).end()
    fill(disk / "data")
    full = Command(["ratings"], disk).end()
    assert (full.code, full.out, full.err) == (0, before.out, [])
    assert "architect" in full.out
    agents = Command(["agents"], disk, variables).end()
    assert (agents.code, agents.err) == (0, [])
    assert "openai/test" in agents.out
    refused = Command(["feedback", known, "up"], disk).end()
    assert (refused.code, refused.out, len(refused.err)) == (1, "", 1)
    assert "is full; free some room and try again" in refused.err[0]
    (disk / "data/fill").unlink()
    assert Command(["feedback", known, "up"], disk).end().code == 0
    after = Command(["ratings", "--json"], disk).end()
    assert json.loads(after.out)[0]["approvals"] == 1, (
        "the word that was refused is not counted beside the other"
    )


@pytest.mark.long
def test_a_debate_whose_disk_becomes_full_goes_on_when_there_is_room(disk: Path, url: str) -> None:
    running = debate(disk, url)
    running.wait_for("round 1/1")
    fill(disk / "data")
    until(lambda: "store unavailable" in (disk / "data/parley.log").read_text() or running.process.poll(), 60)
    (disk / "data/fill").unlink()
    ended = running.end()
    assert ended.code == 0, ended.err
    assert ended.out


@pytest.mark.long
def test_the_answer_is_printed_where_the_disk_has_no_room_for_memory(disk: Path, url: str) -> None:
    with (disk / "data/fill").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk / "data").free - 10_000_000)
    ended = debate(disk, url).end()
    assert ended.code == 0, ended.err
    assert ended.out


def test_a_folder_that_is_read_only_is_named(folder: Path) -> None:
    data = folder / "data"
    with mount_for_block(data, "--bind", str(data)):
        mount("-o", "remount,bind,ro", str(data), str(data))
        ended = Command(["list"], folder).end()
        assert (ended.code, ended.out, len(ended.err)) == (4, "", 1)
        assert ended.err[0].endswith("data: cannot be used: Read-only file system")


def test_flipped_pages_are_damage_and_not_a_store_that_is_away(folder: Path) -> None:
    with (folder / "data/parley.db").open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(2 * 4096)
        file.write(os.urandom(size - 2 * 4096))
    ended = Command(["list"], folder).end()
    assert ended.code in {1, 4}, "as it is found: by what is read, or already at the start"
    assert (ended.out, len(ended.err)) == ("", 1)
    assert "parley.db is damaged" in ended.err[0]
    assert ended.err[0].endswith("move it away or restore a backup")


def test_an_emptied_file_is_no_new_store(folder: Path) -> None:
    file = folder / "data/parley.db"
    os.truncate(file, 0)
    ended = Command(["list"], folder).end()
    assert (ended.code, ended.out, len(ended.err)) == (4, "", 1)
    assert ended.err[0].endswith("parley.db is empty; restore a backup, or remove the file to start again")
    assert file.stat().st_size == 0


def test_a_cut_file_is_damaged(folder: Path) -> None:
    os.truncate(folder / "data/parley.db", 50_000)
    ended = Command(["list"], folder).end()
    assert (ended.code, len(ended.err)) == (4, 1)
    assert "parley.db is damaged" in ended.err[0]
