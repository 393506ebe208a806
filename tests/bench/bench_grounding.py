"""How well claims that nothing supports are found, by a local encoder: on the open half and on the held-out one.

PARLEY_TEST_ENCODER names the folder of the encoder: `model.onnx`, `tokenizer.json` and `support.json` of `make support-head`, whose
threshold is chosen on the open half. A claim's words alone are the baseline: a way that is no better does not read what was said.
"""

import os
import time
from pathlib import Path
from typing import Final

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from parley.convergence.encoder import CrossEncoder, EncoderFiles
from parley.convergence.head import EncoderHead
from parley.convergence.models import MiniLm, StaticWords
from tests.bench.figures import main, table
from tests.support.claim_support import (
    Answer,
    best_threshold,
    figures,
    labelled_answers,
    score_claims,
)

_AIM: Final = 0.85
_FOLDS: Final = 10

Scores = dict[str, list[float]]
"""Scores of all claims, by half."""


async def run(quick: bool) -> None:
    """Print the table; a quick run leaves the held-out half out."""
    halves = ("open",) if quick else ("open", "held-out")
    words = _score_by_words(halves)
    rows = _rows(
        "the claim's words alone", words, best_threshold(labelled_answers("open"), words["open"]), 0.0
    )
    if folder := os.environ.get("PARLEY_TEST_ENCODER"):
        began = time.process_time()
        scores = _score_by_encoder(Path(folder), halves)
        rows += _rows("encoder", scores, 0.0, time.process_time() - began)
    table(["half", "by", "AUC", "precision", "recall", "aim", "s of CPU a claim"], rows)


def _score_by_encoder(folder: Path, halves: tuple[str, ...]) -> Scores:
    head = EncoderHead.read(folder / "support.json", "support")
    encoder = CrossEncoder(
        EncoderFiles(folder / "model.onnx", head.encoder_sha256, folder / "tokenizer.json")
    )
    models = StaticWords(), MiniLm()

    def score(text: str, claim: str) -> float:
        return head.score(encoder.read(text, claim))

    return {
        half: [each for answer in labelled_answers(half) for each in score_claims(answer, models, score)]
        for half in halves
    }


def _score_by_words(halves: tuple[str, ...]) -> Scores:
    """Return what a model of the claims' words says that has never seen what was said, trained on the open half."""
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression())
    claims, unsupported, groups = _flat(labelled_answers("open"))
    crossed = cross_val_predict(
        model, claims, unsupported, groups=groups, cv=GroupKFold(_FOLDS), method="decision_function"
    )
    scores = {"open": [-float(each) for each in crossed]}
    model.fit(claims, unsupported)
    for half in set(halves) - {"open"}:
        held_out, _, _ = _flat(labelled_answers(half))
        scores[half] = [-float(each) for each in model.decision_function(held_out)]
    return scores


def _flat(answers: tuple[Answer, ...]) -> tuple[list[str], list[bool], list[int]]:
    """Return all claims, whether they are unsupported, and the places of their answers."""
    return (
        [claim for each in answers for claim in each.claims],
        [label for each in answers for label in each.unsupported],
        [place for place, each in enumerate(answers) for _ in each.claims],
    )


def _rows(by: str, scores: Scores, threshold: float, seconds: float) -> list[list[str]]:
    read = sum(map(len, scores.values()))
    rows = []
    for half, told in scores.items():
        found = figures(labelled_answers(half), told, threshold)
        _, unsupported, _ = _flat(labelled_answers(half))
        met = min(found.precision, found.recall) >= _AIM
        rows.append(
            [
                half,
                by,
                f"{roc_auc_score(unsupported, [-each for each in told]):.3f}",
                f"{found.precision:.2f}",
                f"{found.recall:.2f}",
                f">= {_AIM:g}: {'met' if met else 'missed'}",
                f"{seconds / read:.2f}",
            ]
        )
    return rows


if __name__ == "__main__":
    main(__doc__, run)
