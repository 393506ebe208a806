"""Refusals and administrative acts are logged with method, peer and subject, a bounded number for each peer, and all are counted."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from parley.client import DebateSpec, ParleyClient, ParleyError
from parley.orchestrator.keys import authenticator
from parley.runtime import audit
from parley.runtime.errors import permission_denied
from parley.storage.opening import Store, open_store
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN, ACCESS_ROLE_READ
from tests.support.access import key_for
from tests.support.orchestration import Orchestrator, orchestrating, until_at_rest
from tests.support.scripted_gateway import ScriptedGateway

SERVICE = "parley.v1.OrchestratorService"
UNKNOWN = "deb-20260101-000000-aaaaaaaa"


class CountingMeter:
    """A counter whose values a test reads."""

    def __init__(self) -> None:
        self.values: Counter[tuple[str, ...]] = Counter()

    def add(self, amount: int, labels: dict[str, str]) -> None:
        self.values[tuple(labels.values())] += amount


@dataclass
class Audited:
    """An orchestrator that authenticates by key, and the counters of its refusals and acts."""

    stack: AsyncExitStack
    store: Store
    address: str
    admin: ParleyClient
    reader: ParleyClient
    other: ParleyClient
    refusals: CountingMeter
    acts: CountingMeter

    async def client(self, token: str) -> ParleyClient:
        return await self.stack.enter_async_context(ParleyClient(self.address, token=token, patience=0))


@pytest.fixture
async def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Audited]:
    refusals, acts = CountingMeter(), CountingMeter()
    monkeypatch.setattr(audit, "_refusals", refusals)
    monkeypatch.setattr(audit, "_acts", acts)
    monkeypatch.setattr(audit, "_refusal_lines", audit.PeerLines())
    monkeypatch.setattr(audit, "_act_lines", audit.PeerLines())
    monkeypatch.setattr(authenticator, "CACHE_SECONDS", 0.0)
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(ScriptedGateway().served())
        served: Orchestrator = await stack.enter_async_context(
            orchestrating(tmp_path, gateway, over_sockets=True, auth="key")
        )
        store = await stack.enter_async_context(open_store(f"sqlite:///{tmp_path}", "orchestrator"))
        clients: list[ParleyClient] = []
        for tenant, role in (
            ("acme", ACCESS_ROLE_ADMIN),
            ("acme", ACCESS_ROLE_READ),
            ("other", ACCESS_ROLE_READ),
        ):
            ((_, bearer),) = await key_for(store.documents, tenant, {role})
            client = ParleyClient(served.server.address, token=bearer.removeprefix("Bearer "), patience=0)
            clients.append(await stack.enter_async_context(client))
        admin, reader, other = clients
        yield Audited(stack, store, served.server.address, admin, reader, other, refusals, acts)


async def refuse(client: ParleyClient, debate: str = UNKNOWN) -> str:
    with pytest.raises(ParleyError) as caught:
        await client.get(debate)
    return caught.value.reason


def lines_of(logged: Sequence[Any], event: str) -> list[dict[str, Any]]:
    return [dict(each) for each in logged if each["event"] == event]


async def test_every_kind_of_refusal_is_logged_with_who_tried_what_and_counted(audited: Audited) -> None:
    revoked = await audited.admin.create_key("leaked", [ACCESS_ROLE_READ])
    await audited.admin.revoke_key(revoked.key.id)
    nameless = await audited.client("")
    unknown = await audited.client(f"parley_{'0' * 12}_{'A' * 43}")
    gone = await audited.client(revoked.text)
    with capture_logs() as logged:
        assert await refuse(nameless) == "NO_CREDENTIALS"
        assert await refuse(unknown) == "BAD_CREDENTIALS"
        assert await refuse(gone) == "BAD_CREDENTIALS"
        with pytest.raises(ParleyError, match="role"):
            await audited.reader.create_debate(DebateSpec(question="Is water wet?"))
        assert await refuse(audited.other) == "DEBATE_NOT_FOUND"
    lines = lines_of(logged, "a call is refused")
    assert [each["reason"] for each in lines] == [
        "NO_CREDENTIALS",
        "BAD_CREDENTIALS",
        "BAD_CREDENTIALS",
        "ROLE_MISSING",
        "DEBATE_NOT_FOUND",
    ]
    assert all(each["peer"].startswith("ipv4:127.0.0.1:") for each in lines)
    assert [each["method"] for each in lines] == [
        f"{SERVICE}/{name}" for name in ("GetDebate", "GetDebate", "GetDebate", "CreateDebate", "GetDebate")
    ]
    assert [each["subject"].partition(" ")[0] for each in lines] == ["", "", "leaked", "test", "test"]
    assert [each["tenant"] for each in lines] == ["", "", "acme", "acme", "other"]
    assert lines[2]["why"] == "the key was revoked"
    assert lines[4]["resource"] == f"debate/{UNKNOWN}"
    assert audited.refusals.values == {
        ("NO_CREDENTIALS", f"{SERVICE}/GetDebate"): 1,
        ("BAD_CREDENTIALS", f"{SERVICE}/GetDebate"): 2,
        ("ROLE_MISSING", f"{SERVICE}/CreateDebate"): 1,
        ("DEBATE_NOT_FOUND", f"{SERVICE}/GetDebate"): 1,
    }


async def test_administrative_acts_are_logged_with_who_did_what_and_counted(audited: Audited) -> None:
    debate = await audited.admin.create_debate(DebateSpec(question="Is water wet?"))
    async for _ in audited.admin.watch(debate):
        pass
    with capture_logs() as logged:
        made = await audited.admin.create_key("ci", [ACCESS_ROLE_READ])
        await audited.admin.revoke_key(made.key.id)
        await audited.admin.forget_memory(debate)
        await until_at_rest(audited.store, "acme", debate)
        await audited.admin.delete(debate)
    lines = lines_of(logged, "an administrative act")
    assert [(each["method"], each["target"]) for each in lines] == [
        (f"{SERVICE}/CreateKey", f"key {made.key.id}"),
        (f"{SERVICE}/RevokeKey", f"key {made.key.id}"),
        (f"{SERVICE}/ForgetMemory", f"memory of debate {debate}"),
        (f"{SERVICE}/DeleteDebate", f"debate {debate}"),
    ]
    for each in lines:
        assert each["peer"].startswith("ipv4:127.0.0.1:")
        assert (each["tenant"], each["subject"].partition(" ")[0]) == ("acme", "test")
    assert sum(audited.acts.values.values()) == 4


async def test_a_peer_that_is_refused_again_and_again_fills_no_log_and_each_refusal_is_counted(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(audit, "_refusal_lines", audit.PeerLines(lambda: now))
    nameless = await audited.client("")
    with capture_logs() as logged:
        for _ in range(100):
            await refuse(nameless)
    assert len(lines_of(logged, "a call is refused")) == 30
    assert sum(audited.refusals.values.values()) == 100
    now = 61.0
    with capture_logs() as logged:
        await refuse(nameless)
    (line,) = lines_of(logged, "a call is refused")
    assert line["left_out"] == 70


def test_one_peer_takes_no_line_of_another_and_many_peers_take_no_memory() -> None:
    lines = audit.PeerLines(lambda: 0.0)
    for _ in range(100):
        lines.take("a")
    assert lines.take("a") is None
    assert lines.take("b") == 0
    for number in range(10_000):
        lines.take(str(number))
    assert len(lines._peers) == 4096


def test_a_provider_that_refuses_our_key_is_no_refused_caller() -> None:
    with capture_logs() as lines:
        audit.report_error(permission_denied("PROVIDER_AUTH", "401 Incorrect API key provided."))
        audit.report_error(permission_denied("ROLE_MISSING", "the caller may only read"))
    assert [line["reason"] for line in lines] == ["ROLE_MISSING"]
