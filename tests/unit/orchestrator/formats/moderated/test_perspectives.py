"""The choice of perspectives: deterministic, always with an opposing pair, and with one of the debate's own where it has some."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.formats.moderated.perspectives import (
    SelectionCriteria,
    Viewpoint,
    are_opposed,
    catalogue,
    debater_count,
    load_built_in,
    opposing_pairs,
    select_perspectives,
    weigh_perspectives,
)
from parley.orchestrator.model.errors import DebateFailedError
from parley.v1.moderated_pb2 import Perspective

_SUBJECTS = (
    "cache user sessions in Redis or PostgreSQL",
    "use GraphQL or REST for the public API",
    "split the monolith into microservices",
    "store passwords with our own code",
    "deploy on Kubernetes or on plain servers",
    "build plugins or hard-code the reports",
    "redesign the checkout page for mobile",
    "rewrite the billing job in Rust",
    "keep events for ever",
    "choose a name for the cat",
)
_FORMS = (
    "Should we {}?",
    "How should a small team {}, with a deadline next week?",
    "{}: which way is right when performance matters and auditors look?",
    "Wir fragen uns: {} oder nicht?",
    "{}",
)
COMPLIANCE = Perspective(
    name="Compliance First",
    priorities=["audit trails", "data residency", "SOC2 requirements"],
    trade_offs="Will accept development slowdown for compliance",
)
QUIET = Perspective(name="Nature", priorities=["birdsong"], trade_offs="Will walk.", keywords=["forest"])


def prompts() -> list[str]:
    return [form.format(subject) for form, subject in product(_FORMS, _SUBJECTS)]


def names(chosen: Sequence[Viewpoint]) -> list[str]:
    return [each.name for each in chosen]


def test_there_are_fifty_prompts_and_six_perspectives() -> None:
    assert len(set(prompts())) == 50
    assert len(load_built_in()) == 6


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("custom", [(), (COMPLIANCE,)])
def test_over_fifty_prompts_two_of_those_chosen_always_oppose_each_other(
    count: int, custom: Sequence[Perspective]
) -> None:
    known = catalogue(custom)
    for prompt in prompts():
        chosen = select_perspectives(known, SelectionCriteria(prompt), count)
        assert len(set(names(chosen))) == count
        assert opposing_pairs(chosen), prompt
        assert any(each.is_custom for each in chosen) or not custom, prompt


def test_words_of_the_question_choose_who_debates() -> None:
    chosen = select_perspectives(
        load_built_in(), SelectionCriteria("How do we secure login tokens against attackers?"), 2
    )
    assert "Security Advocate" in names(chosen)
    chosen = select_perspectives(
        load_built_in(), SelectionCriteria("Why is caching slow, and how do we cut latency?"), 2
    )
    assert "Performance Advocate" in names(chosen)


def test_constraints_domain_and_the_moderators_order_weigh_too() -> None:
    plain = weigh_perspectives(load_built_in(), SelectionCriteria("What now?"))
    told = weigh_perspectives(
        load_built_in(),
        SelectionCriteria("What now?", "security", ["We must ship soon."], ["User Experience"]),
    )
    assert {name for name in plain if told[name] > plain[name]} == {
        "Security Advocate",
        "Simplicity Advocate",
        "User Experience",
    }


def test_the_moderators_order_cannot_choose_those_who_agree() -> None:
    alike = ["Performance Advocate", "Future Flexibility"]
    assert not are_opposed(*(each for each in load_built_in() if each.name in alike))
    chosen = select_perspectives(load_built_in(), SelectionCriteria("What now?", ranking=alike), 2)
    assert opposing_pairs(chosen)


def test_a_perspective_with_the_name_of_one_that_comes_along_takes_its_place() -> None:
    own = Perspective(
        name="security advocate", priorities=["no secrets in logs"], trade_offs="Accepts friction for users."
    )
    known = catalogue([own])
    assert len(known) == 6
    assert known[-1].is_custom
    assert known[-1].gives_up == {"experience"}


def test_what_is_given_up_is_told_from_the_words_before_what_is_got_for_it() -> None:
    (own,) = (each for each in catalogue([COMPLIANCE]) if each.is_custom)
    assert own.wants == {"safety"}
    assert own.gives_up == {"pace"}
    against = {each.name for each in load_built_in() if are_opposed(own, each)}
    assert against == {"Simplicity Advocate"}


def test_a_perspective_may_say_itself_whom_it_opposes() -> None:
    own = Perspective(
        name="Nature", priorities=["birdsong"], trade_offs="Will walk.", opposes=["user experience"]
    )
    known = catalogue([own])
    assert names(select_perspectives(known, SelectionCriteria("What now?"), 2)) == [
        "User Experience",
        "Nature",
    ]


def test_one_of_the_debates_own_that_opposes_nobody_gets_a_third_seat() -> None:
    known = catalogue([QUIET])
    assert debater_count(known, 2) == 3
    assert debater_count(known, 4) == 4
    assert debater_count(catalogue([COMPLIANCE]), 2) == 2
    assert "Nature" in names(
        select_perspectives(known, SelectionCriteria("What now?"), debater_count(known, 2))
    )


def test_where_all_agree_there_is_no_debate() -> None:
    with pytest.raises(DebateFailedError, match="oppose"):
        select_perspectives(load_built_in()[2:4], SelectionCriteria("What now?"), 2)


_WORDS = st.sampled_from(
    [
        "speed",
        "latency",
        "simple",
        "complexity",
        "security",
        "privacy",
        "user",
        "friction",
        "deploy",
        "budget",
        "schema",
        "delay",
        "birds",
        "moon",
        "extensible",
    ]
)
_PERSPECTIVES = st.lists(
    st.builds(
        Perspective,
        name=st.integers(0, 99).map(lambda number: f"Custom {number}"),
        priorities=st.lists(_WORDS, min_size=1, max_size=3),
        trade_offs=st.lists(_WORDS, min_size=1, max_size=4).map(" ".join),
        keywords=st.lists(_WORDS, max_size=3),
    ),
    max_size=5,
    unique_by=lambda each: each.name,
)


@given(
    _PERSPECTIVES,
    st.lists(_WORDS, max_size=8).map(" ".join),
    st.integers(2, 4),
    st.permutations([each.name for each in load_built_in()]),
)
def test_whatever_is_asked_and_brought_the_set_opposes_is_complete_and_the_same_again(
    custom: list[Perspective], question: str, wanted: int, ranking: list[str]
) -> None:
    known = catalogue(custom)
    count = debater_count(known, wanted)
    assert count - wanted in {0, 1}
    occasion = SelectionCriteria(question, ranking=ranking[:3])
    chosen = select_perspectives(known, occasion, count)
    assert len(set(names(chosen))) == count
    assert opposing_pairs(chosen)
    assert any(each.is_custom for each in chosen) or not custom
    assert select_perspectives(known, occasion, count) == chosen
