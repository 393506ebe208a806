"""Texts embedded a second and memory for both models, and how long an Assess of 3 and of 10 agents takes."""

import asyncio
import resource
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from statistics import median
from typing import Final

from parley.convergence.agreement import Agreements
from parley.convergence.assessment import Thresholds
from parley.convergence.embedder import LocalEmbedder
from parley.convergence.embeddings import open_embeddings
from parley.convergence.local_model import LocalModel
from parley.convergence.models import MiniLm, StaticWords
from parley.convergence.rounds import Rounds
from parley.v1.convergence_pb2 import AgentPosition
from tests.bench.figures import main, table

MODELS: Final[dict[str, Callable[[], LocalModel]]] = {"MiniLM int8": MiniLm, "static": StaticWords}
SENTENCE: Final = (
    "Agent {0} holds that part {1} of the order pipeline should be built on a log that can be replayed."
)
QUESTION: Final = "How should the order pipeline be built?"


def text(words: int, number: int) -> str:
    """A text of about so many words, like no other."""
    return " ".join(SENTENCE.format(number, part) for part in range(max(words // 19, 1)))


def megabytes() -> float:
    """The most memory this process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_model(name: str, quick: bool, answer: Connection) -> None:
    """Measure one model in a process of its own."""
    before = megabytes()
    began = time.perf_counter()
    model = MODELS[name]()
    loaded = time.perf_counter() - began
    rates = []
    for words, texts in ((19, 200), (200, 40), (1600, 8)):
        count = max((texts if name != "static" else 10 * texts) // (4 if quick else 1), 2)
        began = time.perf_counter()
        for number in range(count):
            model.embed(text(words, number))
        rates.append(f"{count / (time.perf_counter() - began):.0f}")
    answer.send([name, *rates, f"{loaded:.2f}", f"{megabytes() - before:.0f}", f"{megabytes():.0f}"])


async def assess_milliseconds(agents: int, repeats: int, *, positions: bool) -> list[float]:
    """Milliseconds of an Assess of a second round, each of texts never seen before."""
    async with open_embeddings(LocalEmbedder(StaticWords())) as fast:
        rounds, taken = Rounds(fast, Agreements(None, cache=0)), []
        previous = stands(agents, 0, positions=positions)
        await rounds.assess(QUESTION, previous, [], [], Thresholds())
        for repeat in range(1, repeats + 1):
            present = stands(agents, repeat, positions=positions)
            began = time.perf_counter()
            await rounds.assess(QUESTION, present, previous, [], Thresholds())
            taken.append((time.perf_counter() - began) * 1000)
            previous = present
        return taken


def stands(agents: int, number: int, *, positions: bool) -> list[AgentPosition]:
    """A round of texts of 200 words."""
    return [
        AgentPosition(
            agent_id=f"a{agent}",
            position=f"Build version {number} of part {agent} on a log." if positions else "",
            text=text(200, 1000 * number + agent),
        )
        for agent in range(agents)
    ]


async def run(quick: bool) -> None:
    """Print both tables."""
    rows = []
    for name in MODELS:
        ours, theirs = get_context("spawn").Pipe()
        process = get_context("spawn").Process(target=measure_model, args=(name, quick, theirs))
        process.start()
        rows.append(await asyncio.to_thread(ours.recv))
        process.join()
    table(
        [
            "model, 1 thread",
            "19 words /s",
            "200 words /s",
            "1,600 words /s",
            "load s",
            "model MB",
            "process MB",
        ],
        rows,
    )
    sys.stdout.write("\n")
    rows = []
    for agents in (3, 10):
        for positions in (True, False):
            taken = await assess_milliseconds(agents, 3 if quick else 15, positions=positions)
            given = "stated" if positions else "none"
            rows.append([str(agents), given, f"{median(taken):.1f}", f"{max(taken):.1f}"])
    table(["agents, 200 words each", "positions", "Assess ms, median", "slowest"], rows)


if __name__ == "__main__":
    main(__doc__, run)
