"""API keys made, listed and revoked over the wire by whoever administers a tenant."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.client import AccessRole, DebateSpec, ParleyClient, ParleyError
from parley.orchestrator.keys import tenant_keys
from parley.storage.opening import open_store
from parley.v1.access_pb2 import (
    ACCESS_ROLE_ADMIN,
    ACCESS_ROLE_DEBATE,
    ACCESS_ROLE_READ,
    ACCESS_ROLE_SERVICE,
    ACCESS_ROLE_STEER,
    ACCESS_ROLE_UNSPECIFIED,
)
from parley.v1.key_pb2 import KeyBudget
from tests.support.access import key_for
from tests.support.orchestration import Orchestrator, orchestrating
from tests.support.scripted_gateway import ScriptedGateway


@dataclass
class Administered:
    """An orchestrator that asks for keys, and the administrators of two tenants."""

    stack: AsyncExitStack
    address: str
    acme: ParleyClient
    other: ParleyClient

    async def holder(self, text: str) -> ParleyClient:
        return await self.stack.enter_async_context(ParleyClient(self.address, token=text))


@pytest.fixture
async def administered(tmp_path: Path) -> AsyncIterator[Administered]:
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(ScriptedGateway().served())
        served: Orchestrator = await stack.enter_async_context(
            orchestrating(tmp_path, gateway, over_sockets=True, auth="key")
        )
        store = await stack.enter_async_context(open_store(f"sqlite:///{tmp_path}", "orchestrator"))
        clients = []
        for name in ("acme", "other"):
            ((_, bearer),) = await key_for(store.documents, name, {ACCESS_ROLE_ADMIN})
            client = ParleyClient(served.server.address, token=bearer.removeprefix("Bearer "))
            clients.append(await stack.enter_async_context(client))
        yield Administered(stack, served.server.address, *clients)


async def refusal(call: Awaitable[Any]) -> ParleyError:
    with pytest.raises(ParleyError) as caught:
        await call
    return caught.value


async def test_a_key_lets_its_holder_do_what_it_was_made_for_and_is_listed_without_its_text(
    administered: Administered,
) -> None:
    made = await administered.acme.create_key("ci", [ACCESS_ROLE_STEER, ACCESS_ROLE_READ])
    assert made.text.startswith(f"parley_{made.key.id}_")
    holder = await administered.holder(made.text)
    assert [each async for each in holder.list()] == []
    assert (await refusal(holder.create_key("more", [ACCESS_ROLE_READ]))).reason == "ROLE_MISSING"
    second = await administered.acme.create_key("dashboard", [ACCESS_ROLE_READ])
    listed = [each async for each in administered.acme.list_keys(page_size=1)]
    assert listed[1:] == [made.key, second.key]
    assert (listed[0].name, list(listed[0].roles)) == ("test", [ACCESS_ROLE_ADMIN])
    assert list(made.key.roles) == [ACCESS_ROLE_READ, ACCESS_ROLE_STEER]
    assert made.key.create_time.ToSeconds() > 1_700_000_000


async def test_a_key_that_is_revoked_says_since_when_and_stays_so(administered: Administered) -> None:
    made = await administered.acme.create_key("ci", [ACCESS_ROLE_READ])
    assert not made.key.HasField("revoke_time")
    revoked = await administered.acme.revoke_key(made.key.id)
    assert revoked.revoke_time.ToNanoseconds() >= made.key.create_time.ToNanoseconds()
    assert await administered.acme.revoke_key(made.key.id) == revoked
    assert revoked in [each async for each in administered.acme.list_keys()]
    holder = await administered.holder(made.text)  # it was never shown before, so that nobody remembers it
    assert (await refusal(anext(holder.list()))).reason == "BAD_CREDENTIALS"


async def test_a_key_says_who_created_it_and_when_it_expires_and_was_used(administered: Administered) -> None:
    expires = datetime.now(UTC) + timedelta(days=1)
    made = await administered.acme.create_key("ci", [ACCESS_ROLE_READ], expires=expires)
    assert made.key.creator.startswith("test (key ")
    assert made.key.expire_time.ToDatetime(UTC) == expires
    assert not made.key.HasField("last_use_time")
    endless = await administered.acme.create_key("ci", [ACCESS_ROLE_READ])
    assert not endless.key.HasField("expire_time")
    past = await refusal(
        administered.acme.create_key("ci", [ACCESS_ROLE_READ], expires=datetime.now(UTC) - timedelta(1))
    )
    assert [each.field for each in past.violations] == ["expire_time"]


async def test_a_key_with_a_budget_asks_for_debates_until_it_is_used_up_and_other_keys_go_on(
    administered: Administered,
) -> None:
    budget = KeyBudget(tokens_per_day=1)
    small = await administered.acme.create_key("ci", [ACCESS_ROLE_DEBATE], budget=budget)
    assert small.key.budget == budget
    holder = await administered.holder(small.text)
    debate = await holder.create_debate(DebateSpec(question="Is water wet?"))
    async for _ in holder.watch(debate):
        pass
    full = await refusal(holder.create_debate(DebateSpec(question="Is fire hot?")))
    assert (full.code, full.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "KEY_TOKENS")
    assert small.key.id in full.message
    assert await administered.acme.create_debate(DebateSpec(question="Is fire hot?"))
    bad = KeyBudget(tokens_per_day=-1, cost_micros_per_day=10**16)
    refused = await refusal(administered.acme.create_key("ci", [ACCESS_ROLE_READ], budget=bad))
    assert [each.field for each in refused.violations] == [
        "budget.tokens_per_day",
        "budget.cost_micros_per_day",
    ]


async def test_one_request_makes_one_key_whose_text_is_told_once(administered: Administered) -> None:
    made = await administered.acme.create_key("ci", [ACCESS_ROLE_READ], request_id="r1")
    again = await refusal(administered.acme.create_key("ci", [ACCESS_ROLE_READ], request_id="r1"))
    assert (again.code, again.reason) == (grpc.StatusCode.ALREADY_EXISTS, "KEY_EXISTS")
    assert again.resource == ("key", made.key.id)
    elsewhere = await administered.other.create_key("ci", [ACCESS_ROLE_READ], request_id="r1")
    assert elsewhere.key.id != made.key.id


async def test_another_tenants_keys_are_not_there(administered: Administered) -> None:
    made = await administered.acme.create_key("ci", [ACCESS_ROLE_READ])
    missing = await refusal(administered.other.revoke_key(made.key.id))
    assert missing.reason == "KEY_NOT_FOUND"
    assert missing.message == (await refusal(administered.other.revoke_key("0" * 12))).message.replace(
        "0" * 12, made.key.id
    )
    assert made.key.id not in [each.id async for each in administered.other.list_keys()]
    assert not [each async for each in administered.acme.list_keys()][-1].HasField("revoke_time")


async def test_a_tenant_has_only_so_many_keys(
    administered: Administered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_keys, "_MAX_KEYS", 2)
    await administered.acme.create_key("ci", [ACCESS_ROLE_READ])
    full = await refusal(administered.acme.create_key("ci", [ACCESS_ROLE_READ]))
    assert (full.code, full.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_KEYS")
    await administered.other.create_key("ci", [ACCESS_ROLE_READ])


@pytest.mark.parametrize(
    ("name", "roles", "fields"),
    [
        ("", [ACCESS_ROLE_READ], ["name"]),
        ("x" * 65, [ACCESS_ROLE_READ], ["name"]),
        ("two\nlines", [], ["name", "roles"]),
        ("ci", [ACCESS_ROLE_READ, ACCESS_ROLE_SERVICE], ["roles[1]"]),
        ("ci", [ACCESS_ROLE_UNSPECIFIED, 99], ["roles[0]", "roles[1]"]),
        ("ci", [ACCESS_ROLE_READ] * 9, ["roles"]),
    ],
)
async def test_every_bad_field_is_listed_and_no_key_makes_a_service(
    administered: Administered, name: str, roles: list[AccessRole.ValueType], fields: list[str]
) -> None:
    refused = await refusal(administered.acme.create_key(name, roles))
    assert [each.field for each in refused.violations] == fields
    assert len([each async for each in administered.acme.list_keys()]) == 1


async def test_an_id_or_a_page_that_cannot_be_is_refused(administered: Administered) -> None:
    refused = await refusal(administered.acme.revoke_key("parley_0"))
    assert [each.field for each in refused.violations] == ["key_id"]
    refused = await refusal(anext(administered.acme.list_keys(page_size=-1)))
    assert [each.field for each in refused.violations] == ["page_size"]


async def test_a_server_that_asks_nobody_for_a_key_makes_none(tmp_path: Path) -> None:
    async with (
        ScriptedGateway().served() as gateway,
        orchestrating(tmp_path, gateway) as served,
        ParleyClient(served.server.address) as anybody,
    ):
        for call in (
            anybody.create_key("ci", [ACCESS_ROLE_READ]),
            anext(anybody.list_keys()),
            anybody.revoke_key("0" * 12),
        ):
            assert (await refusal(call)).reason == "KEYS_NOT_USED"
