"""Claims that need a citation: facts without a source, and not what a proposal wants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.citations import MAX_CLAIMS, claims_to_cite
from tests.support.growth import check_growth


@pytest.mark.parametrize(
    "claim",
    [
        "Studies show that small teams ship faster.",
        "Recent research clearly suggests otherwise.",
        "It is well known that monoliths are simpler.",
        "Caching has been shown to halve the load.",
        "About 40 % of outages come from configuration.",
        "PostgreSQL is 3 times faster than its rivals.",
        "The library costs $400 a month.",
        "The API was retired in 2021.",
    ],
)
def test_facts_without_a_source_need_one(claim: str) -> None:
    assert claims_to_cite(f"We begin small. {claim} That is all.") == (claim,)


@pytest.mark.parametrize(
    "text",
    [
        "Studies show it [3].",
        "Studies show it (Miller et al., 2019).",
        "According to the Stack Overflow survey, 40 % of developers use it.",
        "40 % of outages come from configuration, see https://example.org/outages.",
        "The context says so: 40 % of users are abroad (users.md).",
        "RFC 9110 says since 2022 what a 404 is.",
        "We should keep 20 % of the capacity free.",
        "If traffic is 10 times larger, add a node.",
        "Assume that 5 % of the calls fail.",
        "Is it true that 40 % fail?",
        "Use a queue between the parts.",
        "```\nerrors = 40 % of calls.\n```",
        "| share | 40 % |",
        "# Why 40 % is enough",
        "Position: 40 % of outages come from configuration.",
    ],
)
def test_what_has_a_source_or_is_wanted_or_is_no_prose_does_not(text: str) -> None:
    assert claims_to_cite(text) == ()


def test_items_of_lists_are_read_one_by_one_and_each_claim_is_named_once() -> None:
    text = "- Studies show it.\n- Use it.\n1. Half the users left in 2020.\n\nStudies\nshow it."
    assert claims_to_cite(text) == ("Studies show it.", "Half the users left in 2020.")


def test_there_are_never_more_than_a_few_and_none_is_long() -> None:
    many = " ".join(f"It was {number} % in all." for number in range(20))
    assert len(claims_to_cite(many)) == MAX_CLAIMS
    assert len(claims_to_cite(f"Studies show {'that ' * 200}it.")[0]) == 300


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    for claim in claims_to_cite(text):
        assert claim.strip()


@pytest.mark.parametrize(
    "piece", ["`", "```\n", "1", "studies ", "a", "(A ", "- ", ". A", "$", "1,", "1.", "a-", "a/", "5%"]
)
def test_long_texts_take_no_long_time(piece: str) -> None:
    check_growth(lambda pieces: claims_to_cite(piece * pieces), 20_000)


def test_only_the_first_part_of_an_endless_text_is_read() -> None:
    calm = "We begin small. "
    assert claims_to_cite(calm * 900 + "Studies show it.") == ("Studies show it.",)
    assert claims_to_cite(calm * 1100 + "Studies show it.") == ()
