"""How well an agreement encoder tells the same answer from another one, on topics that no training read.

PARLEY_TEST_ENCODER names the folder of the encoder: `model.onnx`, `tokenizer.json` and `head.json`. With
PARLEY_BENCH_AGREEMENT_MODEL, the model of that name at OPENAI_BASE_URL is asked about the same pairs, too.
"""

import asyncio
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import openai
from sklearn.metrics import f1_score, roc_auc_score

from parley.convergence.encoder import CrossEncoder, EncoderFiles
from parley.convergence.head import EncoderHead
from parley.convergence.models import MiniLm
from parley.convergence.vectors import cosine
from tests.bench.figures import main, table
from tests.support.labelled_stands import LabelledPair, held_out_topics, pairs_of, word_overlap

_HEAD: Final = [
    "told by",
    "pairs",
    "AUC",
    "95 %",
    "F1",
    "opposed joined",
    "same joined",
    "same parted",
    "unsure",
    "ms",
    "MB",
]
_ASKED: Final = (
    "Two agents answer one question. Do both give the same answer, though in other words? How sure are you that they do,"
    " from 0 (different answers) to 100 (the same answer)? Reply with the number alone.\n\nQuestion: {0}\n\nA: {1}\n\nB: {2}"
)
_AT_ONCE: Final = 8
_RESAMPLED: Final = 500


def row(
    name: str, pairs: Sequence[LabelledPair], told: Sequence[float | None], ms: float, megabytes: float
) -> list[str]:
    """A line of figures; what cannot be told counts as a coin toss for AUC and F1, and as unsure."""
    same = np.array([pair.same for pair in pairs])
    p = np.array([0.5 if each is None else each for each in told])
    return [
        name,
        str(len(pairs)),
        f"{roc_auc_score(same, p):.3f}",
        "{:.2f}-{:.2f}".format(*interval(pairs, same, p)),
        f"{f1_score(same, p > 0.5):.2f}",
        f"{(p[~same] >= 0.7).mean():.1%}",
        f"{(p[same] >= 0.7).mean():.1%}",
        f"{(p[same] <= 0.3).mean():.1%}",
        f"{((p > 0.3) & (p < 0.7)).mean():.1%}",
        f"{ms:.1f}",
        f"{megabytes:.0f}" if megabytes else "",
    ]


def interval(pairs: Sequence[LabelledPair], same: "np.ndarray", p: "np.ndarray") -> tuple[float, float]:
    """The 95 % confidence interval of the AUC, by drawing topics."""
    dice = np.random.default_rng(0)
    topics = np.array([pair.topic for pair in pairs])
    names = np.unique(topics)
    drawn = []
    for _ in range(_RESAMPLED):
        places = np.concatenate([np.flatnonzero(topics == name) for name in dice.choice(names, len(names))])
        drawn.append(roc_auc_score(same[places], p[places]))
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def resident() -> float:
    """The most memory this process has used, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def judge_by_model(pairs: Sequence[LabelledPair]) -> list[list[str]]:
    """The encoder, on the language it knows and on the others; nothing without one."""
    if not (folder := os.environ.get("PARLEY_TEST_ENCODER")):
        return []
    before, files = resident(), Path(folder)
    head = EncoderHead.read(files / "head.json")
    encoder = CrossEncoder(EncoderFiles(files / "model.onnx", head.encoder_sha256, files / "tokenizer.json"))
    encoder.read("The first one is slow.", "As it makes room for all that follows.")
    rows = []
    for name, known in (("English", True), ("other languages", False)):
        chosen = [pair for pair in pairs if (pair.language == "en") is known]
        began = time.perf_counter()
        told = [
            head.probability(encoder.read, pair.one, pair.other)
            if all(encoder.knows_language(each, head.known_words) for each in (pair.one, pair.other))
            else None
            for pair in chosen
        ]
        ms = 1000 * (time.perf_counter() - began) / len(chosen)
        rows.append(row(f"agreement model, {name}", chosen, told, ms, resident() - before))
    return rows


def judge_by_likeness(pairs: Sequence[LabelledPair]) -> list[list[str]]:
    """What likeness of words and of meaning would tell."""
    model = MiniLm()
    began = time.perf_counter()
    likeness = [cosine(model.embed(pair.one), model.embed(pair.other)) for pair in pairs]
    ms = 1000 * (time.perf_counter() - began) / len(pairs)
    overlap = [word_overlap(pair.one, pair.other) for pair in pairs]
    return [row("cosine of MiniLM", pairs, likeness, ms, 0), row("overlap of words", pairs, overlap, 0, 0)]


async def judge_by_endpoint(model: str, pairs: Sequence[LabelledPair]) -> list[str]:
    """Any endpoint's model."""
    questions = {topic.name: topic.question for topic in held_out_topics()}
    client = openai.AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"))
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def ask(pair: LabelledPair) -> float | None:
        async with at_once:
            answer = await client.chat.completions.create(
                model=model,
                messages=[
                    {"role": "user", "content": _ASKED.format(questions[pair.topic], pair.one, pair.other)}
                ],
            )
        digits = "".join(each for each in (answer.choices[0].message.content or "") if each.isdigit())
        return min(int(digits), 100) / 100 if digits else None

    began = time.perf_counter()
    told = await asyncio.gather(*(ask(pair) for pair in pairs))
    return row(model, pairs, told, 1000 * (time.perf_counter() - began) / len(pairs), 0)


async def run(quick: bool) -> None:
    """Print the table; `quick` takes each fourth topic."""
    topics = held_out_topics()[:: 4 if quick else 1]
    pairs = pairs_of(topics)
    rows = judge_by_model(pairs) + judge_by_likeness([pair for pair in pairs if pair.language == "en"])
    if model := os.environ.get("PARLEY_BENCH_AGREEMENT_MODEL"):
        rows.append(await judge_by_endpoint(model, pairs))
    table(_HEAD, rows)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main(__doc__, run)
