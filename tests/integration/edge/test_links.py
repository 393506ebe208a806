"""One-time links: a debate that waits is answered from a webhook, without signing in, and each link does one thing, once."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from parley.client import DebateSpec, ParleyClient, ParleyError
from parley.edge.__main__ import run_edge
from parley.edge.settings import EdgeSettings
from parley.storage.opening import open_store
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN
from parley.v1.audit_pb2 import AUDIT_ACT_STEER_DEBATE, AUDIT_OUTCOME_DONE
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED
from parley.v1.hook_pb2 import HOOK_EVENT_WAITING, HookTarget, WebhookTarget
from parley.v1.moderated_pb2 import ModeratedSettings
from tests.support.access import key_for
from tests.support.http_server import serve_app
from tests.support.moderated_debates import QUESTION, ModeratedScript
from tests.support.orchestration import WITHIN, orchestrating, until

PUBLIC = "https://parley.example"
SECRET = "a-secret-that-signs-links-and-is-long-enough"


@dataclass
class WebhookServer:
    """A test's own server that takes webhooks: the news in them, as they come."""

    url: str = ""
    news: list[dict[str, Any]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        self.news.append(json.loads(await request.read())["data"])
        return web.Response()


@dataclass
class Stage:
    """An orchestrator that authenticates by key, an edge before it, and a server that takes webhooks."""

    admin: ParleyClient
    edge: str
    session: aiohttp.ClientSession
    webhooks: WebhookServer
    address: str

    async def start(self, *, one_time_links: bool = True) -> str:
        """Create a hook that is told of debates that wait, and a moderated debate; return its id."""
        target = HookTarget(webhook=WebhookTarget(url=self.webhooks.url))
        await self.admin.create_hook("ops", target, [HOOK_EVENT_WAITING], one_time_links=one_time_links)
        spec = DebateSpec(question=QUESTION, moderated=ModeratedSettings(), history_limit=0)
        return await self.admin.create_debate(spec)

    async def links(self, number: int) -> dict[str, str]:
        """The links in the webhook of this number, from 1, by what they do."""

        async def has_come() -> bool:
            return len(self.webhooks.news) >= number

        await until(has_come, f"webhook {number} has come")
        given = self.webhooks.news[number - 1].get("oneTimeLinks", [])
        found = {each["action"].removeprefix("LINK_ACTION_").lower(): each["url"] for each in given}
        assert all(url.startswith(f"{PUBLIC}/links/link_") for url in found.values())
        return {action: url.replace(PUBLIC, self.edge) for action, url in found.items()}

    async def open(self, url: str, method: str = "GET") -> tuple[int, str]:
        async with self.session.request(method, url) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def open_stage(folder: Path, **settings: Any) -> AsyncIterator[Stage]:
    webhooks = WebhookServer()
    app = web.Application()
    app.router.add_post("/", webhooks.take)
    chosen = {
        "auth": "key",
        "public_url": PUBLIC,
        "link_secrets": SECRET,
        "hook_hosts": "127.0.0.1",
        **settings,
    }
    timeout = aiohttp.ClientTimeout(total=WITHIN)
    async with (
        serve_app(app) as port,
        ModeratedScript(decisions=("agreement",)).gateway().served() as gateway,
        orchestrating(folder, gateway, **chosen) as orchestrator,
        open_store(f"sqlite:///{folder}", "orchestrator") as store,
        run_edge(EdgeSettings(port=0, orchestrator=orchestrator.server.address, grace_seconds=1)) as edge,
        aiohttp.ClientSession(timeout=timeout) as session,
    ):
        webhooks.url = f"http://127.0.0.1:{port}/"
        ((_, bearer),) = await key_for(store.documents, "acme", {ACCESS_ROLE_ADMIN})
        token = bearer.removeprefix("Bearer ")
        async with ParleyClient(orchestrator.server.address, token=token, patience=0) as admin:
            yield Stage(admin, f"http://{edge}", session, webhooks, orchestrator.server.address)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path) as made:
        yield made


