"""Signing in at an OpenID provider: what proves who came back, how long it lasts, and what people read if it fails."""

import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Page, expect

from parley.edge.console.seals import Seal
from tests.integration.edge.conftest import SERVICE, Edge
from tests.integration.edge.console.conftest import on_one_loop
from tests.support.browser import find_serious_faults
from tests.support.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider
from tests.support.orchestration import WITHIN
from tests.support.token_issuer import AUDIENCE

SECRET = "s" * 32


@on_one_loop
async def provider() -> AsyncIterator[OpenIdProvider]:
    async with OpenIdProvider() as provider:
        yield provider


@pytest.fixture
def orchestrator_settings(provider: OpenIdProvider) -> dict[str, Any]:
    return {"auth": "jwt", "jwt_issuer": provider.url, "jwt_audience": AUDIENCE}


@pytest.fixture
def settings(provider: OpenIdProvider) -> dict[str, Any]:
    return {
        "auth": "jwt",
        "edge_session_secrets": SECRET,
        "edge_oidc_issuer": provider.url,
        "edge_oidc_client_id": CLIENT_ID,
        "edge_oidc_client_secret": CLIENT_SECRET,
    }


class Visitor:
    """Somebody's browser, without its scripts."""

    def __init__(self, edge: Edge) -> None:
        self.edge = edge
        jar = aiohttp.CookieJar(unsafe=True)  # cookies of an IP address
        self.session = aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(total=WITHIN))

    def cookies(self) -> dict[str, str]:
        """What it keeps for the edge."""
        return {each.key: each.value for each in self.session.cookie_jar}

    async def sign_in(self, target: str = "/agents") -> tuple[int, str, str]:
        """Sign in; return the status, path and text of the page that is shown in the end."""
        url = f"{self.edge.url}/console/oidc/start"
        async with self.session.get(url, params={"next": target}) as answer:
            return answer.status, answer.url.path, await answer.text()

    async def post(self, path: str, **headers: str) -> tuple[int, str]:
        given = {"Origin": self.edge.url, **headers}
        async with self.session.post(f"{self.edge.url}{path}", json={}, headers=given) as answer:
            return answer.status, await answer.text()

    async def list_debates(self) -> int:
        return (await self.post(f"{SERVICE}/ListDebates"))[0]


@on_one_loop
async def visitor(edge: Edge) -> AsyncIterator[Visitor]:
    visitor = Visitor(edge)
    async with visitor.session:
        yield visitor


async def test_whom_the_provider_knows_is_signed_in_and_sees_the_page_they_wanted(visitor: Visitor) -> None:
    assert await visitor.list_debates() == 401
    status, path, text = await visitor.sign_in("/agents")
    assert (status, path) == (200, "/agents"), text
    assert await visitor.list_debates() == 200
    assert visitor.cookies().keys() == {"parley-session", "parley-renewal"}


async def test_nobody_is_led_to_another_site(visitor: Visitor) -> None:
    for target in ("https://evil.example/", "//evil.example/", "/\\evil.example/"):
        assert (await visitor.sign_in(target))[1] == "/"


async def test_a_token_is_renewed_once_and_only_by_our_own_page(visitor: Visitor) -> None:
    await visitor.sign_in()
    before = visitor.cookies()
    async with visitor.session.post(f"{visitor.edge.url}/console/oidc/renew") as answer:
        assert answer.status == 401, "it names no origin"
    assert (await visitor.post("/console/oidc/renew", Origin="https://evil.example"))[0] == 403
    assert (await visitor.post("/console/oidc/renew"))[0] == 204
    assert visitor.cookies()["parley-session"] != before["parley-session"]
    assert await visitor.list_debates() == 200
    other = Visitor(visitor.edge)
    async with other.session:
        cookie = f"parley-renewal={before['parley-renewal']}"
        assert (await other.post("/console/oidc/renew", Cookie=cookie))[0] == 401, "it counts once"


async def test_a_token_that_is_renewed_as_somebody_elses_ends_the_session(
    visitor: Visitor, provider: OpenIdProvider
) -> None:
    await visitor.sign_in()
    before = visitor.cookies()
    provider.identity = {"sub": "mallory@acme.example"}
    status, told = await visitor.post("/console/oidc/renew")
    assert (status, "somebody else" in told) == (401, True)
    assert visitor.cookies()["parley-session"] == before["parley-session"], "nobody is signed in as another"


async def test_a_renewal_that_an_older_edge_wrote_lets_people_sign_in_again(visitor: Visitor) -> None:
    sealed = Seal([SECRET]).encrypt("renewal", "token", str(time.time()))
    assert (await visitor.post("/console/oidc/renew", Cookie=f"parley-renewal={sealed}"))[0] == 401


async def test_a_session_is_over_after_its_time_however_often_it_was_renewed(
    visitor: Visitor, provider: OpenIdProvider
) -> None:
    await visitor.sign_in()
    renewal = Seal([SECRET]).decrypt("renewal", visitor.cookies()["parley-renewal"], 60)
    assert renewal
    for hours, status in ((13, 401), (1, 204)):
        sealed = Seal([SECRET]).encrypt("renewal", renewal[0], str(time.time() - hours * 3600), renewal[2])
        other = Visitor(visitor.edge)
        async with other.session:
            assert (await other.post("/console/oidc/renew", Cookie=f"parley-renewal={sealed}"))[0] == status


