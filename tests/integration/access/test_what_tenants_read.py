"""Every RPC of the contract that reads or lists: what a tenant sees by it, no other tenant does."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from parley.runtime.errors import from_rpc_error
from parley.runtime.identity.identity import DEFAULT_TENANT
from parley.runtime.identity.roles import CLIENT_ROLES, needed_role
from parley.storage.opening import open_store
from parley.v1 import (
    memory_pb2,
    memory_pb2_grpc,
    ratings_pb2,
    ratings_pb2_grpc,
)
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN
from parley.v1.audit_pb2 import AuditAct, act, changes
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP, Issue
from parley.v1.effect_pb2 import DECISION_RELATION_REVERSES
from tests.integration.orchestrator.around import Around
from tests.support.access import Headers, key_for, methods, stub_answers
from tests.support.full_tenant import AGENT, MARK, OTHER_AGENT, QUESTION, fill_tenant
from tests.support.orchestration import WITHIN
from tests.support.receipts import OLD, pem_of
from tests.support.right_requests import RIGHT_REQUESTS
from tests.support.scripted_gateway import ScriptedGateway

REMEMBERED: Final = "deb-20260301-101112-aaaaaaaa"
ALIKE_FOR_ALL: Final = {
    "EstimateDebate": "is about a debate that nobody has yet",
    "ListAvailableAgents": "is what the operator configured",
    "ListReceiptKeys": "is what the operator configured",
}
"""RPCs that read nothing of a tenant, and why."""


def is_reading(method: MethodDescriptor) -> bool:
    what = AuditAct.DESCRIPTOR.values_by_number[method.GetOptions().Extensions[act]]
    return not what.GetOptions().Extensions[changes]


READING: Final = [
    each
    for each in methods()
    if needed_role(f"{each.containing_service.full_name}/{each.name}") in CLIENT_ROLES and is_reading(each)
]


@dataclass
class Tenants:
    """One that has something of everything, and one that has nothing. The first one is that of callers who name none."""

    connection: grpc.aio.Channel
    first: Headers
    second: Headers
    ids: Mapping[str, str]
    marks: frozenset[bytes]

    async def outcome(self, method: MethodDescriptor, headers: Headers, request: Message) -> bytes | str:
        """What a call is answered, or the reason why not."""
        try:
            answers = await stub_answers(self.connection, method, headers, request)
        except grpc.aio.AioRpcError as error:
            return from_rpc_error(error).reason
        return b"".join(each.SerializeToString(deterministic=True) for each in answers)

    def requests(self, method: MethodDescriptor) -> list[Message]:
        """Ask for as much as there is, and as the right requests do, about what the first tenant has."""
        asked: list[Any] = [GetMessageClass(method.input_type)()]
        for right in RIGHT_REQUESTS[method.input_type.name]:
            asked.append(GetMessageClass(method.input_type)())
            asked[-1].CopyFrom(right)
        for each in asked:
            for name in self.ids.keys() & method.input_type.fields_by_name.keys():
                setattr(each, name, self.ids[name])
        return asked

    def is_of_first(self, outcome: bytes | str) -> bool:
        return isinstance(outcome, bytes) and any(each in outcome for each in self.marks)


@pytest.fixture
async def tenants(tmp_path: Path) -> AsyncIterator[Tenants]:
    around = Around(tmp_path)
    receipts = tmp_path / "receipts.pem"
    receipts.write_text(pem_of(OLD))
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(ScriptedGateway().served())
        await stack.enter_async_context(around.all())
        served = await stack.enter_async_context(
            around.orchestrating(gateway, auth="key", receipt_keys=str(receipts), hook_folder=tmp_path)
        )
        store = await stack.enter_async_context(
            open_store(f"sqlite:///{tmp_path / 'orchestrator'}", "orchestrator")
        )
        first = await key_for(store.documents, DEFAULT_TENANT, {ACCESS_ROLE_ADMIN})
        second = await key_for(store.documents, "second", {ACCESS_ROLE_ADMIN})
        ids = await fill_tenant(served.stub, first)
        await remember(around)
        _, key_id, _ = dict(first)["authorization"].split("_", 2)  # it stands in the audit log
        marks = frozenset(each.encode() for each in (MARK, REMEMBERED, ids["hook_id"], key_id))
        yield Tenants(served.connection, first, second, {**ids, "text": "For the garden?"}, marks)


async def remember(around: Around) -> None:
    """Let the other services know all that a debate can leave."""
    past = memory_pb2.PastDebate(
        debate_id=REMEMBERED,
        question=QUESTION,
        conclusion=f"A {MARK}.",
        domain="general",
        concluded_at=Timestamp(seconds=1_772_000_000),
    )
    past.related.add(
        debate_id="deb-20260302-101112-bbbbbbbb", decision="Wait.", relation=DECISION_RELATION_REVERSES
    )
    record = memory_pb2.RecordDebateRequest(debate=past)
    record.stands.add(agent_id=AGENT, agent_name=AGENT, text=f"A {MARK}.", for_decision=True)
    issue = Issue(number=1, text=f"No {MARK}.", severity=7)
    record.issues.add(
        critic_agent_id=AGENT, target_agent_id=OTHER_AGENT, issue=issue, status=ISSUE_STATUS_TAKEN_UP
    )
    match = ratings_pb2.RecordMatchRequest(
        debate_id=REMEMBERED,
        results=[
            ratings_pb2.MatchResult(agent_id=AGENT, score=8),
            ratings_pb2.MatchResult(agent_id=OTHER_AGENT, score=5),
        ],
        encounters=[ratings_pb2.Encounter(agent_id=AGENT, other_agent_id=OTHER_AGENT, agreements=3)],
    )
    async with grpc.aio.insecure_channel(around.memory) as memory:
        await memory_pb2_grpc.MemoryServiceStub(memory).RecordDebate(record, timeout=WITHIN)
    async with grpc.aio.insecure_channel(around.ratings) as ratings:
        await ratings_pb2_grpc.RatingsServiceStub(ratings).RecordMatch(match, timeout=WITHIN)


async def test_what_is_read_of_a_tenant_is_read_by_no_other_tenant(tenants: Tenants) -> None:
    seen_by_second, alike = set[str](), set[str]()
    for method in READING:
        requests = tenants.requests(method)
        first = [await tenants.outcome(method, tenants.first, each) for each in requests]
        second = [await tenants.outcome(method, tenants.second, each) for each in requests]
        if any(map(tenants.is_of_first, second)):
            seen_by_second.add(method.name)
        if first == second:
            alike.add(method.name)
    assert not seen_by_second, "another tenant sees what is not its own: read with `current_tenant()`"
    assert alike == ALIKE_FOR_ALL.keys(), (
        "the tenant itself sees nothing of its own: read with `current_tenant()`, let `tenants` here have what the RPC shows, "
        "or add a line to ALIKE_FOR_ALL here"
    )
