"""A seeded run: many debates with watchers and interventions, while services are killed, stopped, drained and cut off.

Where it is asked for, models fail now and then, and the store is held, slowed, cut off and restarted.

The seed says which debates are held, how people intervene in them, and which faults come in which order; when they meet is
up to the machine. A run that found something is made again with the same seed, several times if need be.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.moderated_pb2 import ModeratedSettings
from tests.chaos.checker import Report, check
from tests.chaos.driver import Clients, spec
from tests.chaos.harness import EndedAtStartError, System
from tests.chaos.store_faults import trouble_store

_ACTS = {
    "panel": ("guide", "end", "mute", "cancel", "pause"),
    "arena": ("guide", "cancel", "pause"),
    "moderated": ("guide", "cancel", "pause"),
}
_SETTINGS: Mapping[str, ArenaSettings | ModeratedSettings | None] = {
    "panel": None,
    "arena": ArenaSettings(revision_rounds=1, max_extended_rounds=0),
    "moderated": ModeratedSettings(perspectives=2, max_rounds=2, checkpoints=False),
}
_MODEL_FAULTS = [
    {"match": {"path": "/v1/responses"}, "fault": fault, "after": 15 * number, "times": 2}
    for number, fault in enumerate(
        [
            {"kind": "error", "status": 503},
            {"kind": "drop-mid-stream"},
            {"kind": "error", "status": 429, "retry_after": 1},
            {"kind": "drop-before-any-byte"},
        ],
        start=1,
    )
]
"""Two calls in a row fail now and then. A rule that is behind another does not see what that one takes."""
_STARTED_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Chaos:
    """What a run is made of. `gap` is the longest pause between two faults.

    Attributes:
        faults: Numbers by kind, for each service.
        store_faults: Numbers by kind, for the store of all (`store_faults.STORE_FAULTS`).
        models_fail: Whether they do now and then.
        trouble: How long such a fault lasts, in seconds: at least, at most.
        a_command: Seconds that each command takes while the store is slow.
        formats: What is held; each debate is one of them.
    """

    seed: int
    debates: int
    at_once: int = 6
    formats: Sequence[str] = ("panel",)
    store_faults: Mapping[str, int] = field(default_factory=dict)
    models_fail: bool = False
    trouble: tuple[float, float] = (1.0, 12.0)
    a_command: float = 1.0
    faults: Mapping[str, int] = field(default_factory=lambda: {"kill": 2, "stop": 1, "cut": 2})
    gap: float = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `latencies` are seconds from asking for a debate to its end, as its watcher saw them."""

    report: Report
    seconds: float
    faults: Counter[str]
    latencies: Sequence[float]


@dataclass(frozen=True, slots=True)
class _Script:
    """One debate's part."""

    format: str
    agents: int
    rounds: int
    recall: bool
    act: str
    delay: float


async def run_chaos(system: System, clients: Clients, chaos: Chaos) -> Outcome:
    """Hold the debates under the faults, and check the history. Debates go on until the last fault has been."""
    dice = random.Random(chaos.seed)
    began = time.monotonic()
    latencies: list[float] = []
    monkeys = [
        asyncio.create_task(_monkey(system, _faults(group, chaos, dice), chaos.gap, dice.randbytes(8)))
        for group in system.groups
    ]
    monkeys.append(asyncio.create_task(_store_monkey(system, chaos, dice.randbytes(8))))
    scripts = (_script(dice, chaos.formats) for _ in iter(int, 1))

    async def hold() -> None:
        for number, script in numbered:
            if number >= chaos.debates and all(monkey.done() for monkey in monkeys):
                return
            mark = f"run-{chaos.seed}-{number:04d}."
            asked = time.monotonic()
            await _debate(clients, mark, script)
            latencies.append(time.monotonic() - asked)

    numbered = enumerate(scripts)
    try:
        with system.rules(*(_MODEL_FAULTS if chaos.models_fail else ())):
            async with asyncio.TaskGroup() as tasks:
                for _ in range(chaos.at_once):
                    tasks.create_task(hold())
        await asyncio.gather(*monkeys)
    finally:
        for monkey in monkeys:
            monkey.cancel()
        await asyncio.gather(*monkeys, return_exceptions=True)
    seconds = time.monotonic() - began
    history = await clients.history()
    return Outcome(
        check(history),
        seconds,
        Counter(f"{fault.kind} {fault.service}" for fault in history.faults),
        latencies,
    )


