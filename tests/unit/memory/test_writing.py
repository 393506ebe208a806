"""Works whose first writes begin together."""

import asyncio
from contextlib import suppress

import pytest

from parley.memory.writing import Write, run_to_common_write
from parley.storage.ports import StoreUnavailableError


class Work:
    """A work that writes once it is told to, or fails or ends then instead."""

    def __init__(self) -> None:
        self.goes_on, self.comes_to_write = asyncio.Event(), asyncio.Event()
        self.written = False
        self.fails = self.ends = False

    async def run(self, write: Write) -> None:
        await self.goes_on.wait()
        if self.fails:
            raise StoreUnavailableError("away")
        if not self.ends:
            self.comes_to_write.set()
            await write(self._write(), self._write())

    async def _write(self) -> None:
        self.written = True


@pytest.mark.parametrize("last", ["writes", "fails", "ends"])
async def test_no_first_write_begins_before_every_work_has_come_to_its_own_or_ended(last: str) -> None:
    one, other = Work(), Work()
    other.fails, other.ends = last == "fails", last == "ends"
    running = asyncio.create_task(run_to_common_write(one.run, other.run))
    one.goes_on.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not one.written
    other.goes_on.set()
    if last == "fails":
        with pytest.raises(StoreUnavailableError):
            await running
    else:
        await running
    assert (one.written, other.written) == (True, last == "writes")


async def test_a_work_that_is_cancelled_before_its_write_writes_nothing() -> None:
    one, other = Work(), Work()
    running = asyncio.create_task(run_to_common_write(one.run, other.run))
    one.goes_on.set()
    await one.comes_to_write.wait()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert running.cancelled()
    assert not one.written
