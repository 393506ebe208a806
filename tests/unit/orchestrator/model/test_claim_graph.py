"""Claim graphs: what is true of every belief, and what a verdict depends on."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.claim_graph import (
    Claim,
    ClaimGraph,
    Relation,
    find_cruxes,
    propagate_belief,
)

LABELLED = Path(__file__).parents[3] / "data/analysis"
IDS = tuple("abcdefgh")
SHARE = st.floats(0, 1)


@st.composite
def graphs(draw: st.DrawFn) -> ClaimGraph:
    ids = IDS[: draw(st.integers(2, len(IDS)))]
    pair = st.tuples(st.sampled_from(ids), st.sampled_from(ids)).filter(lambda each: each[0] != each[1])
    pairs = draw(st.lists(pair, max_size=12))
    relations = tuple(Relation(*each, draw(SHARE), draw(st.booleans())) for each in pairs)
    return ClaimGraph(tuple(Claim(each, draw(SHARE)) for each in ids), relations)


def graph(priors: str, *relations: str, **weights: float) -> ClaimGraph:
    """A graph of `a=0.9 v=0.5` and relations such as `a>v` (supports) and `b-v` (attacks), of weight 0.8 unless said otherwise."""
    claims = tuple(Claim(each[0], float(each[2:])) for each in priors.split())
    made = [Relation(each[0], each[2], weights.get(each[0], 0.8), each[1] == "-") for each in relations]
    return ClaimGraph(claims, tuple(made))


@given(graphs())
def test_every_credence_is_between_0_and_1(some: ClaimGraph) -> None:
    credences = propagate_belief(some)
    assert list(credences) == [each.id for each in some.claims]
    assert all(0 < each < 1 for each in credences.values())


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=8))
def test_a_claim_without_a_relation_keeps_its_prior(priors: list[float]) -> None:
    some = ClaimGraph(tuple(Claim(IDS[place], each) for place, each in enumerate(priors)))
    assert propagate_belief(some) == pytest.approx(dict(zip(IDS, priors, strict=False)), abs=1e-9)


@given(graphs(), SHARE, SHARE)
def test_the_more_a_supporter_is_believed_the_more_is_what_it_supports(
    some: ClaimGraph, one: float, other: float
) -> None:
    supporting = ClaimGraph(some.claims, tuple(each for each in some.relations if not each.attacks))
    lower, higher = sorted((one, other))
    low, high = (propagate_belief(supporting, {"a": each}) for each in (lower, higher))
    assert all(high[each] >= low[each] - 1e-4 for each in low)


@given(SHARE, SHARE, st.floats(0, 1), st.floats(0.5, 1))
def test_support_of_a_believed_claim_raises_and_its_attack_lowers(
    one: float, other: float, prior: float, believed: float
) -> None:
    lower, higher = sorted((one, other))
    claims = (Claim("a", believed), Claim("v", prior))
    supported, more, attacked, less = (
        propagate_belief(ClaimGraph(claims, (Relation("a", "v", weight, attacks),)))["v"]
        for attacks in (False, True)
        for weight in (lower, higher)
    )
    assert less - 1e-9 <= attacked <= supported + 1e-9 <= more + 2e-9


@given(graphs())
def test_a_crux_is_a_claim_whose_reversal_turns_the_verdict(some: ClaimGraph) -> None:
    credences = propagate_belief(some)
    turned = [
        each.id
        for each in some.claims
        if each.id != "a"
        and (propagate_belief(some, {each.id: 1 - credences[each.id]})["a"] - 0.5) * (credences["a"] - 0.5)
        < -1e-3
    ]
    assert set(turned) <= set(find_cruxes(some, "a"))


@pytest.mark.parametrize(
    ("some", "cruxes"),
    [
        (graph("v=0.5 a=0.9", "a>v"), ["a"]),
        (graph("v=0.5 a=0.9 b=0.9", "a>v", "b>v"), []),  # each would do
        (graph("v=0.5 a=0.9 b=0.5", "b>v", "a>b"), ["a", "b"]),  # a chain breaks at each link
        (graph("v=0.5 a=0.9 b=0.9 c=0.9", "a>v", "b>v", "c-v"), ["a", "b"]),
        (graph("v=0.5 a=0.1", "a-v"), ["a"]),  # an attack that is not believed
        (graph("v=0.5 a=0.9 b=0.9", "a>v", b=0.1), ["a"]),  # b says nothing about it
        (graph("v=0.9 a=0.6", "a>v", a=0.1), []),  # too little to turn it
        (graph("v=0.5 a=0.5", "a>v"), []),  # nothing is decided
        (graph("v=0.5 a=0.9 b=0.6", "a-b", "b-v"), ["a", "b"]),  # what speaks against an objection
    ],
    ids=["alone", "either", "chain", "majority", "disbelieved", "apart", "weak", "open", "defence"],
)
def test_it_is_found_what_a_verdict_depends_on(some: ClaimGraph, cruxes: list[str]) -> None:
    assert find_cruxes(some, "v") == cruxes


def test_claims_that_attack_each_other_come_to_rest() -> None:
    credences = propagate_belief(graph("a=0.6 b=0.6", "a-b", "b-a"))
    assert credences["a"] == pytest.approx(credences["b"], abs=1e-6)


@pytest.mark.parametrize(
    ("claims", "relations", "why"),
    [
        ((Claim("a", 0.5), Claim("a", 0.5)), (), "two claims have the same id"),
        ((Claim("a", 0.5),), (Relation("a", "b"),), "a and b are not two claims of this graph"),
        ((Claim("a", 0.5),), (Relation("a", "a"),), "a and a are not two claims of this graph"),
        ((Claim("a", 1.5),), (), "a prior or a weight is not between 0 and 1"),
        ((Claim("a", float("nan")),), (), "a prior or a weight is not between 0 and 1"),
    ],
)
def test_a_graph_that_makes_no_sense_is_refused(
    claims: tuple[Claim, ...], relations: tuple[Relation, ...], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        ClaimGraph(claims, relations)


@pytest.mark.parametrize("half", ["open", "held-out"])
def test_all_planted_cruxes_are_found_and_none_is_invented(half: str) -> None:
    planted: list[dict[str, Any]] = yaml.safe_load((LABELLED / f"cruxes-{half}.yaml").read_text())["graphs"]
    assert len(planted) == 10
    for each in planted:
        claims = tuple(Claim(claim["id"], claim["credence"]) for claim in each["claims"])
        edges = [(edge, False) for edge in each["supports"]] + [(edge, True) for edge in each["attacks"]]
        relations = tuple(
            Relation(edge["source"], edge["target"], edge["weight"], attacks) for edge, attacks in edges
        )
        assert find_cruxes(ClaimGraph(claims, relations), each["verdict"]) == each["cruxes"], each["id"]
