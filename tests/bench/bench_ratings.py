"""A start of the ratings of 100,000 matches: by counting each, and from the snapshot that is kept."""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from parley.ratings.calibration import JudgedAnswer
from parley.ratings.match import MATCHES, Encounter, Match, PhaseResult
from parley.ratings.matches import Matches
from parley.ratings.table import Table
from parley.storage.opening import Store, open_store
from parley.storage.ports import Record
from tests.bench.figures import aim, main, table

_MATCHES, _QUICK_MATCHES = 100_000, 10_000
_RECORD = 500
_AGENTS = [f"agent-{number}" for number in range(20)]
_TENANT = "bench"
_TICK_SECONDS = 0.005
_MAX_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class _Start:
    """Seconds until the table was there, seconds of CPU, and the longest time that nothing else could run on the loop."""

    seconds: float
    cpu: float
    blocked: float


async def run(quick: bool) -> None:
    """Record the matches, count them once, which keeps a snapshot, and start from that."""
    amount = _QUICK_MATCHES if quick else _MATCHES
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(f"sqlite:///{folder}", "ratings") as store:
            await _record(store, amount)
            counted, whole = await _measure_start(
                lambda: Matches(store.log, store.documents).read_table(_TENANT)
            )
            restored, from_snapshot = await _measure_start(
                lambda: Matches(store.log, store.documents).read_table(_TENANT)
            )
            assert from_snapshot.ratings() == whole.ratings()
    rows = [
        ["each match counted", f"{counted.seconds:.2f}", f"{counted.cpu:.2f}", f"{counted.blocked:.3f}", ""],
        [
            "from the snapshot",
            f"{restored.seconds:.2f}",
            f"{restored.cpu:.2f}",
            f"{restored.blocked:.3f}",
            aim(round(restored.blocked, 3), _MAX_SECONDS),
        ],
    ]
    table(
        [f"start with {amount:,} matches", "seconds", "seconds of CPU", "longest hold of the loop", "aim"],
        rows,
    )


async def _record(store: Store, amount: int) -> None:
    dice = random.Random(1)
    for start in range(0, amount, _RECORD):
        entries = tuple(MATCHES.dump_json(_match(dice, number)) for number in range(start, start + _RECORD))
        await store.log.append(f"matches/{_TENANT}", Record(start + 1, uuid4().hex, entries))


def _match(dice: random.Random, number: int) -> Match:
    team = dice.sample(_AGENTS, 3)
    return Match(
        f"deb-20300101-000000-{number:08d}",
        dice.choice(["general", "security", "data"]),
        {each: float(dice.randint(0, 10)) for each in team},
        datetime(2030, 1, 1, tzinfo=UTC),
        tuple(JudgedAnswer(each, dice.random() < 0.6, round(dice.random(), 2)) for each in team),
        tuple(PhaseResult(each, "proposal", 5.0) for each in team),
        (Encounter(min(team[:2]), max(team[:2]), 1, 2),),
    )


async def _measure_start(start: Callable[[], Awaitable[Table]]) -> tuple[_Start, Table]:
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            began = time.monotonic()
            await asyncio.sleep(_TICK_SECONDS)
            longest = max(longest, time.monotonic() - began - _TICK_SECONDS)

    watching = asyncio.create_task(watch())
    began, cpu = time.monotonic(), time.process_time()
    made = await start()
    found = _Start(time.monotonic() - began, time.process_time() - cpu, longest)
    watching.cancel()
    return found, made


if __name__ == "__main__":
    main(__doc__, run)
