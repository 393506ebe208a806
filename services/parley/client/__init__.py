"""The Python client: debates, followed as they run.

async with ParleyClient("localhost:7401") as parley:
    debate_id = await parley.create_debate(DebateSpec(question="Which database?"))
    async for event in parley.watch(debate_id):
        print(event)

`SyncParleyClient` is the same without asyncio.
"""

from parley.client.blocking import SyncGatewayClient, SyncParleyClient, SyncRatingsClient
from parley.client.debates import ParleyClient
from parley.client.events import event_kind, event_name, event_payload
from parley.client.export import export
from parley.client.listings import GatewayClient, RatingsClient
from parley.runtime.errors import ParleyError
from parley.runtime.watching import TextPiece
from parley.v1.access_pb2 import AccessRole
from parley.v1.debate_pb2 import Debate, DebateSpec, DebateStatus
from parley.v1.event_pb2 import Event
from parley.v1.key_pb2 import ApiKey, KeyBudget
from parley.v1.orchestrator_pb2 import DebateSummary

__all__ = [
    "AccessRole",
    "ApiKey",
    "Debate",
    "DebateSpec",
    "DebateStatus",
    "DebateSummary",
    "Event",
    "GatewayClient",
    "KeyBudget",
    "ParleyClient",
    "ParleyError",
    "RatingsClient",
    "SyncGatewayClient",
    "SyncParleyClient",
    "SyncRatingsClient",
    "TextPiece",
    "event_kind",
    "event_name",
    "event_payload",
    "export",
]
