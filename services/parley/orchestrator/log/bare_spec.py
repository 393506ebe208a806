"""A debate's first event without its documents, whose texts are held once in the process."""

from parley.runtime.held_texts import HeldText, hold_text
from parley.runtime.partial_copies import copy_without
from parley.v1.event_pb2 import DebateCreated

__all__ = ["hold_documents", "without_documents"]


def hold_documents(created: DebateCreated) -> tuple[DebateCreated, dict[str, HeldText]]:
    """Return a first event without its documents, and each document's text by its path."""
    texts = {each.path: hold_text(each.text) for each in created.spec.context}
    return (without_documents(created) if texts else created), texts


def without_documents(created: DebateCreated) -> DebateCreated:
    """Return a copy of a first event without its documents."""
    bare = copy_without(created, "spec")
    bare.spec.CopyFrom(copy_without(created.spec, "context"))
    return bare
