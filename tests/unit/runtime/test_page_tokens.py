"""A page token leads to the place that ended a page, and a forged one to a refusal."""

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.runtime.errors import ParleyError
from parley.runtime.page_tokens import read_token, to_token
from parley.runtime.validation import Violations


@given(st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=64))
def test_a_token_leads_back_to_its_place(place: float, name: str) -> None:
    assert read_token(Violations(), to_token((place, name))) == (place, name)


def encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@given(st.text(min_size=1) | st.text().map(encode))
@example(encode(f'[{"9" * 400}, ""]'))
@example(encode('[NaN, ""]'))
@example(encode('[1e999, ""]'))
@example(encode('["1", ""]'))
@example(encode("[1, null]"))
@example(encode("[" * 100_000))
@example("\u00e9")
@example("_w==")
def test_a_forged_token_is_refused_or_leads_to_a_place(forged: str) -> None:
    violations = Violations()
    found = read_token(violations, forged)
    if not forged:
        assert found is None
    elif found is None:
        with pytest.raises(ParleyError, match="page_token: is not the token of an earlier page"):
            violations.refuse()
    else:
        violations.refuse()
        assert to_token(found)
