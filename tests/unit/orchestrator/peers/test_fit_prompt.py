"""Prompts that fit a message: what gives way, in which order, and what is said of it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.errors import StepError
from parley.orchestrator.peers import fit_prompt as module
from parley.orchestrator.peers.fit_prompt import MAX_PROMPT_BYTES, fit_prompt, shorten_prompt
from parley.v1.gateway_pb2 import PROMPT_ROLE_USER, GenerateRequest, PromptPart
from parley.v1.source_pb2 import Passage

MIB = 1024 * 1024


def request_of(*parts: tuple[str, int]) -> GenerateRequest:
    return GenerateRequest(
        prompt=[PromptPart(role=PROMPT_ROLE_USER, text=text, shrink_priority=give) for text, give in parts]
    )


def test_a_prompt_that_fits_is_left_as_it_is() -> None:
    request = request_of(("Question", 0), ("x" * 7 * MIB, 1))
    before = request.SerializeToString()
    assert fit_prompt(request) == 0
    assert request.SerializeToString() == before


def test_what_gives_more_is_shortened_first_and_the_longest_most() -> None:
    request = request_of(("Question", 0), ("a" * 2 * MIB, 1), ("b" * 9 * MIB, 2), ("c" * MIB, 2), ("Task", 0))
    left_out = fit_prompt(request)
    first, kept, shortened, short, last = (part.text for part in request.prompt)
    assert (first, kept, short, last) == ("Question", "a" * 2 * MIB, "c" * MIB, "Task")
    assert f"\n[… {left_out} characters left out …]\n" in shortened
    assert re.fullmatch(r"b+\n\[… \d+ characters left out …\]\nb+", shortened)
    assert shortened.count("b") + left_out == 9 * MIB
    assert MAX_PROMPT_BYTES - 1024 < request.ByteSize() <= MAX_PROMPT_BYTES + 1024


def test_a_prompt_whose_fixed_parts_are_too_long_fails_its_step() -> None:
    request = request_of(("q" * 9 * MIB, 0), ("x" * MIB, 1))
    with pytest.raises(StepError, match="may not be left out") as failed:
        fit_prompt(request)
    assert failed.value.reason == "CONTEXT_OVERFLOW"


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 3), st.sampled_from("zé水🙂")), max_size=12))
def test_whatever_may_give_way_fits_and_every_character_is_kept_or_counted(
    parts: list[tuple[int, int, str]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_PROMPT_BYTES", 6000)
        request = request_of(*((letter * length, give) for length, give, letter in parts))
        left_out = fit_prompt(request)
        kept = sum(
            part.text.count(letter) for part, (_, _, letter) in zip(request.prompt, parts, strict=True)
        )
        marks = sum(part.text.count("characters left out") for part in request.prompt)
        assert sum(len(part.text.encode()) for part in request.prompt) <= 6000
        assert kept + left_out == sum(length for length, _, _ in parts)
        assert bool(marks) == bool(left_out)


def test_a_prompt_is_shortened_to_a_share_of_its_size_but_for_what_must_stay() -> None:
    request = request_of(("Question", 0), ("z" * 40_000, 1), ("y" * 10_000, 1))
    left_out = shorten_prompt(request, 0.25)
    kept = [part.text.count("z") + part.text.count("y") for part in request.prompt]
    assert left_out == 50_000 - sum(kept)
    assert 12_000 < sum(len(part.text) for part in request.prompt) <= 12_600
    assert request.prompt[0].text == "Question"
    assert shorten_prompt(request_of(("q" * 5000, 0), ("x" * 100, 1)), 0.0) == 0


def test_a_prompt_that_may_be_whole_stays_whole() -> None:
    assert shorten_prompt(request_of(("Question", 0), ("a" * 40_000, 1)), 1.0) == 0


def test_of_a_document_whose_passages_are_known_these_are_kept() -> None:
    request = request_of(("水" * 2_000 + "Otters sleep." + "水" * 2_000, 1))
    request.prompt[0].passages.append(Passage(start=2_000, end=2_013))
    left_out = shorten_prompt(request, 0.25)
    (part,) = request.prompt
    assert "Otters sleep." in part.text
    assert not part.passages
    assert len(part.text.encode()) <= 0.25 * (4_000 * 3 + 13)
    assert part.text.count("水") + 13 + left_out == 4_013
