"""A debate's first event without its documents, whose texts are held once in the process."""

from msgspec.structs import replace

from parley.orchestrator.log.envelope import Envelope
from parley.runtime.held_texts import HeldText, hold_text
from parley.runtime.partial_copies import copy_without
from parley.v1.event_pb2 import DebateCreated


def hold_documents(created: DebateCreated) -> tuple[DebateCreated, dict[str, HeldText]]:
    """Return a first event without its documents, and each document's text by its path."""
    texts = {each.path: hold_text(each.text) for each in created.spec.context}
    return (without_documents(created) if texts else created), texts


def without_documents(created: DebateCreated) -> DebateCreated:
    """Return a copy of a first event without its documents."""
    bare = copy_without(created, "spec")
    bare.spec.CopyFrom(copy_without(created.spec, "context"))
    return bare


def bare_event(event: Envelope) -> Envelope:
    """Return an event as watchers get it: a first event has only the paths of its documents, and not its stored bytes."""
    created = event.payload
    if not isinstance(created, DebateCreated) or not created.spec.context:
        return event
    message = copy_without(event.message, "debate_created")
    bare = message.debate_created
    bare.CopyFrom(without_documents(created))
    for each in created.spec.context:
        bare.spec.context.add(path=each.path)
    return replace(event, entry=b"", message=message, payload=bare)
