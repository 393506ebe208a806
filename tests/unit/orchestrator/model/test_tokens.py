"""Tokens are counted by kinds of characters, as they always were."""

import re

from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.tokens import estimate_tokens
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
