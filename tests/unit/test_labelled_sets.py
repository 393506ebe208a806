"""The labelled sets of memory and analysis have the form that their READMEs describe."""

from collections import Counter
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

DATA = Path("tests/data")
HALVES = ("open", "held-out")
both_halves = pytest.mark.parametrize("half", HALVES)


@cache
def load(file: str, key: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.load((DATA / file).read_text("utf-8"), yaml.CSafeLoader)[key]
    return found


def load_both(name: str, key: str) -> list[dict[str, Any]]:
    return [each for half in HALVES for each in load(f"{name}-{half}.yaml", key)]


def are_unique(values: list[Any]) -> bool:
    return len(values) == len(set(values))


def sentences(text: str) -> int:
    return sum(word.endswith((".", "?", "!")) for word in text.split())


def test_each_of_the_thousand_memories_is_a_dated_decision() -> None:
    memories = load("memory/memories.yaml", "memories")
    assert len(memories) == 1000
    assert are_unique([each["id"] for each in memories])
    assert are_unique([each["question"] for each in memories])
    for each in memories:
        assert 1 <= sentences(each["conclusion"]) <= 4, each
        assert each["strength"] in {"unanimous", "strong", "moderate", "weak", "split"}, each
        assert date.fromisoformat(each["date"]) < date(2026, 11, 25), each
    assert len({each["domain"] for each in memories}) >= 10


@both_halves
def test_half_of_the_questions_name_memories_that_exist(half: str) -> None:
    ids = {each["id"] for each in load("memory/memories.yaml", "memories")}
    questions = load(f"memory/recall-{half}.yaml", "questions")
    assert Counter(bool(each["relevant"]) for each in questions) == {True: 50, False: 10}
    for each in questions:
        named = each["relevant"] + each["near_misses"]
        assert are_unique(named)
        assert ids.issuperset(named), each
        assert bool(each["relevant"]) == bool(each["near_misses"]), each
        assert len(each["relevant"]) <= 3
        assert len(each["near_misses"]) <= 3


def test_no_memory_belongs_to_two_questions() -> None:
    questions = load_both("memory/recall", "questions")
    assert are_unique([each["id"] for each in questions])
    assert are_unique([each["text"] for each in questions])
    assert are_unique([name for each in questions for name in each["relevant"] + each["near_misses"]])


def test_each_open_question_with_an_answer_is_asked_in_two_other_wordings() -> None:
    reworded = load("memory/recall-reworded.yaml", "questions")
    questions = load("memory/recall-open.yaml", "questions")
    assert [each["id"] for each in reworded] == [each["id"] for each in questions if each["relevant"]]
    texts = [each["text"] for each in questions] + [text for each in reworded for text in each["texts"]]
    assert are_unique(texts)
    assert len(texts) == len(questions) + 2 * len(reworded)


@both_halves
def test_half_of_the_ledgers_label_pairs_of_stands(half: str) -> None:
    ledgers = load(f"memory/flips-{half}.yaml", "ledgers")
    assert len(ledgers) == 30
    for each in ledgers:
        stands = {stand["id"]: stand for stand in each["stands"]}
        assert 3 <= len(stands) == len(each["stands"]) <= 8
        assert all(a["date"] <= b["date"] for a, b in pairwise(each["stands"]))
        near = {tuple(miss["pair"]): miss["why"] for miss in each["near_misses"]}
        flips = {tuple(pair) for pair in each["flips"]}
        assert flips.isdisjoint(near)
        for a, b in flips:
            assert stands[a]["agent"] == stands[b]["agent"], each["id"]
            assert stands[a]["date"] < stands[b]["date"], each["id"]
        for (a, b), why in near.items():
            assert why in {"same", "other-agent", "other-matter", "refinement", "condition-met"}
            assert (stands[a]["agent"] != stands[b]["agent"]) == (why == "other-agent"), each["id"]


def test_a_quarter_of_the_ledgers_has_no_flip() -> None:
    ledgers = load_both("memory/flips", "ledgers")
    assert are_unique([each["id"] for each in ledgers])
    assert sum(not each["flips"] for each in ledgers) == 15


@both_halves
def test_half_of_the_claims_of_each_answer_are_supported_by_what_was_said(half: str) -> None:
    answers = load(f"analysis/grounded-{half}.yaml", "answers")
    assert len(answers) == 20
    for each in answers:
        assert 3 <= len(each["contributions"]) <= 5
        assert 1 <= len(each["sources"]) <= 3
        assert all(80 <= len(said["text"].split()) <= 200 for said in each["contributions"]), each["id"]
        ids = [part["id"] for part in each["contributions"] + each["sources"]]
        assert are_unique(ids)
        assert Counter(claim["supported"] for claim in each["claims"]) == {True: 5, False: 5}
        for claim in each["claims"]:
            assert claim["supported"] == bool(claim["supported_by"]) == ("why" not in claim), claim
            assert are_unique(claim["supported_by"] + claim["opposed_by"]), claim
            assert set(ids).issuperset(claim["supported_by"] + claim["opposed_by"]), claim


def test_each_claim_to_train_on_has_a_text_that_supports_it_and_one_that_does_not() -> None:
    pairs = load("analysis/support-train.yaml", "pairs")
    assert len(pairs) == 92
    assert are_unique([each["id"] for each in pairs])
    texts = [each[name] for each in pairs for name in ("text", "other_text")]
    claims = [each[name] for each in pairs for name in ("supported", "other_supported")]
    assert are_unique(texts)
    assert are_unique(claims)
    assert {each["kind"] for each in pairs} == {
        "number",
        "reversed",
        "name",
        "quantifier",
        "cause",
        "new",
        "hedge",
    }


@both_halves
def test_nothing_to_train_on_stands_in_a_half(half: str) -> None:
    trained_on = {
        each[name] for each in load("analysis/support-train.yaml", "pairs") for name in each if name != "id"
    }
    for answer in load(f"analysis/grounded-{half}.yaml", "answers"):
        assert trained_on.isdisjoint(claim["text"] for claim in answer["claims"])


@both_halves
def test_half_of_the_graphs_name_claims_that_exist(half: str) -> None:
    graphs = load(f"analysis/cruxes-{half}.yaml", "graphs")
    assert Counter(bool(each["cruxes"]) for each in graphs) == {True: 8, False: 2}
    for each in graphs:
        ids = [claim["id"] for claim in each["claims"]]
        edges = each["supports"] + each["attacks"]
        assert are_unique(ids)
        assert 5 <= len(ids) <= 15
        assert set(ids).issuperset([each["verdict"], *each["cruxes"]])
        assert set(ids).issuperset(edge[end] for edge in edges for end in ("source", "target"))
        assert each["verdict"] not in each["cruxes"]
        assert all(0 < edge["weight"] < 1 for edge in edges)
        assert all(0 < claim["credence"] < 1 for claim in each["claims"])


def test_the_ids_of_answers_and_graphs_are_unique() -> None:
    assert are_unique([each["id"] for each in load_both("analysis/grounded", "answers")])
    assert are_unique([each["id"] for each in load_both("analysis/cruxes", "graphs")])
