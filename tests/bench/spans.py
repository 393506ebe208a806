"""Spans: ours, and those of the bare client that asks the same at the same places with the same latencies."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from parley.client import ParleyClient
from tests.bench.environment import MODEL
from tests.bench.graph import Ask, BareClient, Place, Shape, bare_client
from tests.bench.models import Models, model_server
from tests.bench.system import places, run_debate, spec, system
from tests.support.model_server import Latency

Walk = Callable[[Shape, Ask], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds from the first model call's start to the event `concluded`, and until the client heard of that."""

    concluded: float
    heard: float
    places: Mapping[str, Place]


@asynccontextmanager
async def open_sides(words: int = 24) -> AsyncIterator[tuple[Models, ParleyClient, BareClient]]:
    """Run the embedded system and a bare client over one model server, whose answers have so many words."""
    async with (
        model_server(words) as models,
        system(models.base_url) as client,
        bare_client(models.base_url, MODEL) as bare,
    ):
        yield models, client, bare


async def measure_ours(
    models: Models, client: ParleyClient, shape: Shape, latency: Latency, question: str
) -> Span:
    """Hold one debate."""
    await models.begin(latency)
    run = await run_debate(client, spec(shape, question))
    served = await models.served()
    assert len(served) == shape.calls, f"{len(served)} calls were made, not {shape.calls}"
    first = min(call.started for call in served)
    return Span(run.concluded - first, run.heard - first, places(run, served))


async def measure_bare(
    models: Models, bare: BareClient, shape: Shape, latency: Latency, walk: Walk, asked: Mapping[str, Place]
) -> float:
    """Walk the same graph; return the seconds from the first call's start to the last answer's end."""
    await models.begin(latency)
    await walk(shape, bare.over(asked))
    ended = time.monotonic()
    served = await models.served()
    assert len(served) == shape.calls, f"{len(served)} calls were made, not {shape.calls}"
    return ended - min(call.started for call in served)
