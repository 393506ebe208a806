"""A file that is followed: when it changes, when it is asked for, and when it cannot be used."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from parley.gateway import file_watch
from parley.gateway.file_watch import FileWatch
from parley.runtime.errors import ConfigurationError


class Applied:
    """Counts how often the file was taken, and refuses it when told to."""

    def __init__(self) -> None:
        self.times = 0
        self.refuses = False
        self.asked = asyncio.Event()

    async def __call__(self) -> None:
        self.times += 1
        self.asked.set()
        if self.refuses:
            raise ConfigurationError("agents.yaml:1: no good")

    async def again(self) -> None:
        self.asked.clear()
        async with asyncio.timeout(30):
            await self.asked.wait()


@asynccontextmanager
async def follow_file(
    path: Path, hangup: asyncio.Event, others: Callable[[], Sequence[Path]] = tuple
) -> AsyncIterator[Applied]:
    applied = Applied()
    task = asyncio.create_task(FileWatch(path, hangup, applied, others).run())
    try:
        yield applied
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_it_is_read_when_it_changes_or_is_asked_for_and_not_otherwise(tmp_path: Path) -> None:
    path, hangup = tmp_path / "agents.yaml", asyncio.Event()
    path.write_text("a: 1")
    async with follow_file(path, hangup) as applied:
        hangup.set()
        await applied.again()
        path.write_text("a: 22")
        await applied.again()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await applied.again()
        assert applied.times == 2


async def test_it_rests_until_the_next_look_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_watch, "_LOOK_SECONDS", 600.0)
    path, hangup, looks = tmp_path / "agents.yaml", asyncio.Event(), []
    path.write_text("a: 1")

    def list_others() -> Sequence[Path]:
        looks.append(path)
        return ()

    async with follow_file(path, hangup, list_others) as applied:
        hangup.set()
        await applied.again()
        for _ in range(20):  # time enough for twenty looks
            await asyncio.to_thread(path.stat)
        assert len(looks) == 2, "one at the start, and one that was asked for"


async def test_a_file_that_is_replaced_behind_a_link_has_changed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"name: {name}")
    link = tmp_path / "agents.yaml"
    link.symlink_to(tmp_path / "one")
    async with follow_file(link, asyncio.Event()) as applied:
        (tmp_path / "new").symlink_to(tmp_path / "two")
        (tmp_path / "new").rename(link)
        await applied.again()


async def test_a_file_that_cannot_be_used_is_said_to_be_so_and_followed_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agents.yaml"
    path.write_text("a: 1")
    async with follow_file(path, asyncio.Event()) as applied:
        applied.refuses = True
        path.write_text("a: 22")
        await applied.again()
        applied.refuses = False
        path.unlink()
        await applied.again()
        path.write_text("a: 333")
        await applied.again()
    assert "agents.yaml:1: no good" in "".join(capfd.readouterr())
