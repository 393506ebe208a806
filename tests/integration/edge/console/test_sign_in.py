"""Signing in to the console: by a key, by a link that works once, and out again."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from parley.storage.opening import open_store
from parley.v1.access_pb2 import ACCESS_ROLE_DEBATE, ACCESS_ROLE_READ
from tests.integration.edge.conftest import SERVICE, Edge
from tests.integration.edge.console.conftest import on_one_loop
from tests.support.access import key_for
from tests.support.browser import find_serious_faults
from tests.support.orchestration import Orchestrator


@pytest.fixture
def orchestrator_settings() -> dict[str, Any]:
    return {"auth": "key"}


@on_one_loop
async def key(orchestrator: Orchestrator, tmp_path: Path) -> str:
    """A key of the tenant `acme`, with the roles that people need."""
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        ((_, bearer),) = await key_for(store.documents, "acme", {ACCESS_ROLE_DEBATE, ACCESS_ROLE_READ})
    return bearer.removeprefix("Bearer ")


async def sign_in(page: Page, key: str) -> None:
    await page.goto("/")
    await page.get_by_label("API key or token").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("There is no debate yet.")).to_be_visible()


async def test_a_key_signs_in_and_neither_script_nor_cookie_shows_it(page: Page, key: str) -> None:
    await page.goto("/")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await find_serious_faults(page) == []
    await page.get_by_label("API key or token").fill("wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await sign_in(page, key)
    (cookie,) = await page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert key not in cookie["value"]
    assert await page.evaluate("document.cookie") == ""


async def test_who_signs_out_must_sign_in_again(page: Page, key: str) -> None:
    await sign_in(page, key)
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.goto("/")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_a_link_signs_in_once(page: Page, edge: Edge, key: str) -> None:
    async with edge.session.post(
        f"{edge.url}/console/ticket", headers={"Authorization": f"Bearer {key}"}
    ) as answer:
        path = (await answer.json())["path"]
    await page.goto(path)
    await expect(page.get_by_text("There is no debate yet.")).to_be_visible()
    assert "ticket" not in page.url
    await page.context.clear_cookies()
    await page.goto("about:blank")
    await page.goto(path)
    await expect(page.get_by_role("alert")).to_contain_text("this link was used")


async def test_no_ticket_is_given_to_strangers_and_a_ticket_is_no_cookie(edge: Edge, key: str) -> None:
    url = f"{edge.url}/console/ticket"
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        async with edge.session.post(url, headers=headers) as answer:
            assert answer.status == 401
    async with edge.session.post(url, headers={"Authorization": f"Bearer {key}"}) as answer:
        ticket = (await answer.json())["path"].partition("ticket=")[2]
    assert await list_debates(edge, ticket, Origin=edge.url) == 401


async def test_a_cookie_counts_only_with_the_origin_that_browsers_send(edge: Edge, key: str) -> None:
    async with edge.session.post(f"{edge.url}/console/session", json={"key": key}) as answer:
        assert answer.status == 204
        cookie = answer.cookies["parley-session"].value
    edge.session.cookie_jar.clear()
    assert await list_debates(edge, cookie, Origin=edge.url) == 200
    assert await list_debates(edge, cookie) == 401
    assert await list_debates(edge, cookie, Origin="https://evil.example") == 403
    assert await list_debates(edge, f"{cookie[:-4]}AAAA", Origin=edge.url) == 401


async def list_debates(edge: Edge, cookie: str, **headers: str) -> int:
    """Call an RPC with a cookie; return the status."""
    given = {"Cookie": f"parley-session={cookie}", **headers}
    async with edge.session.post(f"{edge.url}{SERVICE}/ListDebates", json={}, headers=given) as answer:
        return answer.status
