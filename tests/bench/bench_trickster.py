"""How well the trickster tells hollow agreement from well-argued agreement, on topics that no weight was fitted to.

The judge that is asked is scripted: a seeded die stands for it, which is right about three debates of four and unsure about the
rest. So its lines show what asking adds if a judge is so good, and not how good a model is. With PARLEY_BENCH_TRICKSTER_MODEL,
the model of that name at OPENAI_BASE_URL is asked about the same debates, too, with the trickster's own words.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

import openai
from pydantic import ValidationError
from sklearn.metrics import roc_auc_score

from parley.orchestrator.formats.arena.trickster import combine_with_support
from parley.orchestrator.model.hollowness import Features, features_of, hollow_probability, terms_of
from parley.orchestrator.phases.assess import SUPPORT_PROMPT, Support
from parley.runtime.contract_settings import default_of
from parley.v1.arena_pb2 import TricksterSettings
from tests.bench.figures import main, table
from tests.support.labelled_debates import (
    LabelledDebate,
    read_fitted_debates,
    read_held_out_debates,
    support_told,
)

_HEAD: Final = ["told by", "debates", "precision", "recall", "AUC", "ms"]
_FORM: Final = 'Reply with JSON alone: {"proposals": [{"agent": "A", "support": 0}], "missing": ""}'
_AT_ONCE: Final = 8


def measure(debate: LabelledDebate) -> Features:
    """What is measured of a debate."""
    return features_of(debate.question, debate.work, debate.critiques)


def row(name: str, debates: Sequence[LabelledDebate], told: Sequence[float], ms: float) -> list[str]:
    """A line of figures."""
    hollow = [each.hollow for each in debates]
    fired = [100 * each >= default_of(TricksterSettings, "threshold_percent") for each in told]
    right = sum(a and b for a, b in zip(hollow, fired, strict=True))
    precision = f"{right / sum(fired):.2f}" if any(fired) else "-"
    recall, auc = right / sum(hollow), roc_auc_score(hollow, told)
    return [name, str(len(debates)), precision, f"{recall:.2f}", f"{auc:.2f}", f"{ms:.1f}"]


def judge_by_texts(name: str, debates: Sequence[LabelledDebate]) -> tuple[list[str], list[float]]:
    """The features of the texts alone."""
    began = time.perf_counter()
    told = [hollow_probability(measure(each)) for each in debates]
    return row(name, debates, told, 1000 * (time.perf_counter() - began) / len(debates)), told


def judge_by_feature(debates: Sequence[LabelledDebate]) -> list[list[str]]:
    """The AUC of each feature by itself, towards hollow."""
    terms = [terms_of(measure(each)) for each in debates]
    hollow = [each.hollow for each in debates]
    rows = []
    for name in Features.__struct_fields__:
        auc = roc_auc_score(hollow, [getattr(term, name) for term in terms])
        rows.append([name, f"{max(auc, 1 - auc):.2f}", "more" if auc >= 0.5 else "less"])
    return rows


async def judge_by_endpoint(
    model: str, debates: Sequence[LabelledDebate], told: Sequence[float]
) -> list[str]:
    """The texts and any endpoint's model as the judge; where it keeps to no form, the texts alone count."""
    client = openai.AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"))
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def ask(debate: LabelledDebate, by_text: float) -> float:
        proposals = "\n\n".join(f"Proposal of agent {made.agent}:\n{made.text}" for made in debate.work)
        prompt = f"Question: {debate.question}\n\n{proposals}\n\n{SUPPORT_PROMPT}\n{_FORM}"
        async with at_once:
            answer = await client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": prompt}]
            )
        written = answer.choices[0].message.content or ""
        try:
            said = Support.model_validate_json(written[written.find("{") : written.rfind("}") + 1])
        except ValidationError:
            return by_text
        return combine_with_support(by_text, said.mean)

    began = time.perf_counter()
    both = await asyncio.gather(*(ask(each, p) for each, p in zip(debates, told, strict=True)))
    return row(f"texts and {model}", debates, both, 1000 * (time.perf_counter() - began) / len(debates))


async def run(_quick: bool) -> None:
    """Print the tables."""
    held_out = read_held_out_debates()
    first, told = judge_by_texts("texts alone", held_out)
    support = support_told(held_out)
    both = [combine_with_support(p, each) for p, each in zip(told, support, strict=True)]
    rows = [
        judge_by_texts("texts alone, where it was fitted", read_fitted_debates())[0],
        first,
        row("scripted judge alone", held_out, [1 - each / 10 for each in support], 0),
        row("texts and scripted judge", held_out, both, 0),
    ]
    if model := os.environ.get("PARLEY_BENCH_TRICKSTER_MODEL"):
        rows.append(await judge_by_endpoint(model, held_out, told))
    table(_HEAD, rows)
    sys.stdout.write("\n")
    table(["feature alone", "AUC", "hollow where"], judge_by_feature(held_out))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main(__doc__, run)
