"""The arena: critiques over drawn edges, revisions until a rule holds, a vote, a judge, and an answer that is verified."""

from parley.orchestrator.formats.arena.v1 import V1

__all__ = ["V1"]
