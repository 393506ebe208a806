"""The moderated debate: perspectives argue and rebut, a moderator evaluates, a person steers, and a decision is written."""

from parley.orchestrator.formats.moderated.v1 import V1

__all__ = ["V1"]
