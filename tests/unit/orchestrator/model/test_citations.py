"""Claims that need a citation: facts without a source, and not what a proposal wants."""

from pathlib import Path
from typing import Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.citations import MAX_CLAIMS, claims_to_cite
from tests.support.growth import check_growth

LABELLED: Final = Path(__file__).parents[3] / "data" / "citations"


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
        "Studies show it [S3].",
        "40 % of outages come from configuration [S1, S12].",
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
        "The next one is refused at once rather than queued.",
        "A breaker opens when half of the calls of the last 10 s failed.",
        "Half a second for the worker, plus half a second for the page, doubles the median to about 1.9 s.",
        "Twice the price, a year ahead, three customers at most.",
        "A double charge under one key.",
        "If it is the cloud, the answer is no until a trial has shown what it costs.",
        "The collector reads from Kafka and keeps 500 rows in memory.",
        "That makes about 40 % of all calls.",
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
    assert claims_to_cite(calm * 600 + "Studies show it.") == ("Studies show it.",)
    assert claims_to_cite(calm * 700 + "Studies show it.") == ()


@pytest.mark.parametrize("half", ["fit", "held-out"])
def test_most_claims_are_found_and_most_that_are_found_are_claims(half: str) -> None:
    debates = yaml.safe_load((LABELLED / f"{half}.yaml").read_text())
    labelled = [
        (sentence, is_claim, bool(claims_to_cite(sentence, debate["question"])))
        for debate in debates
        for is_claim, sentences in ((True, debate["claims"]), (False, debate["others"].values()))
        for sentence in sentences
    ]
    assert len(labelled) > 120
    claims = {sentence for sentence, is_claim, _ in labelled if is_claim}
    found = {sentence for sentence, _, is_found in labelled if is_found}
    assert len(claims & found) / len(found) >= 0.85, found - claims
    assert len(claims & found) / len(claims) >= 0.85, claims - found


def test_what_the_person_who_asks_says_is_no_claim() -> None:
    told = "PostgreSQL serves 90,000 reads per second."
    assert claims_to_cite(told) == (told,)
    assert claims_to_cite(told, "We measured 90,000 reads per second.") == ()
    assert claims_to_cite("Half of the 40 servers are idle.", "We have 40 servers.") == ()
    assert claims_to_cite("PostgreSQL takes 40 calls of 25 ms, 1,000 ms in all.") == (), "which is calculated"


def test_a_word_that_begins_a_sentence_is_a_name_if_it_is_one_elsewhere() -> None:
    told = "Redis takes 40 ms for that."
    assert claims_to_cite(told) == ()
    assert claims_to_cite(f"We begin with Redis. {told}") == (told,)
    assert claims_to_cite(told, "Is it to be Redis or PostgreSQL?") == (told,)
