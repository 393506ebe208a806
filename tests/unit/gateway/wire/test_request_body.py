"""The body of a request is its JSON, however long its texts are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.wire.request_body import body_to_send, request_json

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(_TEXTS, _VALUES, max_size=4))
def test_a_request_is_written_as_json(value: dict[str, Any]) -> None:
    assert request_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("text", ['"\\\n', "\x01", "é", "😀", "a"])
def test_a_long_text_is_written_whole(text: str) -> None:
    value = {"model": "m", "messages": [{"role": "user", "content": text * 700_000}, {"content": "short"}]}
    assert json.loads(request_json(value)) == value


async def test_a_long_body_is_sent_by_the_piece_and_tells_its_length() -> None:
    body = bytes(range(256)) * 4_000
    content, headers = body_to_send(body)
    assert not isinstance(content, bytes)
    pieces = [each async for each in content]
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) < len(body)
    assert headers == {"Content-Length": str(len(body))}


def test_a_short_body_is_sent_as_it_is() -> None:
    assert body_to_send(b"{}") == (b"{}", {})
