"""Arena debates of 5 agents and nine rounds at 200 ms a call: our span over the bare client's for the same graph of calls."""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from parley.client import DebateSpec
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import ArenaSettings, StoppingSettings
from parley.v1.debate_pb2 import Participant
from tests.bench.figures import aim, main, show_middle, table
from tests.bench.graph import BareClient, Place
from tests.bench.models import Models, Served
from tests.bench.spans import open_sides
from tests.bench.system import run_debate
from tests.support.model_server import Latency
from tests.support.model_server.answers import digest_of

_SECONDS = 0.2
_AGENTS = 5
_REVISIONS = 3
_AIM = 1.10
_FIRST_GROUPED = 2
"""The round before which the first drafts are grouped; later positions are grouped after each round of revision."""
_TOLD: Final = {
    "list what an answer has to meet": "requirements",
    "Criticize this proposal of agent": "critique",
    "Your revised proposal, complete in itself": "refine",
    "This is the last time that you write before the vote": "finish",
    "are positions that agents take on the question": "grouping",
    "Vote for the proposal": "vote",
    "You judge these proposals": "judge",
    "Write the answer to the question from what was decided": "synthesis",
    "Can you live with it?": "verification",
    "Write your proposal: your own answer": "propose",
}
"""Words of each prompt that no other has, in the order in which they are looked for."""
_STRUCTURED: Final = {"requirements", "critique", "grouping", "vote", "judge", "verification"}
_ROUND = re.compile(r"This is round (\d+) of")
_ME = re.compile(r"You are agent (\w) of")
_CRITICIZED = re.compile(r"Criticize this proposal of agent (\w)\.")

_Graph = Mapping[str, Sequence[tuple[str, Place]]]
"""Of each stage, such as `refine 4`: what is asked there, with the agent whose text it is about."""


async def run(quick: bool) -> None:
    """Interleave our debates with the bare client's graphs, and print the ratio of the medians."""
    latency = Latency(median=_SECONDS)
    concluded, bare_spans, calls = [], [], 0
    async with open_sides() as (models, client, bare):
        for number in range(3 if quick else 10):
            await models.begin(latency)
            ours = await run_debate(client, _spec(f"Bench question {number}?"))
            served = await models.served()
            graph = _graph(served)
            bare_span = await _walk(models, bare, graph, latency, len(served))
            if number:  # the first pair opens connections and learns of the endpoint
                calls = len(served)
                concluded.append(ours.concluded - min(call.started for call in served))
                bare_spans.append(bare_span)
    ratio = median(concluded) / median(bare_spans)
    table(
        [
            f"arena of {_AGENTS} agents, {_REVISIONS} revisions, {calls} calls, at 200 ms",
            "seconds (lowest-highest)",
            "over bare",
            "aim",
        ],
        [
            ["bare client, same graph", show_middle(bare_spans), "1", ""],
            ["ours, to the event `concluded`", show_middle(concluded), f"{ratio:.3f}", aim(ratio, _AIM)],
        ],
    )


def _spec(question: str) -> DebateSpec:
    """Return an arena that holds all its rounds, whatever is said: each is assessed, and no assessment ends them."""
    stopping = StoppingSettings(convergence=True, convergence_threshold_percent=100)
    return DebateSpec(
        analysis=False,
        question=question,
        agents=[Participant(agent=Agent(id=f"agent-{n}", role="architect")) for n in range(1, _AGENTS + 1)],
        judge=Participant(agent=Agent(id="judge", role="judge")),
        arena=ArenaSettings(revision_rounds=_REVISIONS, max_extended_rounds=0, stopping=stopping),
    )


def _graph(served: Sequence[Served]) -> _Graph:
    found: dict[str, list[tuple[str, Place]]] = defaultdict(list)
    for call in served:
        stage = _stage(call.prompt)
        latency_key = f"{digest_of(call.path, call.model, call.prompt)}/{call.occurrence}"
        place = Place(call.prompt, latency_key, structured=stage in _STRUCTURED)
        if (
            stage == "grouping"
        ):  # it names no round: each time two are asked, one in the order of the other turned round
            asked = sum(len(places) for name, places in found.items() if name.startswith(stage))
            found[f"{stage} {_FIRST_GROUPED + asked // 2}"].append(("", place))
            continue
        in_round = _ROUND.search(call.prompt)
        about = (_CRITICIZED if stage == "critique" else _ME).search(call.prompt)
        found[f"{stage} {in_round[1]}" if in_round else stage].append((about[1] if about else "", place))
    return found


def _stage(prompt: str) -> str:
    found = next((name for words, name in _TOLD.items() if words in prompt), "")
    assert found, f"no phase is known by what it asks: {prompt[-500:]}"
    return found


async def _walk(models: Models, bare: BareClient, graph: _Graph, latency: Latency, calls: int) -> float:
    """Ask at each place as soon as what it needs is there; return the seconds from the first call to the last answer."""
    await models.begin(latency)
    await _ask_all(bare, graph, "requirements", "propose 1")
    await _ask_all(bare, graph, "grouping 2")
    await _ask_all(bare, graph, "critique 2")
    for number in range(3, 3 + _REVISIONS):
        await _revise(bare, graph, number)
        await _ask_all(bare, graph, f"grouping {number}")
    last = 3 + _REVISIONS
    await _ask_all(bare, graph, f"finish {last}")
    await _ask_all(bare, graph, "vote", f"grouping {last}")
    for stage in ("judge", "synthesis", "verification"):
        await _ask_all(bare, graph, stage)
    ended = time.monotonic()
    served = await models.served()
    assert len(served) == calls, f"{len(served)} calls were made, not {calls}"
    return ended - min(call.started for call in served)


async def _ask_all(bare: BareClient, graph: _Graph, *stages: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        for stage in stages:
            for _, place in graph.get(stage, ()):
                tasks.create_task(bare.ask(place))


async def _revise(bare: BareClient, graph: _Graph, number: int) -> None:
    """Let each author revise its text once the critiques of it are in."""

    async def refine(author: str, place: Place) -> None:
        async with asyncio.TaskGroup() as tasks:
            for target, critique in graph.get(f"critique {number}", ()):
                if target == author:
                    tasks.create_task(bare.ask(critique))
        await bare.ask(place)

    async with asyncio.TaskGroup() as tasks:
        for author, place in graph[f"refine {number}"]:
            tasks.create_task(refine(author, place))


if __name__ == "__main__":
    main(__doc__, run)
