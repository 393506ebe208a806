"""What convergence is asked about many long texts fits a message, in any script."""

from parley.orchestrator.peers.services import Convergence, truncate_text
from parley.runtime.channel import channel
from parley.runtime.message_limits import MAX_MESSAGE_BYTES
from parley.v1.convergence_pb2 import AgentPosition, AssessRequest, AssessResponse, GroupPositionsRequest
from tests.support.scripted_gateway import ScriptedGateway


async def test_two_rounds_of_thirty_two_long_texts_reach_convergence(gateway: ScriptedGateway) -> None:
    lengths: set[int] = set()

    def assess(request: AssessRequest) -> AssessResponse:
        lengths.update(len(each.text) for each in (*request.positions, *request.previous))
        return AssessResponse(agreement_percent=42)

    gateway.assess = assess
    stands = [
        AgentPosition(agent_id=f"a{number}", text=truncate_text("水" * 200_000)) for number in range(32)
    ]
    request = AssessRequest(question="Is water wet?", positions=stands, previous=stands)
    size = request.ByteSize()
    assert size > MAX_MESSAGE_BYTES
    async with gateway.served() as server, channel(server.address) as there:
        convergence = Convergence(there)
        assert (await convergence.assess(request)).agreement_percent == 42
        groups = await convergence.group_positions(
            GroupPositionsRequest(question="Is water wet?", positions=stands)
        )
    assert len(groups.groups) == 1
    assert lengths == {12 * 1024 * 1024 // 64 // 3}
