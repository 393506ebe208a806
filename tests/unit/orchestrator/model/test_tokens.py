"""Tokens are counted by kinds of characters, as they always were."""

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.fitting import estimate_tokens
from parley.orchestrator.model import tokens
from parley.orchestrator.model.tokens import likely_tokens, upper_tokens

KINDS = st.text(
    st.sampled_from(
        "az AZ\t\n\r\f\v\x1c\x1f.,-0_\x85\xa0éЖعא߿ࠀ一用\u1680\u2003\u2028\u202f\u205f\u3000\u200b😀\ud800"
    )
)
TEXTS = st.text() | KINDS


@given(TEXTS)
def test_a_third_of_letters_and_every_other_byte_is_a_token_at_most(text: str) -> None:
    written = text.encode("utf-8", "surrogatepass")
    others = len(re.sub(rb"[A-Za-z\s]+", b"", written))
    assert upper_tokens(text) == -(-(len(written) - others) // 3) + others


@given(TEXTS)
def test_what_is_likely_goes_by_the_script(text: str) -> None:
    others = re.sub(r"[A-Za-z\s]+", "", text)
    rest = re.sub(r"[\x00-\u07ff]+", "", others)
    assert likely_tokens(text) == (len(text) - len(others)) // 4 + (len(others) - len(rest)) // 2 + len(rest)


@given(TEXTS)
def test_the_gateway_counts_no_more(text: str) -> None:
    assert estimate_tokens(text) <= upper_tokens(text)


def test_large_texts_that_were_counted_are_not_all_kept() -> None:
    tracemalloc.start()
    try:
        for number in range(40):
            upper_tokens(f"{number} {'words ' * 700_000}")
            likely_tokens(f"{number} {'words ' * 700_000}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 40 * 1024 * 1024, "40 texts have 160 MiB"


def test_a_text_is_counted_once_while_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "counted once"
    before = upper_tokens(text)
    monkeypatch.setattr(tokens, "CHARACTERS_A_TOKEN", 1)
    assert upper_tokens(text) == before
    assert upper_tokens("counted anew") == len("counted anew")
