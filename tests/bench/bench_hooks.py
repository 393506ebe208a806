"""What hooks cost debates: as many debates with hooks, of whose receivers every fifth fails, as without, in interleaved pairs."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median

from aiohttp import web

from parley.client import ParleyClient
from parley.orchestrator.delivery import dispatcher
from parley.runtime.backoff import Backoff
from parley.v1.hook_pb2 import (
    DELIVERY_STATE_DEAD,
    DELIVERY_STATE_PENDING,
    HOOK_EVENT_CONCLUDED,
    HookTarget,
    WebhookTarget,
)
from tests.bench.figures import aim, main, show_middle, table
from tests.bench.graph import Shape
from tests.bench.models import model_server
from tests.bench.system import run_debate, spec, system
from tests.support.model_server import Latency
from tests.support.orchestration import until
from tests.support.webhook_receiver import WebhookReceiver, webhook_receiver

_AT_ONCE = 8
_LATENCY = Latency(0.2)
_HOOKS = 1
_FAILS = 0.2
_AT_MOST = 1.05


async def run(quick: bool) -> None:
    """Hold rounds of debates in a system without hooks and in one with hooks in turn, then wait until every webhook has arrived."""
    pairs, shape = (4 if quick else 20), Shape(3, 1)
    dispatcher._BACKOFF = Backoff(first=0.5, maximum=2.0, jitter=0.2)  # type: ignore[misc] # more tries than in life
    async with AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(webhook_receiver())
        models = await stack.enter_async_context(model_server())
        plain = await stack.enter_async_context(system(models.base_url))
        hooked = await stack.enter_async_context(system(models.base_url, PARLEY_HOOK_HOSTS="127.0.0.1"))
        await _subscribe(hooked, receiver)
        await models.begin(_LATENCY)
        taken: dict[ParleyClient, list[_Round]] = {plain: [], hooked: []}
        for number in range(pairs + 1):
            for client in (plain, hooked) if number % 2 else (hooked, plain):
                taken[client].append(await _hold(client, shape))
        began = time.monotonic()
        await _settle(hooked)
        left = time.monotonic() - began
    without, hooking = (each[1:] for each in taken.values())  # the first round warms up
    ratios = [slow.seconds / quick.seconds for quick, slow in zip(without, hooking, strict=True)]
    cpu = [slow.cpu / quick.cpu for quick, slow in zip(without, hooking, strict=True)]
    expected, arrived = (pairs + 1) * _AT_ONCE * _HOOKS, {each.id for each in receiver.taken}
    table(
        ["", "seconds a round", "ratio", "aim", "seconds of CPU", "ratio"],
        [
            ["without hooks", show_middle(_seconds(without)), "", "", show_middle(_cpu(without)), ""],
            [
                f"{_HOOKS} webhook a debate, of which a fifth fails",
                show_middle(_seconds(hooking)),
                show_middle(ratios),
                aim(median(ratios), _AT_MOST),
                show_middle(_cpu(hooking)),
                show_middle(cpu),
            ],
        ],
    )
    print(
        f"\n{pairs} pairs of {_AT_ONCE} debates at a time; of {expected} webhooks {len(arrived)} arrived, in {len(receiver.got)} tries, the"
        f" last one {left:.1f} s after the last debate."
    )


async def _subscribe(client: ParleyClient, receiver: WebhookReceiver) -> None:
    chance = random.Random(7)

    async def fail_often(_: web.Request) -> web.StreamResponse:
        if chance.random() < _FAILS:
            return web.Response(status=500)
        receiver.taken.append(receiver.got[-1])
        return web.Response(status=204)

    for number in range(_HOOKS):
        target = HookTarget(webhook=WebhookTarget(url=f"{receiver.url}{number}"))
        receiver.always[str(number)] = fail_often
        made = await client.create_hook(f"hook {number}", target, [HOOK_EVENT_CONCLUDED])
        receiver.secrets[str(number)] = made.secret


@dataclass(frozen=True, slots=True)
class _Round:
    """How long a round took, and how much CPU of this process: the system's, with that of its client and of the receiver."""

    seconds: float
    cpu: float


def _seconds(rounds: Sequence[_Round]) -> list[float]:
    return [each.seconds for each in rounds]


def _cpu(rounds: Sequence[_Round]) -> list[float]:
    return [each.cpu for each in rounds]


async def _hold(client: ParleyClient, shape: Shape) -> _Round:
    began, spent = time.monotonic(), time.process_time()
    async with asyncio.TaskGroup() as tasks:
        for number in range(_AT_ONCE):
            tasks.create_task(run_debate(client, spec(shape, f"Bench question {number}?")))
    return _Round(time.monotonic() - began, time.process_time() - spent)


async def _settle(client: ParleyClient) -> None:
    """Wait until no delivery is left to be sent."""

    async def is_settled() -> bool:
        return not [each async for each in client.list_deliveries(state=DELIVERY_STATE_PENDING)]

    await until(is_settled, "nothing is left to be sent", 60.0)
    dead = [each async for each in client.list_deliveries(state=DELIVERY_STATE_DEAD)]
    assert not dead, dead[0]


if __name__ == "__main__":
    main(__doc__, run)