async def test_who_signs_in_with_a_key_is_not_renewed_as_somebody_else(
    visitor: Visitor, provider: OpenIdProvider
) -> None:
    await visitor.sign_in()
    key = {"key": provider.sign(sub="bob@acme.example", roles=["read"])}
    async with visitor.session.post(f"{visitor.edge.url}/console/session", json=key) as answer:
        assert answer.status == 204
    assert visitor.cookies().keys() == {"parley-session"}


async def test_a_provider_that_renews_nothing_lets_people_sign_in_again(
    visitor: Visitor, provider: OpenIdProvider
) -> None:
    provider.renews = False
    assert (await visitor.sign_in())[0] == 200
    assert (await visitor.post("/console/oidc/renew"))[0] == 401


async def test_signing_out_gives_the_renewal_back_and_leads_to_the_providers_sign_out(
    visitor: Visitor, provider: OpenIdProvider
) -> None:
    await visitor.sign_in()
    status, text = await visitor.post("/console/oidc/end")
    assert status == 200
    assert f"{provider.url}/end?client_id={CLIENT_ID}" in text
    assert len(provider.revoked) == 1
    assert visitor.cookies() == {}
    assert await visitor.list_debates() == 401


async def test_a_return_is_worth_nothing_in_another_browser_or_with_another_state(
    visitor: Visitor, edge: Edge
) -> None:
    start = f"{edge.url}/console/oidc/start"
    async with visitor.session.get(start, allow_redirects=False) as answer:
        there = answer.headers["Location"]
    async with visitor.session.get(there, allow_redirects=False) as answer:
        back = answer.headers["Location"]
    other = Visitor(edge)
    async with other.session:
        for who, address in ((other, back), (visitor, back.replace("state=", "state=x"))):
            async with who.session.get(address) as answer:
                assert answer.status == 401
                assert "begun in another browser" in await answer.text()
    assert await visitor.list_debates() == 401


@pytest.mark.parametrize(
    ("identity", "why"),
    [
        ({"nonce": "of another sign-in"}, "nonce"),
        ({"aud": "another-client"}, "aud"),
        ({"aud": [CLIENT_ID, "another"], "azp": "another"}, "azp"),
        ({"iss": "https://another.example"}, "iss"),
        ({"lasts": -3600.0}, "expired"),
    ],
)
async def test_an_id_token_that_is_not_for_this_sign_in_is_refused(
    visitor: Visitor, provider: OpenIdProvider, identity: dict[str, Any], why: str
) -> None:
    provider.identity = identity
    status, _, text = await visitor.sign_in()
    assert status == 401
    assert "ID token is not valid" in text
    assert why in text
    assert await visitor.list_debates() == 401


async def test_people_read_why_they_are_not_signed_in(
    visitor: Visitor, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {**provider.description(), "more": "x" * 300_000}
    monkeypatch.setattr(provider, "description", lambda: large)
    assert "the sign-in provider does not answer" in (await visitor.sign_in())[2]
    monkeypatch.undo()
    provider.tells_private_keys = True
    assert "ID token is not valid" in (await visitor.sign_in())[2]
    provider.tells_private_keys = False
    provider.refuses = "access_denied"
    assert "the sign-in provider refused: access_denied" in (await visitor.sign_in())[2]
    provider.refuses = "<script>"
    assert "<script>" not in (await visitor.sign_in())[2]
    provider.refuses = ""
    provider.access = {"tenant": None}
    status, _, text = await visitor.sign_in()
    assert (status, "does not accept its token" in text) == (401, True)
    provider.access = {"roles": ["read"], "groups": secrets.token_urlsafe(3000)}
    assert "too long for a cookie" in (await visitor.sign_in())[2]
    provider.away = True
    status, _, text = await visitor.sign_in()
    assert (status, "does not answer; try again" in text) == (503, True)
    assert "parley-session" not in visitor.cookies()


async def test_in_a_browser_a_token_that_ends_is_renewed_unseen_and_signing_out_ends_both(
    page: Page, provider: OpenIdProvider
) -> None:
    provider.refuses = "access_denied"
    await page.goto("/")
    await expect(page.get_by_role("button", name="Sign in at 127.0.0.1")).to_be_visible()
    assert await find_serious_faults(page) == []
    await page.get_by_role("button", name="Sign in at 127.0.0.1").click()
    await expect(page.get_by_role("alert")).to_have_text("the sign-in provider refused: access_denied")
    assert await find_serious_faults(page) == []
    provider.refuses = ""
    await page.get_by_role("link", name="Back to sign in").click()
    await page.get_by_role("button", name="Sign in at 127.0.0.1").click()
    await expect(page.get_by_text("There is no debate yet.")).to_be_visible()
    await page.context.clear_cookies(name="parley-session")
    await page.reload()
    await expect(page.get_by_text("There is no debate yet.")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert len(provider.revoked) == 1
    await page.goto("/")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
