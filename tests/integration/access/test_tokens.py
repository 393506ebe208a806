"""Tokens of an OpenID Connect issuer: believed for what they say while they hold, and never for anything else."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from parley.orchestrator.settings import OrchestratorSettings
from parley.runtime.errors import ConfigurationError, ParleyError
from parley.runtime.identity.guard import Credentials
from parley.runtime.identity.identity import Identity
from parley.runtime.identity.json_web_tokens import JsonWebTokens, TokenRules
from parley.runtime.identity.signing_keys import SigningKeys, key_fetcher
from parley.v1.access_pb2 import ACCESS_ROLE_DEBATE, ACCESS_ROLE_READ
from tests.support.manual_clock import ManualClock
from tests.support.token_issuer import AUDIENCE, TokenIssuer

ANN = Identity("acme", "ann@acme.example", frozenset({ACCESS_ROLE_DEBATE}))


@pytest.fixture
async def issuer() -> AsyncIterator[TokenIssuer]:
    async with TokenIssuer() as started:
        yield started


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class Now:
    ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def tokens(issuer: TokenIssuer, clock: ManualClock, now: Now) -> JsonWebTokens:
    rules = TokenRules(issuer.url, AUDIENCE, ("RS256", "ES256"))
    return JsonWebTokens(rules, SigningKeys(key_fetcher(issuer.url, None), clock), now)


async def who(tokens: JsonWebTokens, token: str) -> Identity | None:
    return await tokens.identify(Credentials(token, "", "other", dict))


async def test_a_token_says_tenant_subject_and_roles(tokens: JsonWebTokens, issuer: TokenIssuer) -> None:
    assert await who(tokens, issuer.sign()) == ANN
    read = await who(tokens, issuer.sign(roles="read unknown service", sub="bo"))
    assert read == Identity("acme", "bo", frozenset({ACCESS_ROLE_READ}))
    assert (await who(tokens, issuer.sign(roles=None))) == Identity("acme", ANN.subject)


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"aud": None},
        {"exp": None},
        {"sub": None},
        {"sub": "a\nb"},
        {"sub": "a" * 300},
        {"tenant": None},
        {"tenant": "a/b"},
        {"tenant": ["acme"]},
    ],
)
async def test_a_token_for_others_or_of_others_lets_nobody_in(
    tokens: JsonWebTokens, issuer: TokenIssuer, claims: dict[str, Any]
) -> None:
    assert await who(tokens, issuer.sign(**claims)) is None


@pytest.mark.parametrize("claims", [{"lasts": -31.0}, {"nbf": time.time() + 3600}])
async def test_a_token_out_of_its_time_says_so(
    tokens: JsonWebTokens, issuer: TokenIssuer, claims: dict[str, Any]
) -> None:
    with pytest.raises(ParleyError, match="expired"):
        await who(tokens, issuer.sign(**claims))


async def test_a_token_that_is_known_is_not_known_beyond_its_time(
    tokens: JsonWebTokens, issuer: TokenIssuer, now: Now
) -> None:
    token = issuer.sign(lasts=-10.0)  # within the leeway
    assert await who(tokens, token) == ANN
    late = issuer.sign(lasts=100.0)
    assert await who(tokens, late) == ANN
    assert tokens._cache.get(late, time.time()) is not None
    now.ahead = 101.0
    issuer.withdraw_key("first")
    assert await who(tokens, late) == ANN, "the library's own clock has not moved: it was checked again"


async def test_no_signature_but_the_issuers_own_is_believed(
    tokens: JsonWebTokens, issuer: TokenIssuer
) -> None:
    right = issuer.sign()
    head, body, signature = right.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    other = part({**claims, "tenant": "other"})
    none = f"{part({'alg': 'none', 'typ': 'JWT', 'kid': 'first'})}.{body}."
    confused = f"{part({'alg': 'HS256', 'kid': 'first'})}.{body}"
    mac = hmac.new(issuer.public_pem(), confused.encode(), hashlib.sha256).digest()
    with TokenIssuerOfOthers() as stranger:
        forged = stranger.sign(iss=issuer.url)
    for token in (
        f"{head}.{other}.{signature}",
        none,
        f"{confused}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}",
        forged,
        f"{head}.{body}.",
        "..",
        "a.b.c",
    ):
        assert await who(tokens, token) is None


async def test_a_token_signed_in_a_way_that_is_not_listed_lets_nobody_in(
    issuer: TokenIssuer, clock: ManualClock
) -> None:
    keys = SigningKeys(key_fetcher(issuer.url, None), clock)
    issuer.add_key("curve", "ES256")
    for algorithms, key_id in ((("ES256",), "first"), (("RS256",), "curve")):
        tokens = JsonWebTokens(TokenRules(issuer.url, AUDIENCE, algorithms), keys)
        assert await who(tokens, issuer.sign(key_id)) is None


class TokenIssuerOfOthers(TokenIssuer):
    """Signs under the same key id with a key of its own."""

    def __enter__(self) -> TokenIssuer:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


async def test_keys_are_asked_for_once_and_again_when_one_is_missing_or_they_are_old(
    tokens: JsonWebTokens, issuer: TokenIssuer, clock: ManualClock
) -> None:
    for number in range(3):
        assert await who(tokens, issuer.sign(sub=f"s{number}")) is not None
    assert issuer.asked == 1
    issuer.add_key("second", "ES256")
    assert await who(tokens, issuer.sign("second")) is None, "asked a moment ago"
    clock.advance(11)
    assert await who(tokens, issuer.sign("second")) == ANN
    assert issuer.asked == 2
    clock.advance(301)
    assert await who(tokens, issuer.sign("second", sub="later")) is not None
    assert issuer.asked == 3


async def test_tokens_that_name_unknown_keys_do_not_flood_the_issuer(
    tokens: JsonWebTokens, issuer: TokenIssuer
) -> None:
    issuer.add_key("gone")
    lost = [issuer.sign("gone", sub=str(number)) for number in range(20)]
    issuer.withdraw_key("gone")
    assert [await who(tokens, each) for each in lost] == [None] * 20
    assert issuer.asked == 1


async def test_while_the_issuer_is_away_its_keys_are_believed_for_a_day_and_without_any_it_is_said(
    tokens: JsonWebTokens, issuer: TokenIssuer, clock: ManualClock
) -> None:
    issuer.away = True
    with pytest.raises(ParleyError) as caught:
        await who(tokens, issuer.sign())
    assert caught.value.reason == "ISSUER_UNAVAILABLE"
    issuer.away = False
    clock.advance(11)
    assert await who(tokens, issuer.sign()) == ANN
    issuer.away = True
    clock.advance(23 * 3600)
    assert await who(tokens, issuer.sign(sub="later")) is not None
    clock.advance(2 * 3600)
    with pytest.raises(ParleyError, match="does not answer"):
        await who(tokens, issuer.sign(sub="latest"))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"issuer": "https://id.example"},
        {"issuer": "http://id.example", "audience": "parley"},
        {"issuer": "https://id.example", "audience": "parley", "algorithms": "HS256"},
        {"issuer": "https://id.example", "audience": "parley", "keys_url": "http://id.example/keys"},
    ],
)
def test_settings_that_would_believe_anybody_are_refused(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_AUTH", "jwt")
    for name, value in variables.items():
        monkeypatch.setenv(f"PARLEY_JWT_{name.upper()}", value)
    with pytest.raises(ConfigurationError, match="PARLEY_JWT"):
        OrchestratorSettings.load()
