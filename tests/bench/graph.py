"""The panel's graph of calls as a bare client makes it: flowing like ours, or with a barrier after every phase."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from openai import AsyncOpenAI, DefaultAioHttpClient, omit
from openai.types.shared_params import ResponseFormatJSONSchema

from tests.support.model_server import BENCH_KEY_HEADER

Ask = Callable[[str], Awaitable[None]]

_ANSWER_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "description": {"type": "string"},
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": ["description", "confidence"],
    "additionalProperties": False,
}
JUDGEMENT: ResponseFormatJSONSchema = {
    "type": "json_schema",
    "json_schema": {"name": "synthesis", "schema": _ANSWER_SCHEMA},
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A panel debate: how many agents and rounds, and whether they see the full history."""

    size: int
    rounds: int
    full_history: bool = True

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' ids."""
        return tuple(f"agent-{number}" for number in range(1, self.size + 1))

    @property
    def calls(self) -> int:
        """Model calls: proposals, critiques and refinements of every round, and the judge's two."""
        return self.rounds * self.size * (self.size + 1) + 2


@dataclass(frozen=True, slots=True)
class Place:
    """What is asked at one place of the graph, and the key by which the model server draws its latency."""

    prompt: str
    latency_key: str
    structured: bool


@dataclass(frozen=True, slots=True)
class BareClient:
    """Asks what is asked at each place, and nothing more."""

    client: AsyncOpenAI
    model: str

    async def ask(self, place: Place) -> str:
        """Return the answer, streamed: a text, or the judge's JSON. The system asks a base URL by this API, too."""
        stream = await self.client.chat.completions.create(
            model=self.model,
            messages=[{"role": "user", "content": place.prompt}],
            extra_headers={BENCH_KEY_HEADER: place.latency_key},
            stream=True,
            stream_options={"include_usage": True},
            response_format=JUDGEMENT if place.structured else omit,
        )
        return "".join([each.delta.content or "" async for chunk in stream for each in chunk.choices])

    def over(self, places: Mapping[str, Place]) -> Ask:
        """Return what asks at the place that a step has."""

        async def ask(key: str) -> None:
            assert await self.ask(places[key])

        return ask


@asynccontextmanager
async def bare_client(base_url: str, model: str) -> AsyncIterator[BareClient]:
    """Open a client on its fastest transport, as the gateway uses it too."""
    async with AsyncOpenAI(
        api_key="bench", base_url=base_url, max_retries=0, http_client=DefaultAioHttpClient()
    ) as client:
        yield BareClient(client, model)


async def flowing(shape: Shape, ask: Ask) -> None:
    """Make each call as soon as what it needs is there, as the panel does."""
    before: dict[str, asyncio.Task[None]] = {}
    async with asyncio.TaskGroup() as tasks:
        required = tasks.create_task(_awaited(ask("requirements")))
        for number in range(1, shape.rounds + 1):
            before = _round(shape, ask, number, before, required, tasks)
            if shape.full_history:
                await asyncio.wait(before.values())
        await asyncio.wait(before.values())
    await ask("synthesis")


def _round(
    shape: Shape,
    ask: Ask,
    number: int,
    before: Mapping[str, asyncio.Task[None]],
    required: asyncio.Task[None],
    tasks: asyncio.TaskGroup,
) -> dict[str, asyncio.Task[None]]:
    """Start a round and return its refinements; `before` are those of the round before."""

    async def after(needed: Iterable[asyncio.Task[None] | None], key: str) -> None:
        for task in needed:
            if task is not None:
                await task
        await ask(f"round/{number}/{key}")

    proposals = {
        agent: tasks.create_task(after([before.get(agent)], f"propose/{agent}")) for agent in shape.agents
    }
    critiques = {
        (critic, target): tasks.create_task(
            after([required, proposals[target], before.get(critic)], f"critique/{critic}/of/{target}")
        )
        for critic in shape.agents
        for target in shape.agents
        if critic != target
    }
    return {
        agent: tasks.create_task(
            after([task for (_, target), task in critiques.items() if target == agent], f"refine/{agent}")
        )
        for agent in shape.agents
    }


async def stepped(shape: Shape, ask: Ask) -> None:
    """Make the same calls with a barrier after every phase."""
    for number in range(1, shape.rounds + 1):
        pairs = [(one, other) for one in shape.agents for other in shape.agents if one != other]
        for phase in (
            [f"propose/{agent}" for agent in shape.agents],
            [f"critique/{critic}/of/{target}" for critic, target in pairs],
            [f"refine/{agent}" for agent in shape.agents],
        ):
            keys = [f"round/{number}/{key}" for key in phase]
            if keys[0] == f"round/1/propose/{shape.agents[0]}":
                keys.append("requirements")
            async with asyncio.TaskGroup() as tasks:
                for key in keys:
                    tasks.create_task(_awaited(ask(key)))
    await ask("synthesis")


async def _awaited(work: Awaitable[None]) -> None:
    await work
