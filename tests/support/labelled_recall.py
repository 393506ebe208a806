"""How well questions of the labelled set find their memories.

Ours is compared with the plain cosine of the vectors and with plain BM25 over all words.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import log
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from parley.convergence.models import MiniLm
from parley.memory.debate import search_text
from parley.memory.ranking import CANDIDATES, Candidate, lowest_similarity, rank
from parley.memory.settings import MemorySettings
from parley.memory.traces import Trace, judge_importance
from parley.memory.words import list_words
from parley.v1 import voting_pb2 as voting
from parley.v1.memory_pb2 import PastDebate

DATA: Final = Path("tests/data/memory")
NOW: Final = datetime(2026, 11, 25, tzinfo=UTC)
FLOOR: Final = MemorySettings.model_fields["recall_floor_percent"].default / 100

Finder = Callable[[int], Sequence[str]]
"""Finds the ids of memories for the question with this number, best first."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one way to recall on one half. `silent` is how many of the questions without an answer (`unanswered`) got none."""

    recall: float
    reciprocal_rank: float
    silent: int
    unanswered: int


@cache
def _load(name: str, key: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.load((DATA / name).read_text("utf-8"), yaml.CSafeLoader)[key]
    return found


def _load_questions(part: str) -> Sequence[Mapping[str, Any]]:
    if part != "reworded":
        return _load(f"recall-{part}.yaml", "questions")
    relevant = {each["id"]: each["relevant"] for each in _load("recall-open.yaml", "questions")}
    return [
        {"text": text, "relevant": relevant[each["id"]]}
        for each in _load("recall-reworded.yaml", "questions")
        for text in each["texts"]
    ]


@dataclass(frozen=True)
class Memories:
    """The memories with their vectors and traces."""

    ids: Sequence[str]
    debates: Sequence[PastDebate]
    vectors: np.ndarray[Any, Any]
    traces: Sequence[Trace]


@cache
def _model() -> MiniLm:
    return MiniLm()


@cache
def _memories() -> Memories:
    memories = _load("memories.yaml", "memories")
    debates = [_to_debate(each) for each in memories]
    vectors = np.stack([_model().embed(search_text(each)) for each in debates])
    traces = [
        Trace(frozenset(list_words(search_text(each))), judge_importance(each), each.concluded_at.seconds)
        for each in debates
    ]
    return Memories([each["id"] for each in memories], debates, vectors, traces)


def _to_debate(memory: Mapping[str, Any]) -> PastDebate:
    strength = voting.VoteStrength.Value(f"VOTE_STRENGTH_{memory['strength'].upper()}")
    debate = PastDebate(
        debate_id=memory["id"],
        question=memory["question"],
        conclusion=memory["conclusion"],
        strength=strength,
    )
    debate.concluded_at.FromDatetime(datetime.fromisoformat(memory["date"]))
    return debate


def measure(part: str) -> dict[str, Figures]:
    """Return the figures of all ways on `open`, `reworded` or `held-out`: `ours`, `cosine` and `bm25`."""
    questions, kept = _load_questions(part), _memories()
    vectors = np.stack([_model().embed(each["text"]) for each in questions])
    cosines = vectors @ kept.vectors.T
    bm25 = _score_bm25([each["text"] for each in questions], kept.debates)

    def find_ours(number: int) -> Sequence[str]:
        nearest = np.argsort(-cosines[number], kind="stable")[:CANDIDATES]
        candidates = [
            Candidate(kept.ids[place], float(cosines[number][place]), kept.vectors[place], kept.traces[place])
            for place in nearest
            if cosines[number][place] >= lowest_similarity(FLOOR)
        ]
        words = list_words(questions[number]["text"])
        return [each.key for each in rank(words, candidates, FLOOR, NOW.timestamp())]

    def order_by(scores: np.ndarray[Any, Any]) -> Finder:
        return lambda number: [kept.ids[place] for place in np.argsort(-scores[number], kind="stable")]

    ways = {"ours": find_ours, "cosine": order_by(cosines), "bm25": order_by(bm25)}
    return {name: _measure(questions, find) for name, find in ways.items()}


def _measure(questions: Sequence[Mapping[str, Any]], find: Finder) -> Figures:
    recalls, ranks, silent = [], [], 0
    for number, question in enumerate(questions):
        found, relevant = find(number), set(question["relevant"])
        if not relevant:
            silent += not found
            continue
        recalls.append(len(relevant.intersection(found[:5])) / len(relevant))
        places = [place for place, each in enumerate(found, start=1) if each in relevant]
        ranks.append(1 / places[0] if places else 0.0)
    return Figures(float(np.mean(recalls)), float(np.mean(ranks)), silent, len(questions) - len(ranks))


def _score_bm25(questions: Sequence[str], debates: Sequence[PastDebate]) -> np.ndarray[Any, Any]:
    texts = [Counter(re.findall(r"\w+", search_text(each).lower())) for each in debates]
    having = Counter(word for each in texts for word in each)
    lengths = np.array([each.total() for each in texts])
    scores = np.zeros((len(questions), len(debates)))
    for number, question in enumerate(questions):
        for word in set(re.findall(r"\w+", question.lower())):
            weight = log(1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5))
            counts = np.array([each[word] for each in texts])
            scores[number] += (
                weight * counts * 2.2 / (counts + 1.2 * (0.25 + 0.75 * lengths / lengths.mean()))
            )
    return scores
