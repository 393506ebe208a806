"""What a call is about: ids in its request and its response. Nothing else of them is recorded."""

from typing import Final

from google.protobuf.message import Message
from msgspec import Struct

from parley.runtime.validation import NAME
from parley.v1.debate_pb2 import Intervention

_TARGETS: Final = {"key_id": "key", "hook_id": "hook", "delivery_id": "delivery"}
"""Fields of requests with the id of what they are about, and what that is."""


class CallFacts(Struct, frozen=True):
    """What a call is about, as `AuditEntry` has it."""

    debate_id: str = ""
    request_id: str = ""
    target: str = ""

    def with_response(self, response: object) -> "CallFacts":
        """Return the facts with the ids that the response adds: of what was created."""
        if not isinstance(response, Message):
            return self
        debate = self.debate_id or _id_in(response, "debate_id")
        return CallFacts(debate, self.request_id, self.target or _find_created(response))


def facts_of(request: object) -> CallFacts:
    """Return what a call with a request is about. The request is not checked yet: what is no id is left out."""
    if not isinstance(request, Message):
        return CallFacts()
    return CallFacts(_id_in(request, "debate_id"), _id_in(request, "request_id"), _find_target(request))


def _find_target(request: Message) -> str:
    intervention = getattr(request, "intervention", None)
    if isinstance(intervention, Intervention):
        return intervention.WhichOneof("act") or ""
    return next(
        (f"{kind} {found}" for name, kind in _TARGETS.items() if (found := _id_in(request, name))), ""
    )


def _find_created(response: Message) -> str:
    created = ((kind, getattr(response, kind, None)) for kind in _TARGETS.values())
    return next(
        (
            f"{kind} {found}"
            for kind, each in created
            if isinstance(each, Message) and (found := _id_in(each, "id"))
        ),
        "",
    )


def _id_in(message: Message, field: str) -> str:
    """Return an id in a field; empty if there is no such field, or it holds no id."""
    found = getattr(message, field, "")
    return found if isinstance(found, str) and NAME.fullmatch(found) else ""
