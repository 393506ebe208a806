"""Moderated debates of 3 debaters and 5 rounds at 200 ms a call: our span over the bare client's for the same graph of calls."""

import asyncio
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from parley.client import DebateSpec
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Participant
from parley.v1.moderated_pb2 import ModeratedSettings
from tests.bench.figures import aim, main, show_middle, table
from tests.bench.graph import BareClient, Place
from tests.bench.models import Models, Served
from tests.bench.spans import open_sides
from tests.bench.system import run_debate
from tests.support.model_server import Latency
from tests.support.model_server.answers import digest_of
from tests.support.moderator_rules import moderator_rules

_SECONDS: Final = 0.2
_DEBATERS: Final = 3
_ROUNDS: Final = 5
_AIM: Final = 1.10
_ROUND: Final = [_DEBATERS, *[1] * _DEBATERS, 1]
"""Calls that are out at once: the arguments, then one rebuttal after the other, and the evaluation."""
_ARGUES: Final = "Argue your perspective's case"
_SHAPE: Final = [1, *_ROUND * _ROUNDS, 1]


async def run(quick: bool) -> None:
    """Interleave our debates with the bare client's graphs, and print the ratio of the medians."""
    latency = Latency(median=_SECONDS)
    concluded: list[float] = []
    bare_spans: list[float] = []
    async with open_sides() as (models, client, bare):
        await models.follow(moderator_rules(_DEBATERS))
        for number in range(3 if quick else 10):
            await models.begin(latency)
            ours = await run_debate(client, _spec(f"Where are the sessions of shop {number} to be kept?"))
            served = await models.served()
            levels = _levels(served)
            assert [len(each) for each in levels] == _SHAPE, [len(each) for each in levels]
            bare_span = await _walk(models, bare, levels, latency)
            if number:  # the first pair opens connections and learns of the endpoint
                concluded.append(ours.concluded - min(call.started for call in served))
                bare_spans.append(bare_span)
    ratio, in_line = median(concluded) / median(bare_spans), len(_SHAPE) * _SECONDS
    table(
        [
            f"{_DEBATERS} debaters x {_ROUNDS} rounds, {sum(_SHAPE)} calls, at 200 ms",
            "seconds (lowest-highest)",
            "over bare",
            "aim",
        ],
        [
            ["bare client, same graph", show_middle(bare_spans), "1", ""],
            ["ours, to the event `concluded`", show_middle(concluded), f"{ratio:.3f}", aim(ratio, _AIM)],
            ["the calls in line, nothing else", f"{in_line:.3f}", f"{in_line / median(bare_spans):.3f}", ""],
        ],
    )


def _spec(question: str) -> DebateSpec:
    settings: dict[str, Any] = {"perspectives": _DEBATERS, "max_rounds": _ROUNDS, "checkpoints": False}
    return DebateSpec(
        analysis=False,
        question=question,
        agents=[Participant(agent=Agent(id=f"agent-{n}", role="architect")) for n in range(1, _DEBATERS + 1)],
        judge=Participant(agent=Agent(id="judge", role="judge")),
        moderated=ModeratedSettings(**settings),
    )


def _levels(served: Sequence[Served]) -> list[list[Place]]:
    """Return the calls in order, the arguments of a round together: all others waited for the one before them."""
    levels: list[list[Place]] = []
    for call in sorted(served, key=lambda each: each.started):
        latency_key = f"{digest_of(call.path, call.model, call.prompt)}/{call.occurrence}"
        place = Place(call.prompt, latency_key, structured=True)
        if _ARGUES in call.prompt and levels and _ARGUES in levels[-1][-1].prompt:
            levels[-1].append(place)
        else:
            levels.append([place])
    return levels


async def _walk(
    models: Models, bare: BareClient, levels: Sequence[Sequence[Place]], latency: Latency
) -> float:
    """Ask level by level; return the seconds from the first call to the last answer."""
    await models.begin(latency)
    for level in levels:
        async with asyncio.TaskGroup() as tasks:
            for place in level:
                tasks.create_task(bare.ask(place))
    ended = time.monotonic()
    served = await models.served()
    assert len(served) == sum(_SHAPE), f"{len(served)} calls were made, not {sum(_SHAPE)}"
    return ended - min(call.started for call in served)


if __name__ == "__main__":
    main(__doc__, run)
