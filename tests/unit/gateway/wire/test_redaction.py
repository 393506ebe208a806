"""What endpoints say, without the secrets that they were sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.wire.endpoint import EndpointLimits
from parley.gateway.wire.errors import of_error_object
from parley.gateway.wire.openai_endpoint import OpenAIEndpoint
from parley.gateway.wire.provider import Provider
from parley.gateway.wire.redaction import Redaction

KEY = "0123456789abcdef0123456789abcdef"


@given(before=st.integers(0, 260), after=st.integers(0, 40))
def test_no_more_than_three_characters_of_a_key_are_shown_wherever_the_message_is_cut(
    before: int, after: int
) -> None:
    shown = Redaction(KEY)(of_error_object({"message": "x" * before + KEY + "y" * after}).message)
    assert not any(KEY[:length] in shown for length in range(4, len(KEY) + 1))
    assert not any(KEY[-length:] in shown for length in range(4, len(KEY) + 1))


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
