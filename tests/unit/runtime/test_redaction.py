"""What endpoints say, without the secrets that they were sent."""

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.wire.endpoint import EndpointLimits, Provider
from parley.gateway.wire.errors import of_error_object
from parley.gateway.wire.openai_endpoint import OpenAIEndpoint
from parley.runtime.redaction import Redaction

KEY = "0123456789abcdef0123456789abcdef"


@given(before=st.integers(0, 260), after=st.integers(0, 40))
def test_no_more_than_three_characters_of_a_key_are_shown_wherever_the_message_is_cut(
    before: int, after: int
) -> None:
    shown = Redaction(KEY)(of_error_object({"message": "x" * before + KEY + "y" * after}).message)
    assert not any(KEY[:length] in shown for length in range(4, len(KEY) + 1))
    assert not any(KEY[-length:] in shown for length in range(4, len(KEY) + 1))


@pytest.mark.parametrize(
    "said", ["0123****cdef", "'0123...'", "key:…cdef.", "0123xxxxxxxxxxxxxxxxxxxxxxxxcdef", "••••cdef"]
)
def test_what_an_endpoint_leaves_of_a_key_that_it_masks_is_hidden(said: str) -> None:
    assert (
        Redaction(KEY)(f"Incorrect key {said} in 0123 requests ...")
        == "Incorrect key *** in 0123 requests ..."
    )


@pytest.mark.parametrize("said", ["bad token topsecret-header-token", "topsecret-header-token: no"])
def test_the_value_of_a_header_is_hidden_like_a_key(said: str) -> None:
    shown = Redaction("", ["Bearer topsecret-header-token", "session=abcdefgh12345; v=1"])(said)
    assert "topsecret" not in shown
    assert "***" in shown
    assert "abcdefgh" not in Redaction("", ["session=abcdefgh12345; v=1"])("no session abcdefgh12345")


def test_what_is_no_secret_is_shown_as_it_is() -> None:
    said = "the model v1 is not there; ask 'support' for more"
    assert Redaction(KEY, ["v1", "a b"])(said) == said


async def test_an_endpoint_hides_its_own_headers_and_its_key() -> None:
    provider = Provider(
        "p", "openai-compatible", "http://127.0.0.1:9/v1", headers={"X-Team": "team-4711-beta"}
    )
    endpoint = OpenAIEndpoint(provider, EndpointLimits())
    assert "4711" not in endpoint.redacted("unknown team-4711-beta")
    await endpoint.aclose()


@given(
    key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=60),
    before=st.binary(max_size=7),
    after=st.binary(max_size=7),
)
def test_a_key_is_hidden_in_base64_wherever_it_stands_in_what_was_encoded(
    key: str, before: bytes, after: bytes
) -> None:
    whole = before + key.encode() + after
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        shown = Redaction(key)(f"got {encode(whole).decode()}.")
        left, hidden, right = shown[4:-1].partition("***")
        assert hidden
        assert len(left) <= len(before) * 4 / 3 + 2  # at most a character and a half is of the key
        assert len(right.rstrip("=")) <= len(after) * 4 / 3 + 2


@pytest.mark.parametrize(
    "said",
    [
        "no such page: https://h/v1?api_key=hunter2hunter2&x=1",
        "no such page: https://h/v1?x=1&access_token=hunter2hunter2",
        "cannot ask https://user:hunter2hunter2@host/v1",
        "cannot ask https://hunter2hunter2@host/v1",
    ],
)
def test_a_key_in_a_url_is_hidden_though_nobody_knows_it(said: str) -> None:
    shown = Redaction("")(said)
    assert "hunter2" not in shown
    assert shown.startswith(said[:12])


def test_a_key_is_hidden_as_a_url_writes_it() -> None:
    key = "a/b+c=d e%f0123"
    assert Redaction(key)(f"https://h/{quote(key, safe='')}/x") == "https://h/***/x"
