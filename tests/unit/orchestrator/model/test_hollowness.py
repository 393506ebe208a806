"""How hollow an agreement is: what is measured, how it is weighed, and what that does on topics that no weight was fitted to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from parley.orchestrator.model.challenge import challenge_of
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.hollowness import (
    BIAS,
    NEUTRAL,
    WEIGHTS,
    Features,
    features_of,
    hollow_probability,
)
from parley.v1.critique_pb2 import Critique, Issue
from tests.bench.fit_trickster import fitted
from tests.support.labelled_debates import read_fitted_debates, read_held_out_debates

QUESTION = "Which of the 3 databases, Postgres among them?"
FILLER = "and so it goes on with words that say no more than that there are some of them in it"


def measure(*texts: str, critiques: tuple[Critique, ...] = ()) -> Features:
    work = [Contribution(str(place), "refinement", 3, text) for place, text in enumerate(texts)]
    said = [Contribution("9", "critique", 3, "", target="0", critique=each) for each in critiques]
    return features_of(QUESTION, work, said)


def test_held_out_debates_are_told_with_the_precision_and_recall_that_is_aimed_at() -> None:
    debates = read_held_out_debates()
    told = [
        hollow_probability(features_of(each.question, each.work, each.critiques)) >= 0.5 for each in debates
    ]
    right = sum(each.hollow and fired for each, fired in zip(debates, told, strict=True))
    assert right / sum(told) >= 0.9, "precision"
    assert right / sum(each.hollow for each in debates) >= 0.8, "recall"


def test_the_labelled_debates_are_many_and_no_topic_is_both_fitted_to_and_held_out() -> None:
    fit, held_out = read_fitted_debates(), read_held_out_debates()
    assert len(fit) + len(held_out) >= 60
    assert not {each.topic for each in fit} & {each.topic for each in held_out}
    assert 2 * sum(each.hollow for each in held_out) == len(held_out)


def test_the_constants_are_those_that_the_fit_comes_to() -> None:
    weights, bias, means = fitted()
    assert astuple(WEIGHTS) == pytest.approx(weights, abs=0.006)
    assert astuple(NEUTRAL) == pytest.approx(means, abs=0.006)
    assert pytest.approx(bias, abs=0.006) == BIAS


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("It took 54 ms and 1,450 dollars, 2.5 times as long.", 3),
        ("About 80 %, or 9,000 at most.", 0),
        ("Between 12 and 18 months, 10-15 people.", 0),
        ("12. First\n13. Second", 0),
        ("As agent 12 said in round 11, I am 100 % for it.", 0),
        ("LTO-18 and AES-256.", 0),
    ],
)
def test_figures_are_what_somebody_may_have_measured(text: str, figures: int) -> None:
    features = measure(f"{text} {FILLER}", FILLER)
    words = len(text.replace("-", " ").split()) + len(FILLER.split())
    assert features.figures == pytest.approx(50 * figures / words, rel=0.5)
    assert bool(features.figures) is bool(figures)


def test_what_the_question_says_is_no_evidence() -> None:
    assert measure(f"I take Postgres, {FILLER}").specifics == 0
    assert measure(f"I take Cassandra, {FILLER}").specifics > 0


def test_german_nouns_are_no_names() -> None:
    assert (
        measure(
            "Für die Praxis ist das digitale Rezept eine Chance, denn die Arbeit wird leichter."
        ).specifics
        == 0
    )


def test_echo_is_the_share_of_pairs_of_words_that_others_have_too() -> None:
    assert measure("one two three four five", "six seven eight nine ten").echo == 0
    assert measure("one two three four five", "one two three four five").echo == 1
    assert measure("one two three", "one two four").echo == 0.5


def test_critics_are_silent_who_agree_and_raise_nothing_that_matters() -> None:
    silent = Critique(agrees=True, issues=[Issue(text="A comma.", severity=3)])
    assert measure(FILLER, critiques=(silent, Critique(agrees=True))).silence == 1
    assert measure(FILLER, critiques=(silent, Critique(agrees=False))).silence == 0.5
    serious = Critique(agrees=True, issues=[Issue(text="It fails.", severity=4)])
    assert measure(FILLER, critiques=(serious, Critique(issues=[Issue(text="It fails.")]))).silence == 0
    assert measure(FILLER).silence is None


def test_words_of_english_are_not_counted_in_other_languages() -> None:
    features = measure("Ich bin dafür, weil es robust ist und weil alle es so wollen.")
    assert (features.reasons, features.reports, features.vagueness) == (None, None, None)
    assert 0 < hollow_probability(features) < 1


@given(st.lists(st.text(max_size=200), min_size=1, max_size=4))
def test_any_texts_can_be_measured_in_any_order(texts: list[str]) -> None:
    features = measure(*texts)
    shuffled = sorted(texts)
    assert astuple(measure(*shuffled)) == pytest.approx(astuple(features))
    assert 0 <= hollow_probability(features) <= 1


def test_a_challenge_names_what_is_worse_than_usual_and_nothing_else() -> None:
    good = Features(figures=9, specifics=9, reasons=9, reports=9, vagueness=0, echo=0, silence=0)
    for name, worse, told in (
        ("figures", 0.3, "figures: 0.3 in 100 words"),
        ("specifics", 0.0, "particulars: none."),
        ("reasons", 0.0, "reasons"),
        ("reports", 0.0, "experience"),
        ("vagueness", 9.0, "plain words: 9.0"),
        ("echo", 0.8, "80 % of the pairs of words"),
        ("silence", 1.0, "100 % of the critiques"),
    ):
        challenge = challenge_of(replace(good, **{name: worse}))
        assert told.replace(" %", "%") in challenge
        assert challenge.count("\n- ") == 1
    assert "lacking" not in challenge_of(good)
    assert "Invent no numbers" in challenge_of(good)
