"""Protocols: each says how to argue in every phase that asks for it."""

from parley.orchestrator.phases import critique, propose, refine
from parley.orchestrator.phases.protocols import PROTOCOLS
from parley.v1.arena_pb2 import DebateProtocol


def test_every_protocol_says_how_to_argue_in_every_phase() -> None:
    assert PROTOCOLS.keys() == {each for each in DebateProtocol.values() if each}
    asking = {propose.SECTION, critique.SECTION, refine.SECTION, refine.FINISH_SECTION}
    assert {frozenset(each) for each in PROTOCOLS.values()} == {frozenset(asking)}
