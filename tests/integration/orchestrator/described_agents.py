"""Agents that are described in a request."""

from typing import Any

from parley.v1 import agent_pb2, debate_pb2


def inline(name: str, role: str = "architect", **fields: Any) -> debate_pb2.Participant:
    return debate_pb2.Participant(agent=agent_pb2.Agent(id=name, role=role, **fields))
