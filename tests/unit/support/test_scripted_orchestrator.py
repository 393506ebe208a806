"""The orchestrator that plays a script."""

import grpc
import pytest

from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from tests.support.scripted_orchestrator import ScriptedOrchestrator, scripted


async def test_an_rpc_that_is_not_scripted_is_unimplemented() -> None:
    with scripted(ScriptedOrchestrator()) as orchestrator:
        async with grpc.aio.insecure_channel(orchestrator.address) as channel:
            stub = orchestrator_pb2_grpc.OrchestratorServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.GetReport(orchestrator_pb2.GetReportRequest(debate_id="deb-1"))
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
