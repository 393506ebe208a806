"""Moderated debates that wait at a checkpoint: what they cost one replica, and how soon it begins others and goes on."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from parley.client import DebateSpec, ParleyClient
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateStatus, Participant
from parley.v1.event_pb2 import Event
from parley.v1.moderated_pb2 import ModeratedSettings
from tests.bench.environment import MODEL
from tests.bench.figures import aim, main, show_middle, table
from tests.bench.models import model_server
from tests.bench.replicas import cpu_seconds, memory_bytes, service
from tests.support.model_server import Latency
from tests.support.moderator_rules import moderator_rules

_MAX_DEBATES: Final = 4
_FEW: Final = 50
_MORE: Final = 200
_KEPT_SECONDS: Final = 5.0
"""For so long the owner of a debate that waits is kept; then it is to cost nothing."""
_CORE_PERCENT: Final = 0.1
_KIB_EACH: Final = 20
_PATIENCE: Final = 600
_WAITING: Final = [DebateStatus.DEBATE_STATUS_WAITING]


async def run(quick: bool) -> None:
    """Measure a replica for which nothing waits, then few debates, then more."""
    seconds, tries = (20.0, 5) if quick else (60.0, 20)
    async with _replica() as client:
        await _end_together(client, _FEW + _MORE)
        warm = await _measure(0.0)
        await _end_together(client, _MORE)
        begun_before = [await _measure_begin(client, f"before {number}") for number in range(tries)]
        none = await _measure(seconds)
        await _wait_together(client, _FEW, "of few")
        few = await _measure(seconds)
        await _wait_together(client, _MORE, "of more")
        more = await _measure(seconds)
        begun_after = [await _measure_begin(client, f"after {number}") for number in range(tries)]
        first = [debate.id async for debate in client.list(_WAITING, page_size=tries)][:tries]
        answered = [await _measure_answer(client, debate) for debate in first]
    _show(warm, none, few, more)
    print()
    table(
        [f"one replica, {_MAX_DEBATES} debates at once", "milliseconds (lowest-highest)"],
        [
            ["from a request to the first step, none waits", show_middle(begun_before, 1)],
            [f"the same while {_FEW + _MORE} wait", show_middle(begun_after, 1)],
            ["from an answer at a checkpoint until it is recorded", show_middle(answered, 1)],
        ],
    )


def _show(warm: "_Cost", none: "_Cost", few: "_Cost", more: "_Cost") -> None:
    """Print what waiting costs, beside the memory that as many debates leave behind that have ended."""
    shares, memory = [], []
    for name in ("orchestrator", "gateway", "convergence"):
        is_measured = name == "orchestrator"
        share = [100 * each[0][name] for each in (none, few, more)]
        extra = round((share[2] - share[0]) * 200 / (_FEW + _MORE), 2)
        bound = aim(extra, _CORE_PERCENT) if is_measured else ""
        shares.append([name, *(f"{each:.2f}" for each in share), f"{extra:.2f}", bound])
        ended, waits = (
            (after[1][name] - before[1][name]) / 1024 / _MORE for before, after in ((warm, none), (few, more))
        )
        bound = aim(round(waits, 1), _KIB_EACH) if is_measured else ""
        memory.append([name, f"{ended:.1f}", f"{waits:.1f}", bound])
    head = [f"{each} wait" for each in (0, _FEW, _FEW + _MORE)]
    table(["% of a core", *head, "200 more cost", "aim"], shares)
    print()
    table(["KiB of memory", "each that has ended", "each that waits", "aim"], memory)


_Cost = tuple[Mapping[str, float], Mapping[str, float]]
"""The cores that each process takes, and its bytes of memory."""


async def _measure(seconds: float) -> _Cost:
    await asyncio.sleep(2 * _KEPT_SECONDS)
    before, began = cpu_seconds(), time.monotonic()
    await asyncio.sleep(seconds)
    after, took = cpu_seconds(), time.monotonic() - began
    return {name: (after[name] - before[name]) / took for name in after}, memory_bytes()


async def _end_together(client: ParleyClient, count: int) -> None:
    """Let so many debates wait together, and then end: whatever is loaded, cached and set aside once is so then."""
    for debate in await _wait_together(client, count, "to end"):
        await client.cancel(debate, "measured")
    async with asyncio.timeout(_PATIENCE):
        while await anext(client.list(_WAITING, page_size=1), None) is not None:  # noqa: ASYNC110 (nobody tells of a list)
            await asyncio.sleep(0.1)


async def _wait_together(client: ParleyClient, count: int, mark: str) -> list[str]:
    """Let so many debates more wait, a few at a time as they come through the replica's places; return their ids."""
    turns = asyncio.Semaphore(2 * _MAX_DEBATES)

    async def create_one(number: int) -> str:
        async with turns:
            return await _create_waiting(client, f"{mark} {number}")

    async with asyncio.timeout(_PATIENCE), asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(create_one(number)) for number in range(count)]
    return [each.result() for each in asked]


