"""The body of a request is its JSON, however long its texts are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from parley.gateway.prompt.documents import quote_in_slots
from parley.gateway.prompt.fitting import join
from parley.gateway.wire import request_body
from parley.gateway.wire.api import Api, ModelRequest
from parley.gateway.wire.request_body import body, body_to_send, request_json
from parley.runtime.held_texts import HeldText, hold_text
from parley.v1.gateway_pb2 import PromptPart
from tests.support.prompt_parts import quote_documents, system, user

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(_TEXTS, _VALUES, max_size=4))
def test_a_request_is_written_as_json(value: dict[str, Any]) -> None:
    assert json.loads(b"".join(request_json(value))) == value


@pytest.mark.parametrize("text", ['"\\\n', "\x01", "é", "😀", "a"])
def test_a_long_text_is_written_whole(text: str) -> None:
    value = {"model": "m", "messages": [{"role": "user", "content": text * 700_000}, {"content": "short"}]}
    assert json.loads(b"".join(request_json(value))) == value


def test_no_more_than_a_piece_is_written_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def note(value: object, **options: Any) -> bytes:
        written = to_json(value, **options)
        sizes.append(len(written))
        return written

    monkeypatch.setattr(request_body, "to_json", note)
    request_json({"model": "m", "messages": [{"role": "user", "content": "a" * 700_000}]})
    assert max(sizes) < 300_000


def _write(messages: tuple[PromptPart, ...], slots: dict[str, HeldText]) -> bytes:
    request = ModelRequest("m", messages, slots=slots)
    return b"".join(request_json(body(Api.CHAT, request, frozenset()), slots))


@given(st.lists(st.text(st.characters(codec="utf-8") | st.sampled_from('>"\\\n')), min_size=1, max_size=4))
def test_a_document_in_a_slot_is_written_as_if_it_stood_in_the_prompt(texts: list[str]) -> None:
    documents = {f"{number}>>>>.md": text for number, text in enumerate(texts)}
    held = {path: hold_text(text) for path, text in documents.items()}
    slots = {path: f"slot-{number}-" for number, path in enumerate(documents) if number % 3 < 2}
    parts = (system("Be brief."), *(user(text, document=path) for path, text in documents.items()))
    bare = tuple(
        user("", document=part.document) if part.document in slots else part for part in (*parts, user("?"))
    )
    named = join(quote_in_slots(bare, held, slots))
    whole = join(quote_documents((*parts, user("?"))))
    assert _write(named, {slot: held[path] for path, slot in slots.items()}) == _write(whole, {})


def test_a_slot_that_is_not_there_once_is_an_error() -> None:
    slots = {"slot-1-": hold_text("text")}
    for said in ("nothing", "slot-1- and slot-1-"):
        with pytest.raises(ValueError, match="once"):
            _write((user(said),), slots)


def test_requests_share_the_bytes_of_a_document() -> None:
    held = hold_text("words " * 1000)
    first, second = (request_json({"messages": ["slot-1-"]}, {"slot-1-": held}) for _ in range(2))
    assert first[1] is second[1]


async def test_a_long_body_is_sent_by_the_piece_and_tells_its_length() -> None:
    body = bytes(range(256)) * 4_000
    content, headers = body_to_send([body[:1000], body[1000:]])
    assert not isinstance(content, bytes)
    pieces = [each async for each in content]
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) < len(body)
    assert headers == {"Content-Length": str(len(body))}


def test_a_short_body_is_sent_as_it_is() -> None:
    assert body_to_send([b"{", b"}"]) == (b"{}", {})
