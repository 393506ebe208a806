"""A call that is cancelled, or whose client is gone, leaves the debate running unless its argument says otherwise."""

import anyio
import pytest
from mcp.client.client import Client

from parley.client import ParleyClient
from parley.mcp.server import create_server
from parley.v1 import debate_pb2
from tests.integration.mcp.conftest import Connect, find_debate, structured
from tests.support.mcp_access import act_by
from tests.support.orchestration import Orchestrator
from tests.support.scripted_gateway import ScriptedGateway

MODES = ["legacy", "auto"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_cancelled_call_leaves_its_debate_which_is_found_again(
    connect: Connect, orchestrator: Orchestrator, gateway: ScriptedGateway, mode: str
) -> None:
    hold = gateway.hold("round/1/propose/*")
    async with connect(mode=mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "debate", {"question": "Is water wet?"})
            await hold.reached.wait()
            group.cancel_scope.cancel()
        debate = await find_debate(orchestrator)
        assert structured(await client.call_tool("get_debate", {"debate_id": debate}))["status"] == "running"
        hold.release()
        await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
        found = structured(await client.call_tool("get_debate", {"debate_id": debate}))
    assert "The answer." in found["answer"]


@pytest.mark.parametrize(
    ("connect", "mode"), [("stdio", "legacy"), ("stdio", "auto"), ("http", "auto")], indirect=["connect"]
)
async def test_a_cancelled_call_cancels_its_debate_if_it_says_so(
    connect: Connect, orchestrator: Orchestrator, gateway: ScriptedGateway, mode: str
) -> None:
    """Not by an older protocol over HTTP: there it is a message of its own, and no replica knows which call it is for."""
    hold = gateway.hold("round/1/propose/*")
    async with connect(mode=mode) as client:
        async with anyio.create_task_group() as group:
            arguments = {"question": "Is water wet?", "cancel_with_call": True}
            group.start_soon(client.call_tool, "debate", arguments)
            await hold.reached.wait()
            group.cancel_scope.cancel()
        debate = await find_debate(orchestrator)
        cancelled = await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_CANCELLED)
        hold.release()
    (act,) = cancelled.interventions
    assert act.cancel.reason == "the MCP call was cancelled"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("with_call", [False, True])
async def test_a_client_that_is_gone_is_a_call_that_is_cancelled(
    connect: Connect, orchestrator: Orchestrator, gateway: ScriptedGateway, *, mode: str, with_call: bool
) -> None:
    hold = gateway.hold("round/1/propose/*")
    async with connect(mode=mode) as client, anyio.create_task_group() as group:
        arguments = {"question": "Is water wet?", "cancel_with_call": with_call}
        group.start_soon(client.session.call_tool, "debate", arguments)
        await hold.reached.wait()
        group.cancel_scope.cancel()
    debate = await find_debate(orchestrator)
    if not with_call:
        hold.release()
    await orchestrator.status(
        debate, debate_pb2.DEBATE_STATUS_CANCELLED if with_call else debate_pb2.DEBATE_STATUS_COMPLETED
    )
    hold.release()


@pytest.mark.parametrize("is_stopping", [False, True])
async def test_a_server_that_stops_cancels_no_debate(
    orchestrator: Orchestrator, gateway: ScriptedGateway, *, is_stopping: bool
) -> None:
    """Whose call ends since the server stops did not cancel it."""
    hold = gateway.hold("round/1/propose/*")
    async with ParleyClient(orchestrator.server.address) as parley:
        server = create_server(act_by(parley), is_stopping=lambda: is_stopping)
        async with Client(server) as client, anyio.create_task_group() as group:
            arguments = {"question": "Is water wet?", "cancel_with_call": True}
            group.start_soon(client.call_tool, "debate", arguments)
            await hold.reached.wait()
            group.cancel_scope.cancel()
    debate = await find_debate(orchestrator)
    if is_stopping:
        hold.release()
    ended = debate_pb2.DEBATE_STATUS_COMPLETED if is_stopping else debate_pb2.DEBATE_STATUS_CANCELLED
    await orchestrator.status(debate, ended)
    hold.release()
