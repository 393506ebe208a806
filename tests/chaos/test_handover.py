"""Pods come and go: an orchestrator is asked to stop while debates run, and releases are rolled out and back."""

import asyncio
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from parley.client import ParleyClient
from parley.orchestrator.log.index import DebateIndex
from parley.storage.opening import open_store
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED
from parley.v1.event_pb2 import Event
from parley.v1.moderated_pb2 import ModeratedSettings
from tests.chaos.checker import check
from tests.chaos.crashing import check_all
from tests.chaos.driver import Clients, spec
from tests.chaos.harness import GATEWAYS, ORCHESTRATORS, OTHERS, System, run_system
from tests.chaos.nursery import ROOT
from tests.chaos.process import ADDED_FORMAT, CHANGED_FORMAT
from tests.contract.mongodb_server import Server
from tests.support.memory_mongodb import run_memory_mongodb
from tests.support.orchestration import kind_of

_PATIENT: Final = {"PARLEY_LEASE_SECONDS": "600", "PARLEY_POLL_SECONDS": "1"}
"""Whatever is claimed within seconds was handed over: a lease that ends would take minutes."""
_MIXED: Final = {"PARLEY_LEASE_SECONDS": "5", "PARLEY_POLL_SECONDS": "0.2"}
"""What one version gives up is soon claimed by another."""
_HANDOVER_SECONDS: Final = 10.0
_SERVICES: Final = (*OTHERS, *GATEWAYS, *ORCHESTRATORS)
_SETTINGS: Final[Mapping[str, ArenaSettings | ModeratedSettings]] = {
    "arena@1": ArenaSettings(revision_rounds=1, max_extended_rounds=0),
    "moderated@1": ModeratedSettings(perspectives=2, max_rounds=2, checkpoints=False),
}
_FORMATS: Final = ("panel@1", *_SETTINGS, CHANGED_FORMAT)
"""What both versions know, without the judging of other debates."""
_GIVEN_UP: Final = "debate released for a replica that can continue it"
_SLOW: Final = {"latency": {"median": 1.0}}


@pytest.fixture
async def patient(system: System) -> AsyncIterator[System]:
    """Orchestrators whose leases do not end while a test runs."""
    _be_patient(system)
    yield system
    for name in ORCHESTRATORS:
        system.restart(name)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[System]:
    """A system on a store that answers in a tenth of a millisecond, as a real one does: many watchers wear the stand-in out."""
    with (
        run_memory_mongodb() as url,
        run_system(tmp_path, store=Server(url, "in memory")) as system,
    ):
        yield system


def _be_patient(system: System) -> None:
    system.make_ready()
    for name in ORCHESTRATORS:
        system.restart(name, variables=_PATIENT)


async def _watch_to_end(target: str, debate: str) -> Sequence[int]:
    """Watch a debate to its end with the client that everybody uses, and return the sequences that were seen."""
    async with ParleyClient(target) as client:
        return [event.sequence async for event in client.watch(debate) if isinstance(event, Event)]


async def _wait_for_claim(clients: Clients, debate: str, count: int) -> tuple[float, float]:
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


async def test_a_replica_that_is_asked_to_stop_delays_no_debate_and_no_watcher_hears_of_it(
    patient: System, clients: Clients
) -> None:
    await _hand_over(patient, clients, 3)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_50_debates_on_three_of_which_one_is_asked_to_stop_are_not_delayed_and_no_watcher_hears_of_it(
    quick: System,
) -> None:
    _be_patient(quick)
    async with Clients(quick) as clients:
        await _hand_over(quick, clients, 50)


async def _hand_over(system: System, clients: Clients, count: int) -> None:
    """Stop one of three orchestrators under so many watched debates; each has to go on within the time that a handover takes."""
    with system.rules(_SLOW):
        debates = await asyncio.gather(
            *(
                _create_debate(clients, f"drained-{number}", ORCHESTRATORS[number % 3])
                for number in range(count)
            )
        )
        watchers = [asyncio.create_task(_watch_to_end(system.target(), each)) for each in debates]
        await _wait_until_all_owned(system, count)
        before = time.time()
        await asyncio.to_thread(system.terminate, "orchestrator-1")
        ended = time.time() - before
        seen = await asyncio.wait_for(asyncio.gather(*watchers), 300)
    for sequences in seen:
        assert list(sequences) == list(range(1, len(sequences) + 1))
    moved = [each for each in debates if await _claims(clients, each) > 1]
    assert moved, "the one that stopped owned none"
    handed = [await _wait_for_claim(clients, each, 2) for each in moved]
    handover = max(at for at, _ in handed) - before
    sys.stdout.write(
        f"{len(moved)} of {count} debates handed over: the process ended after {ended:.2f} s, the last claim came "
        f"after {handover:.2f} s, longest without an event {max(gap for _, gap in handed):.2f} s\n"
    )
    assert handover < _HANDOVER_SECONDS
    await check_all(clients)


async def _wait_until_all_owned(system: System, count: int) -> None:
    """Wait until so many debates run, each in the hands of an orchestrator."""
    async with asyncio.timeout(120), open_store(system.store_url, "orchestrator") as store:
        index = DebateIndex(store.documents)
        while True:
            if sum(record.epoch > 0 for record in await index.list_owned()) == count:
                return
            await asyncio.sleep(0.2)


