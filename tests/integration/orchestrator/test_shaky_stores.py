"""A store that fails or is away for a while costs a debate nothing; a damaged log is said once."""

import asyncio
from functools import partial
from typing import Any

import pytest

from parley.orchestrator.log.index import DebateIndex
from parley.runtime.backoff import Backoff
from parley.storage.ports import AppendConflictError, Log, Record, StoreUnavailableError
from tests.integration.orchestrator.owning import StallingLog, wait_for_looks
from tests.support.debate_logs import check_log, outcomes
from tests.support.orchestration import Backstage, make_debate, until

SPEC = make_debate(2, 1)


class ShakyLog(StallingLog):
    """A log that takes every third append without saying so, and loses every other third."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.sent: dict[tuple[str, str], tuple[bytes, ...]] = {}
        self._count = 0

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        self._count += 1
        assert self.sent.setdefault((log, record.append_id), record.entries) == record.entries
        if self._count > 1 and self._count % 3 == 1:
            raise StoreUnavailableError("lost")
        await self.inner.append(log, record, **beside)
        if self._count % 3 == 2:
            raise StoreUnavailableError("kept")


async def test_a_store_that_is_shaky_loses_and_repeats_nothing(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.orchestrator.log.journal._BACKOFF", Backoff(first=0.001, maximum=0.01))
    log: Any = ShakyLog(stage.store.log)
    async with stage.replica("one", log=log) as one:
        events = await stage.comes_to(await one.create(SPEC), "COMPLETED")
    check_log(events)
    assert len(outcomes(events)) == len(stage.gateway.steps()) + 3  # the vote, ratings and memory
    assert len(stage.gateway.steps()) == 8


async def test_a_heartbeat_that_finds_the_store_away_does_not_stop_the_debate(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = stage.gateway.hold("synthesis")
    missed = asyncio.Event()

    async def keep_lease(*_: object, **__: object) -> bool:
        missed.set()
        raise StoreUnavailableError("away")

    async with stage.replica("one", lease_seconds=0.03) as one:
        monkeypatch.setattr(DebateIndex, "renew_lease", keep_lease)
        debate = await one.create(SPEC)
        async with asyncio.timeout(30):
            await hold.reached.wait()
            await missed.wait()
        hold.release()
        events = await stage.comes_to(debate, "COMPLETED")
    assert events[-1].epoch == 1


async def _forge_event(stage: Backstage, debate: str) -> bool:
    """Append what is no event; false where the owner was about to write at that place when it died."""
    forged = Record(len(await stage.events(debate)) + 1, "forged", (b"{}",))
    try:
        await stage.store.log.append(f"default/{debate}", forged)
    except AppendConflictError:
        return False
    return True


async def test_a_damaged_log_is_said_and_not_tried_again_and_again(stage: Backstage) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await hold.reached.wait()
    await until(partial(_forge_event, stage, debate), "it writes no more, and its last event is forged")
    reads = 0
    read = stage.store.log.read

    class Counting(StallingLog):
        async def read(self, log: str, after: int = 0, limit: int = 1000) -> Any:
            nonlocal reads
            reads += 1
            return await read(log, after, limit)

    log: Any = Counting(stage.store.log)
    hold.release()
    async with stage.replica("two", log=log) as two:
        other = await two.create(SPEC)
        await stage.comes_to(other, "COMPLETED")
        await wait_for_looks(two)
    assert reads == 1, "that of a new debate is not read"
