"""The Python client: debates, followed as they run.

async with ParleyClient("localhost:7401") as parley:
    debate_id = await parley.create_debate(DebateSpec(question="Which database?"))
    async for event in parley.watch(debate_id):
        print(event)
"""

from parley.client.agents import GatewayClient
from parley.client.debates import ParleyClient
from parley.client.events import DebateEvent, Payload
from parley.client.ratings import RatingsClient
from parley.client.watching import TextPiece
from parley.runtime.errors import ParleyError
from parley.v1.orchestrator_pb2 import Debate, DebateSpec, DebateStatus, DebateSummary

__all__ = [
    "Debate",
    "DebateEvent",
    "DebateSpec",
    "DebateStatus",
    "DebateSummary",
    "GatewayClient",
    "ParleyClient",
    "ParleyError",
    "Payload",
    "RatingsClient",
    "TextPiece",
]
