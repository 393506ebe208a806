"""A tenant that has something of everything that an orchestrator keeps."""

from typing import Any, Final

from parley.v1 import hook_pb2, key_pb2, orchestrator_pb2
from parley.v1.access_pb2 import ACCESS_ROLE_READ
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateSpec, Participant
from parley.v1.panel_pb2 import EFFORT_QUICK, PanelSettings
from tests.support.access import Headers
from tests.support.orchestration import WITHIN, kind_of, until

MARK: Final = "heliotrope"
"""Stands in what the tenant has."""
QUESTION: Final = f"A {MARK} for the garden?"
AGENT: Final = "ada"
OTHER_AGENT: Final = f"{MARK}-bo"


async def fill_tenant(stub: Any, headers: Headers) -> dict[str, str]:
    """Create a hook and a key, and hold and rate a debate; return the ids by the names of their fields in requests.

    The orchestrator must have a folder for files of hooks.
    """
    hook = hook_pb2.CreateHookRequest(
        request_id="hook",
        name=MARK,
        target=hook_pb2.HookTarget(file=hook_pb2.FileTarget(path="results.jsonl")),
        events=[hook_pb2.HOOK_EVENT_CONCLUDED],
    )
    key = key_pb2.CreateKeyRequest(request_id="key", name=MARK, roles=[ACCESS_ROLE_READ])
    ids = {
        "hook_id": (await stub.CreateHook(hook, metadata=headers)).hook.id,
        "key_id": (await stub.CreateKey(key, metadata=headers)).key.id,
        "debate_id": await _hold_debate(stub, headers),
        "agent_id": AGENT,
    }

    async def deliveries() -> Any:
        return (await stub.ListDeliveries(hook_pb2.ListDeliveriesRequest(), metadata=headers)).deliveries

    return {**ids, "delivery_id": (await until(deliveries, "a delivery"))[0].id}


async def _hold_debate(stub: Any, headers: Headers) -> str:
    agents = [Participant(agent=Agent(id=each, name=each, role="architect")) for each in (AGENT, OTHER_AGENT)]
    spec = DebateSpec(question=QUESTION, agents=agents, panel=PanelSettings(effort=EFFORT_QUICK))
    request = orchestrator_pb2.CreateDebateRequest(request_id="debate", spec=spec)
    debate: str = (await stub.CreateDebate(request, metadata=headers)).debate_id
    watch = orchestrator_pb2.WatchDebateRequest(debate_id=debate)
    async for each in stub.WatchDebate(watch, metadata=headers, timeout=WITHIN):
        if each.HasField("event") and kind_of(each.event) == "closed":
            break
    feedback = orchestrator_pb2.SubmitFeedbackRequest(
        request_id="good", debate_id=debate, value=1, message=MARK
    )
    await stub.SubmitFeedback(feedback, metadata=headers)
    return debate