async def require_clean_run(system: System, clients: Clients, chaos: Chaos) -> None:
    """Make a run on a system made ready. It breaks no promise, no service writes a traceback, and each fault of the store happens."""
    system.make_ready()
    outcome = await run_chaos(system, clients, chaos)
    problems = [*map(str, outcome.report.violations), *system.tracebacks()]
    assert not problems, f"seed {chaos.seed}\n" + "\n".join(problems)
    assert outcome.report.debates >= chaos.debates
    assert {kind: outcome.faults[f"{kind} store"] for kind in chaos.store_faults} == dict(chaos.store_faults)


def _script(dice: random.Random, formats: Sequence[str]) -> _Script:
    chosen = dice.choice(formats)
    return _Script(
        format=chosen,
        agents=dice.choice((2, 2, 3)),
        rounds=dice.choice((1, 1, 2)),
        recall=dice.random() < 0.3,
        act=dice.choice(_ACTS[chosen]) if dice.random() < 0.5 else "",
        delay=dice.uniform(0.0, 0.5),
    )


async def _debate(clients: Clients, mark: str, script: _Script) -> None:
    asked = spec(
        mark,
        agents=script.agents,
        rounds=script.rounds,
        recall=script.recall and script.format == "panel",
        settings=_SETTINGS[script.format],
    )
    debate = await clients.create(asked, mark)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(clients.watch(debate))
        tasks.create_task(clients.watch(debate, after=1))
        if script.act:
            await asyncio.sleep(script.delay)
            await clients.intervene(debate, script.act)
            if script.act == "pause":
                await clients.intervene(debate, "resume")


def _faults(group: Sequence[str], chaos: Chaos, dice: random.Random) -> list[tuple[str, str]]:
    """Return what is done to a group: the numbers hold for each service, and its replicas share them."""
    services = {name.partition("-")[0] for name in group}
    faults = []
    for service in sorted(services):
        replicas = [name for name in group if name.partition("-")[0] == service]
        for kind, times in sorted(chaos.faults.items()):
            faults += [(kind, dice.choice(replicas)) for _ in range(times)]
    dice.shuffle(faults)
    return faults


async def _monkey(system: System, faults: Sequence[tuple[str, str]], gap: float, seed: bytes) -> None:
    """Do one thing after the other to a group of services; what was killed is started again."""
    dice = random.Random(seed)
    for kind, name in faults:
        lease = system.options.lease_of(name)
        await asyncio.sleep(dice.uniform(0.0, gap))
        down = dice.uniform(0.0, lease)
        match kind:
            case "kill":
                system.kill(name)
                await asyncio.sleep(down)
                await _start(system, name)
            case "drain":
                await asyncio.to_thread(system.terminate, name)
                await _start(system, name)
            case "stop":
                system.stop(name)
                await asyncio.sleep(lease * dice.uniform(1.5, 2.5))
                system.go_on(name)
            case _:
                links = [name] if name == "convergence" else [name, f"{name}>store"]
                seconds = dice.choice((0.0, down))
                await asyncio.to_thread(system.cut, dice.choice(links), seconds)


async def _start(system: System, name: str) -> None:
    """Start a service as who looks after processes does: again, where its store was away when it asked for it."""
    ends = time.monotonic() + _STARTED_WITHIN
    while True:
        try:
            await asyncio.to_thread(system.start, name)
        except EndedAtStartError:
            if time.monotonic() > ends:
                raise
        else:
            return


async def _store_monkey(system: System, chaos: Chaos, seed: bytes) -> None:
    """Do one thing after the other to the store, with as long as that took to recover after each."""
    dice = random.Random(seed)
    faults = [kind for kind, times in sorted(chaos.store_faults.items()) for _ in range(times)]
    dice.shuffle(faults)
    for kind in faults:
        await asyncio.sleep(dice.uniform(0.0, chaos.gap))
        seconds = dice.uniform(*chaos.trouble)
        await asyncio.to_thread(trouble_store, system, kind, seconds, a_command=chaos.a_command)
        await asyncio.sleep(dice.uniform(0.5, seconds))