async def _create_debate(clients: Clients, name: str, at: str, debate_format: str = "panel@1") -> str:
    mark = f"case-{name}-{uuid.uuid4().hex[:6]}."
    asked = spec(mark, rounds=2, format=debate_format, settings=_SETTINGS.get(debate_format))
    return await clients.create(asked, mark, at=at)


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
    """The code of the last release in a folder of its own; the last commit's, if there is no release yet."""
    describe = ["git", "describe", "--tags", "--abbrev=0", "--match=v*"]
    tag = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    record_property("rolling upgrade from", tag or "the last commit: there is no release")
    archive = tmp_path / "old.tar"
    command = ["git", "archive", f"--output={archive}", tag or "HEAD", "services", "tests"]
    subprocess.run(command, cwd=ROOT, check=True)
    folder = tmp_path / "old"
    folder.mkdir()
    subprocess.run(["tar", "--extract", f"--file={archive}", f"--directory={folder}"], check=True)
    return folder


@pytest.fixture
def mixed(system: System, old_code: Path) -> Iterator[System]:
    """A system whose services are all of the version before."""
    _restart_all(system, old_code)
    yield system
    for name in _SERVICES:
        system.restart(name)


def _restart_all(system: System, code: Path) -> None:
    for name in _SERVICES:
        if system.alive(name):
            system.kill(name)
        _start(system, name, code)


async def _replace(system: System, name: str, code: Path) -> None:
    await asyncio.to_thread(system.terminate, name)
    _start(system, name, code)


def _start(system: System, name: str, code: Path) -> None:
    newer = {"PARLEY_CHAOS_NEWER": "on"} if code == ROOT else {}
    system.start(name, code=code, variables={**_MIXED, **newer} if name in ORCHESTRATORS else None)


class _Held:
    """Debates that run while versions change, each watched to its end."""

    def __init__(self, system: System, clients: Clients) -> None:
        self._system = system
        self._clients = clients
        self.debates: list[str] = []
        self._watchers: list[asyncio.Task[Sequence[int]]] = []

    async def begin(self, name: str, at: str, debate_format: str = "panel@1") -> str:
        self.debates.append(await _create_debate(self._clients, name, at, debate_format))
        self._watchers.append(asyncio.create_task(_watch_to_end(self._system.target(), self.debates[-1])))
        return self.debates[-1]

    async def end_well(self) -> None:
        """Wait for the end of all of them: none is lost, and none has failed."""
        await asyncio.wait_for(asyncio.gather(*self._watchers), 300)
        for each in self.debates:
            assert (await self._clients.client.get(each)).status == DEBATE_STATUS_COMPLETED
        report = check(await self._clients.history())
        assert not report.violations, "\n".join(map(str, report.violations))


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_a_release_is_rolled_out_and_back_over_one_store_and_no_debate_is_lost_or_fails(
    mixed: System, clients: Clients, old_code: Path
) -> None:
    held = _Held(mixed, clients)
    with mixed.rules(_SLOW):
        for turn, code in enumerate((ROOT, old_code)):
            for number, name in enumerate(_SERVICES):
                for at in (number, number + 1):
                    await held.begin(f"{turn}-{name}", ORCHESTRATORS[at % 3])
                await _replace(mixed, name, code)
        await held.end_well()


async def _wait_for_critique(clients: Clients, debate: str) -> None:
    """Wait until the first critique of a panel is recorded: from there on, its words are of one version."""
    async with asyncio.timeout(60):
        async for event in clients.client.watch(debate):
            if isinstance(event, Event) and event.HasField("step_succeeded") and "/critique/" in event.key:
                return


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_side_by_side_each_version_goes_on_with_what_it_knows_and_leaves_the_rest_to_the_other(
    quick: System, old_code: Path
) -> None:
    """One format has other words in the newer version, under the same name: only the version that began such a debate can go on."""
    first, second, third = ORCHESTRATORS
    _restart_all(quick, old_code)
    async with Clients(quick) as clients:
        held = _Held(quick, clients)
        with quick.rules(_SLOW):
            for each in _FORMATS:
                for at in ORCHESTRATORS:
                    await held.begin(f"before-{at}", at, each)
            for name in (first, second, *GATEWAYS, *OTHERS):
                await _replace(quick, name, ROOT)
            for each in _FORMATS:
                await held.begin("new", second, each)
                await held.begin("old", third, each)
            await _wait_for_critique(clients, await held.begin("old", third, CHANGED_FORMAT))
            await _replace(quick, third, old_code)  # now the newer ones are offered what it began
            added = await held.begin("added", second, ADDED_FORMAT)
            await _replace(quick, second, old_code)
            await held.end_well()
        given_up = [name for name in (first, second) if _GIVEN_UP in quick.tail(name, 1000)]
        assert given_up, "the newer version was never offered what only the older one can go on with"
        assert await _claims(clients, added) == 2, (
            "its first owner's, and that of the only other that knows it"
        )