async def _create_waiting(client: ParleyClient, mark: str) -> str:
    """Ask for a debate, and return its id once it waits at the checkpoint after its first round."""
    debate = await client.create_debate(_spec(mark))
    await _wait_for_event(client, debate, "checkpoint_opened")
    return debate


async def _measure_begin(client: ParleyClient, mark: str) -> float:
    """Return the milliseconds from the request for a debate to its first step."""
    began = time.monotonic()
    debate = await client.create_debate(_spec(mark))
    await _wait_for_event(client, debate, "step_started")
    took = time.monotonic() - began
    await client.cancel(debate, "measured")
    return 1000 * took


async def _measure_answer(client: ParleyClient, debate: str) -> float:
    """Return the milliseconds from an answer at a debate's checkpoint until it is recorded."""
    began = time.monotonic()
    await client.end_rounds(debate)
    took = time.monotonic() - began
    await client.cancel(debate, "measured")
    return 1000 * took


async def _wait_for_event(client: ParleyClient, debate: str, kind: str) -> None:
    async with asyncio.timeout(_PATIENCE):
        async for event in client.watch(debate):
            if isinstance(event, Event):
                found = event.WhichOneof("payload")
                assert found != "debate_failed", event.debate_failed.failure.message
                if found == kind:
                    return
    raise RuntimeError(f"a debate ended without {kind}")


def _spec(mark: str) -> DebateSpec:
    settings: dict[str, Any] = {"perspectives": 2, "max_rounds": 3, "checkpoints": True}
    return DebateSpec(
        analysis=False,
        question=f"Where are the sessions of shop {mark} to be kept?",
        agents=[Participant(agent=Agent(id=f"agent-{n}", role="architect")) for n in (1, 2)],
        judge=Participant(agent=Agent(id="judge", role="judge")),
        moderated=ModeratedSettings(**settings),
    )


@asynccontextmanager
async def _replica() -> AsyncIterator[ParleyClient]:
    """Run one of each service that a debate needs, each a process, on SQLite stores."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        models = await enter(model_server())
        await models.begin(Latency(median=0.0))
        await models.follow(moderator_rules(2))
        embedding = {"embedding_fine": "endpoint", "embedding_fast": "endpoint"}
        convergence = await enter(service("convergence", **embedding, embedding_base_url=models.base_url))
        gateway = await enter(
            service(
                "gateway",
                store=f"sqlite:///{folder}/gateway",
                model=MODEL,
                OPENAI_API_KEY="bench",
                OPENAI_BASE_URL=models.base_url,
            )
        )
        address = await enter(
            service(
                "orchestrator",
                store=f"sqlite:///{folder}/orchestrator",
                max_debates=str(_MAX_DEBATES),
                gateway=gateway,
                convergence=convergence,
            )
        )
        yield await enter(ParleyClient(address, patience=120))


if __name__ == "__main__":
    main(__doc__, run)