async def test_a_waiting_debate_is_steered_and_approved_by_links_of_webhooks_each_once_and_for_its_action_alone(
    stage: Stage,
) -> None:
    debate = await stage.start()
    first = await stage.links(1)
    assert set(first) == {"continue", "end"}
    for _ in range(2):  # a preview of the link, and a person
        status, page = await stage.open(first["end"])
        assert (status, "<h1>End the rounds?</h1>" in page, "Redis" in page) == (200, True, True)
    assert (await stage.admin.get(debate)).waiting.checkpoint == "round/1/checkpoint"

    assert (await stage.open(first["end"], "POST"))[0] == 200
    status, page = await stage.open(first["end"], "POST")
    assert (status, "used already" in page) == (410, True)
    assert (await stage.open(first["end"]))[0] == 410
    status, page = await stage.open(first["continue"], "POST")
    assert (status, "does not wait for this answer any more" in page) == (410, True)

    second = await stage.links(2)
    assert set(second) == {"approve"}
    opened = await asyncio.gather(*(stage.open(second["approve"], "POST") for _ in range(3)))
    assert sorted(status for status, _ in opened) == [200, 410, 410]

    async def is_completed() -> bool:
        return (await stage.admin.get_summary(debate)).status == DEBATE_STATUS_COMPLETED

    await until(is_completed, "the debate is completed")
    assert (await stage.admin.get(debate)).outcome.moderated.approved
    (hook,) = [each async for each in stage.admin.list_hooks()]
    steered = [each.intervened async for each in stage.admin.watch(debate) if each.HasField("intervened")]  # type: ignore[union-attr]
    assert [each.intervention.WhichOneof("act") for each in steered] == ["end", "approve"]
    assert {each.intervened_by for each in steered} == {f"one-time link of {hook.id}"}

    async def entries() -> list[tuple[str, str]]:
        acts = [AUDIT_ACT_STEER_DEBATE]
        found = [each async for each in stage.admin.list_audit_entries(acts=acts)]
        done = [each for each in found if each.outcome == AUDIT_OUTCOME_DONE]
        return [(each.subject, each.debate_id) for each in done] if len(done) == 2 else []

    assert set(await until(entries, "both are in the audit log")) == {(f"one-time link of {hook.id}", debate)}


async def test_the_page_runs_nothing_and_is_kept_and_shown_nowhere_else(stage: Stage) -> None:
    await stage.start()
    url = (await stage.links(1))["continue"]
    async with stage.session.get(url) as answer:
        headers, page = answer.headers, await answer.text()
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "form-action 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "<script" not in page
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "same-origin")
    async with stage.session.post(url, headers={"Origin": "https://evil.example"}) as answer:
        assert answer.status == 403


async def test_the_links_of_a_hook_that_is_deleted_do_nothing(stage: Stage) -> None:
    debate = await stage.start()
    links = await stage.links(1)
    (hook,) = [each async for each in stage.admin.list_hooks()]
    await stage.admin.delete_hook(hook.id)
    for method in ("GET", "POST"):
        assert (await stage.open(links["continue"], method))[0] == 404
    assert (await stage.admin.get(debate)).waiting.checkpoint == "round/1/checkpoint"


async def test_a_link_is_no_key_and_a_changed_one_is_no_link(stage: Stage) -> None:
    debate = await stage.start()
    links = await stage.links(1)
    token = links["continue"].rpartition("/")[2]
    async with ParleyClient(stage.address, token=token, patience=0) as holder:
        for call in (
            holder.get(debate),
            holder.end_rounds(debate),
            holder.create_key("x", [ACCESS_ROLE_ADMIN]),
        ):
            with pytest.raises(ParleyError) as caught:
                await call
            assert caught.value.code is grpc.StatusCode.PERMISSION_DENIED
    for place in (5, 20, len(token) // 2, len(token) - 2):
        changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        for method in ("GET", "POST"):
            assert (await stage.open(f"{stage.edge}/links/{changed}", method))[0] == 404
    assert (await stage.open(f"{stage.edge}/links/link_", "POST"))[0] == 404
    assert (await stage.admin.get(debate)).waiting.checkpoint


async def test_an_expired_link_does_nothing(tmp_path: Path) -> None:
    async with open_stage(tmp_path, link_hours=1e-9) as stage:
        debate = await stage.start()
        links = await stage.links(1)
        for method in ("GET", "POST"):
            status, page = await stage.open(links["continue"], method)
            assert (status, "has expired" in page) == (410, True)
        assert (await stage.admin.get(debate)).waiting.checkpoint == "round/1/checkpoint"


async def test_a_hook_has_links_only_if_it_was_created_for_them_and_the_operator_allows_them(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path / "a") as stage:
        await stage.start(one_time_links=False)
        assert await stage.links(1) == {}
    async with open_stage(tmp_path / "b", link_secrets="") as stage:
        with pytest.raises(ParleyError) as caught:
            await stage.start()
        assert [each.field for each in caught.value.violations] == ["one_time_links"]
