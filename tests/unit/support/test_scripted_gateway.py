import json

import pytest

from parley.runtime.channel import channel
from parley.v1 import agent_pb2, gateway_pb2, gateway_pb2_grpc
from tests.support.scripted_gateway import ScriptedGateway

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "scores": {"type": "object", "required": ["ada"]},
        },
    }
)


@pytest.mark.parametrize("schema", ["", SCHEMA])
async def test_plain_and_structured_answers_stream_in_as_many_pieces_as_were_asked_for(schema: str) -> None:
    gateway = ScriptedGateway()
    gateway.deltas = 3
    asked = gateway_pb2.GenerateRequest(agent=agent_pb2.Agent(id="ada"))
    if schema:
        asked.schema.CopyFrom(gateway_pb2.AnswerSchema(name="judgement", json_schema=schema))
    async with gateway.served() as server, channel(server.address) as connection:
        stub = gateway_pb2_grpc.GatewayServiceStub(connection)
        heard = [each async for each in stub.Generate(asked)]
    deltas = [each.delta for each in heard if each.HasField("delta")]
    text = heard[-1].completed.text
    assert len(deltas) == 3
    assert [each.offset for each in deltas] == [text.index(each.text) for each in deltas]
    assert "".join(each.text for each in deltas) == text
