"""Pods come and go: an orchestrator is asked to stop while debates run, and releases are rolled out and back."""

import asyncio
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from parley.client import ParleyClient
from parley.orchestrator.log.index import DebateIndex
from parley.storage.opening import open_store
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED
from parley.v1.event_pb2 import Event
from tests.chaos.checker import check
from tests.chaos.crashing import whole
from tests.chaos.driver import Clients, spec
from tests.chaos.harness import GATEWAYS, ORCHESTRATORS, OTHERS, System
from tests.chaos.nursery import ROOT
from tests.support.orchestration import kind_of

_PATIENT: Final = {"PARLEY_LEASE_SECONDS": "600", "PARLEY_POLL_SECONDS": "1"}
"""Whatever is claimed within seconds was handed over: a lease that ends would take minutes."""
_HANDOVER_SECONDS: Final = 20.0
_BEFORE: Final = "910a241"
"""The last commit before Parley was installed by Helm. Its panel@1 is released, and must go on wherever it was begun."""
_SLOW: Final = {"latency": {"median": 1.0}}


@pytest.fixture
async def patient(system: System) -> AsyncIterator[System]:
    """Orchestrators whose leases do not end while a test runs."""
    system.make_ready()
    for name in ORCHESTRATORS:
        system.restart(name, variables=_PATIENT)
    yield system
    for name in ORCHESTRATORS:
        system.restart(name)


async def _watched(target: str, debate: str) -> Sequence[int]:
    """Watch a debate to its end with the client that everybody uses, and return the sequences that were seen."""
    async with ParleyClient(target) as client:
        return [event.sequence async for event in client.watch(debate) if isinstance(event, Event)]


async def _claimed(clients: Clients, debate: str, count: int) -> tuple[float, float]:
    """Wait for a debate's claim of that number; return its time and how long nothing had been recorded before it."""
    before = 0.0
    async with asyncio.timeout(60):
        async for event in clients.client.watch(debate):
            if not isinstance(event, Event):
                continue
            at = event.time.ToMicroseconds() / 1e6
            count -= kind_of(event) == "claimed"
            if count == 0:
                return at, at - before
            before = at
    raise AssertionError(f"{debate} ended without that claim")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [3, 50])
async def test_a_replica_that_is_asked_to_stop_delays_no_debate_and_no_watcher_hears_of_it(
    patient: System, clients: Clients, count: int
) -> None:
    with patient.rules(_SLOW):
        debates = await asyncio.gather(
            *(_created(clients, f"drained-{number}", ORCHESTRATORS[number % 3]) for number in range(count))
        )
        watchers = [asyncio.create_task(_watched(patient.target(), each)) for each in debates]
        await _all_owned(patient, count)
        before = time.time()
        await asyncio.to_thread(patient.terminate, "orchestrator-1")
        ended = time.time() - before
        seen = await asyncio.wait_for(asyncio.gather(*watchers), 300)
    for sequences in seen:
        assert list(sequences) == list(range(1, len(sequences) + 1))
    moved = [each for each in debates if await _claims(clients, each) > 1]
    assert moved, "the one that stopped owned none"
    handed = [await _claimed(clients, each, 2) for each in moved]
    handover = max(at for at, _ in handed) - before
    sys.stdout.write(
        f"{len(moved)} of {count} debates handed over: the process ended after {ended:.2f} s, the last claim came "
        f"after {handover:.2f} s, longest without an event {max(gap for _, gap in handed):.2f} s\n"
    )
    assert handover < _HANDOVER_SECONDS
    await whole(clients)


async def _all_owned(system: System, count: int) -> None:
    """Wait until so many debates run, each in the hands of an orchestrator."""
    async with asyncio.timeout(120), open_store(system.store_url, "orchestrator") as store:
        index = DebateIndex(store.documents)
        while True:
            if sum(record.epoch > 0 for record in (await index.open()).owned) == count:
                return
            await asyncio.sleep(0.2)


async def _created(clients: Clients, name: str, at: str) -> str:
    mark = f"case-{name}-{uuid.uuid4().hex[:6]}."
    return await clients.create(spec(mark, rounds=2, format="panel@1"), mark, at=at)


async def _claims(clients: Clients, debate: str) -> int:
    return sum(
        [
            kind_of(event) == "claimed"
            async for event in clients.client.watch(debate)
            if isinstance(event, Event)
        ]
    )


@pytest.fixture
def old_code(tmp_path: Path, record_property: Callable[[str, object], None]) -> Path:
    """The code of the commit before, in a folder of its own."""
    archive = tmp_path / "old.tar"
    command = ["git", "archive", f"--output={archive}", _BEFORE, "services", "tests"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode:
        why = f"no commit {_BEFORE} in this clone (git fetch --unshallow): {made.stderr.strip()}"
        record_property("rolling upgrade", f"SKIPPED: {why}")
        pytest.skip(why)
    folder = tmp_path / "old"
    folder.mkdir()
    subprocess.run(["tar", "--extract", f"--file={archive}", f"--directory={folder}"], check=True)
    return folder


@pytest.fixture
def mixed(system: System) -> Iterator[System]:
    yield system
    for name in (*ORCHESTRATORS, *GATEWAYS, *OTHERS):
        system.restart(name)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_a_release_is_rolled_out_and_back_over_one_store_and_no_debate_is_lost_or_fails(
    mixed: System, clients: Clients, old_code: Path
) -> None:
    services = (*OTHERS, *GATEWAYS, *ORCHESTRATORS)
    for name in services:
        if mixed.alive(name):
            mixed.kill(name)
        mixed.start(name, code=old_code)
    debates: list[str] = []
    watchers: list[asyncio.Task[Sequence[int]]] = []

    async def begin(name: str, at: str) -> None:
        debates.append(await _created(clients, name, at))
        watchers.append(asyncio.create_task(_watched(mixed.target(), debates[-1])))

    with mixed.rules(_SLOW):
        for turn, code in enumerate((ROOT, old_code)):
            for number, name in enumerate(services):
                for at in (number, number + 1):
                    await begin(f"{turn}-{name}", ORCHESTRATORS[at % 3])
                await asyncio.to_thread(mixed.terminate, name)
                mixed.start(name, code=code)
        await asyncio.wait_for(asyncio.gather(*watchers), 300)
    for each in debates:
        assert (await clients.client.get(each)).status == DEBATE_STATUS_COMPLETED
    report = check(await clients.history())
    assert not report.violations, "\n".join(map(str, report.violations))
