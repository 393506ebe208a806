"""Labelled claims and the texts that support them, and how well an encoder finds those that nothing supports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from parley.convergence.local_model import LocalModel
from parley.convergence.support import CANDIDATES, READ_PASSAGES, choose_passages, split_passages

_DATA: Final = Path("tests/data/analysis")
Embedders = tuple[LocalModel, LocalModel]
"""The fast one and the fine one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's claims, and what was said: contributions and sources.

    Attributes:
        unsupported: For each claim, whether nothing that was said supports it.
    """

    texts: tuple[str, ...]
    claims: tuple[str, ...]
    unsupported: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """How well unsupported claims are found, each 0 to 1."""

    precision: float
    recall: float


@cache
def labelled_answers(half: str) -> tuple[Answer, ...]:
    """Return the labelled answers of the `open` or the `held-out` half."""
    return tuple(
        Answer(
            texts=(
                *(said["text"] for said in each["contributions"]),
                *(f"{source['title']}. {source['text']}" for source in each["sources"]),
            ),
            claims=tuple(claim["text"] for claim in each["claims"]),
            unsupported=tuple(not claim["supported"] for claim in each["claims"]),
        )
        for each in _load(f"grounded-{half}.yaml")["answers"]
    )


def training_pairs() -> list[tuple[str, str, bool]]:
    """Return texts and claims to train on, and whether the text supports the claim.

    Each text and each claim stands once in a pair that fits and once in one that does not: the words of a claim alone say nothing
    about its label.
    """
    pairs = []
    for each in _load("support-train.yaml")["pairs"]:
        texts, claims = (each["text"], each["other_text"]), (each["supported"], each["other_supported"])
        pairs += [(text, claim, m == n) for m, text in enumerate(texts) for n, claim in enumerate(claims)]
    return pairs


def score_claims(answer: Answer, models: Embedders, score: Callable[[str, str], float]) -> list[float]:
    """Return how far each claim of an answer is supported: the most that one passage of what was said supports it."""
    passages = split_passages(answer.texts)
    fast, fine = ({each.text: model.embed(each.text) for each in passages} for model in models)
    scores = []
    for claim in answer.claims:
        near = choose_passages(models[0].embed(claim), passages, fast, CANDIDATES)
        chosen = choose_passages(models[1].embed(claim), near, fine, READ_PASSAGES)
        scores.append(max(score(each.text, claim) for each in chosen))
    return scores


def best_threshold(answers: Sequence[Answer], scores: Sequence[float]) -> float:
    """Return the score below which a claim counts as unsupported, so that the worse of precision and recall is highest."""

    def worse(threshold: float) -> float:
        found = figures(answers, scores, threshold)
        return min(found.precision, found.recall)

    return max(scores, key=worse)


def figures(answers: Sequence[Answer], scores: Sequence[float], threshold: float) -> Figures:
    """Return how well claims with less than a score are the unsupported ones."""
    unsupported = np.array([each for answer in answers for each in answer.unsupported])
    found = np.array(scores) < threshold
    right = (found & unsupported).sum()
    return Figures(float(right / max(found.sum(), 1)), float(right / unsupported.sum()))


@cache
def _load(file: str) -> Any:
    return yaml.load((_DATA / file).read_text("utf-8"), yaml.CSafeLoader)
