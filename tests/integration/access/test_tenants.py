"""Tenants at a whole orchestrator: each RPC that names a debate, asked for another tenant's."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor

from parley.runtime.server import Service, start_server
from parley.storage.opening import open_store
from parley.v1 import debate_pb2, gateway_pb2_grpc, orchestrator_pb2
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN, ACCESS_ROLE_READ
from tests.support.access import Headers, key_for, methods, stub_call
from tests.support.catching import catch_error
from tests.support.orchestration import Orchestrator, orchestrating
from tests.support.right_requests import RIGHT_REQUESTS
from tests.support.scripted_gateway import ScriptedGateway

NAMING = [each for each in methods() if "debate_id" in each.input_type.fields_by_name]
OF_MEMORY = {"GetMemory", "ForgetMemory"}
"""These ask memory, which has no debate: `integration/orchestrator/test_memory_for_clients.py` tries them."""
FILTERING = {"ListAuditEntries"}
"""These list only what is about a debate: of another tenant's, nothing is."""
OURS = [
    each
    for each in NAMING
    if each.containing_service.name == "OrchestratorService" and each.name not in OF_MEMORY | FILTERING
]


@dataclass
class Tenants:
    orchestrator: Orchestrator
    acme: Headers
    other: Headers
    reader: Headers
    debate_id: str


@pytest.fixture
async def tenants(tmp_path: Path) -> AsyncIterator[Tenants]:
    servicer = ScriptedGateway()
    gateway = Service(
        "parley.v1.GatewayService",
        lambda server: gateway_pb2_grpc.add_GatewayServiceServicer_to_server(servicer, server),
    )
    async with (
        start_server([gateway]) as running,
        orchestrating(tmp_path, running, over_sockets=True, auth="key") as orchestrator,
        open_store(f"sqlite:///{tmp_path}", "orchestrator") as store,
    ):
        acme = await key_for(store.documents, "acme", {ACCESS_ROLE_ADMIN})
        other = await key_for(store.documents, "other", {ACCESS_ROLE_ADMIN})
        reader = await key_for(store.documents, "acme", {ACCESS_ROLE_READ})
        asked = orchestrator_pb2.CreateDebateRequest(
            request_id="r1", spec=debate_pb2.DebateSpec(question="Is water wet?")
        )
        created = await orchestrator.stub.CreateDebate(asked, metadata=acme)
        yield Tenants(orchestrator, acme, other, reader, created.debate_id)


def make_request(method: MethodDescriptor, debate_id: str) -> object:
    """A right request of an RPC that names a debate."""
    request: Any = message_factory.GetMessageClass(method.input_type)()
    request.CopyFrom(RIGHT_REQUESTS[method.input_type.name][0])
    request.debate_id = debate_id
    return request


@pytest.mark.parametrize("method", OURS, ids=lambda method: method.name)
async def test_another_tenants_debate_is_not_there(tenants: Tenants, method: MethodDescriptor) -> None:
    request = make_request(method, tenants.debate_id)
    for headers in (tenants.other, (*tenants.other, ("parley-tenant", "acme"))):
        error = await catch_error(stub_call(tenants.orchestrator.connection, method, headers, request))
        assert error.reason == "DEBATE_NOT_FOUND"


async def test_a_tenants_list_holds_its_own_debates_alone(tenants: Tenants) -> None:
    stub, asked = tenants.orchestrator.stub, orchestrator_pb2.ListDebatesRequest()
    mine = await stub.ListDebates(asked, metadata=tenants.reader)
    theirs = await stub.ListDebates(asked, metadata=(*tenants.other, ("parley-tenant", "acme")))
    assert ([each.id for each in mine.debates], list(theirs.debates)) == ([tenants.debate_id], [])


async def test_a_request_id_is_a_tenants_own(tenants: Tenants) -> None:
    asked = orchestrator_pb2.CreateDebateRequest(
        request_id="r1", spec=debate_pb2.DebateSpec(question="Is fire hot?")
    )
    created = await tenants.orchestrator.stub.CreateDebate(asked, metadata=tenants.other)
    assert created.debate_id != tenants.debate_id


async def test_who_may_read_may_not_steer(tenants: Tenants) -> None:
    request = orchestrator_pb2.InterveneRequest(request_id="i1", debate_id=tenants.debate_id)
    with pytest.raises(grpc.aio.AioRpcError, match="needs the role steer"):
        await tenants.orchestrator.stub.Intervene(request, metadata=tenants.reader)
