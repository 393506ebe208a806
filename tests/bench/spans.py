"""Spans: ours, and those of the bare client that asks the same at the same places with the same latencies."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from parley.client import ParleyClient
from tests.bench.graph import Ask, BareClient, Place, Shape
from tests.bench.models import Models
from tests.bench.system import places, run_debate, spec
from tests.support.model_server import Latency

__all__ = ["Span", "measure_bare", "measure_ours"]

Walk = Callable[[Shape, Ask], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds from the first model call's start to the event `concluded`, and until the client heard of that."""

    concluded: float
    heard: float
    places: Mapping[str, Place]


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
