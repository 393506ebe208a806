"""The kinds of events, as the contract lists them, and what their payloads have in common."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.model.conversion import spec_from_proto, spec_to_proto
from parley.orchestrator.model.spec import DebateSpec
from parley.v1 import event_pb2

__all__ = [
    "CorruptEventError",
    "Payload",
    "UnknownEventError",
    "first_event",
    "is_ignorable",
    "kind_of",
    "spec_of",
]

Payload = Message
"""One of the messages of `Event.payload`."""

_PAYLOADS: Final = event_pb2.Event.DESCRIPTOR.oneofs_by_name["payload"].fields
_KINDS: Final = {field.message_type.full_name: field.name for field in _PAYLOADS if field.message_type}


class CorruptEventError(Exception):
    """A stored event is damaged or of the wrong content: something else has changed the log."""


class UnknownEventError(Exception):
    """The log has a kind of event that this version of Parley does not know: a newer version must continue the debate."""


def kind_of(payload: Payload) -> str:
    """Return the name of a payload's kind, such as `step_succeeded`."""
    return _KINDS[payload.DESCRIPTOR.full_name]


def is_ignorable(payload: Payload) -> bool:
    """Return whether an owner that does not know this kind may ignore it."""
    return bool(payload.DESCRIPTOR.GetOptions().Extensions[event_pb2.ignorable])


def first_event(
    request_id: str,
    spec: DebateSpec,
    traceparent: str,
    warnings: Sequence[str] = (),
    requested_by: str = "",
) -> event_pb2.DebateCreated:
    """Return the first event of a debate, with its specification and the prompts of its agents' roles."""
    prompts = {agent.role: agent.instructions for agent in (*spec.agents, spec.judge)}
    roles = [event_pb2.RolePrompts(role=role, sections=sections) for role, sections in prompts.items()]
    return event_pb2.DebateCreated(
        request_id=request_id,
        spec=spec_to_proto(spec),
        roles=roles,
        traceparent=traceparent,
        warnings=warnings,
        demonstration=spec.demonstration,
        requested_by=requested_by,
    )


def spec_of(created: event_pb2.DebateCreated) -> DebateSpec:
    """Return the specification in a first event."""
    spec = spec_from_proto(created.spec, {each.role: dict(each.sections) for each in created.roles})
    return replace(spec, demonstration=created.demonstration)
