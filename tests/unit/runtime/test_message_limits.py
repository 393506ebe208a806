"""How many entries the lists of a request may have."""

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from parley.runtime.message_limits import (
    MAX_ENTRIES,
    MAX_FIELDS,
    MAX_MESSAGE_BYTES,
    find_crowded_field,
    find_crowded_field_in_bytes,
    has_more_fields,
)
from parley.v1.agent_pb2 import TOOL_FILE_READ, Agent
from parley.v1.convergence_pb2 import EmbedResponse
from parley.v1.debate_pb2 import ContextDocument, DebateSpec, Participant
from parley.v1.gateway_pb2 import GenerateRequest
from parley.v1.orchestrator_pb2 import CreateDebateRequest
from tests.support.growth import cpu_seconds


def _make_request(spec: DebateSpec) -> Message:
    return CreateDebateRequest(spec=spec)


def test_the_entries_of_all_lists_count_together() -> None:
    some = [ContextDocument(path=str(n)) for n in range(MAX_ENTRIES - 2)]
    tools = Participant(agent=Agent(routes=["one"]))
    assert find_crowded_field(_make_request(DebateSpec(context=some, agents=[tools]))) is None

    tools.agent.routes.append("one more")
    assert find_crowded_field(_make_request(DebateSpec(context=some, agents=[tools]))) == "routes"


def test_a_map_counts_as_a_list() -> None:
    crowd = {f"label {n}": 1 for n in range(MAX_ENTRIES + 1)}
    assert find_crowded_field(_make_request(DebateSpec(concurrency=crowd))) == "concurrency"


def test_names_of_an_enumeration_are_looked_at_too() -> None:
    many = Agent(tools=[TOOL_FILE_READ] * (MAX_ENTRIES + 1))
    assert find_crowded_field(GenerateRequest(agent=many)) == "tools"


def test_numbers_come_in_thousands() -> None:
    vector = [0.5] * (MAX_ENTRIES + 1)
    assert find_crowded_field(EmbedResponse(vector=vector)) is None


_QUESTION = CreateDebateRequest(spec=DebateSpec(question="x" * 1_200_000)).SerializeToString()
"""Large enough to be looked at."""


def _fill_request(inner: bytes) -> bytes:
    """The largest request, of which the debate is one field over and over."""
    content = inner * ((MAX_MESSAGE_BYTES - 100) // len(inner))
    size = b"".join(bytes([len(content) >> 7 * n & 0x7F | (0x80 if n < 4 else 0)]) for n in range(5))
    return b"\x12" + size + content


@pytest.mark.parametrize(
    "inner", [b"\x12\x00", b"\x30\x01", b"\x32\x02\x0a\x00", b"\xa3\x06\xa4\x06", b"\xfa\xff\x03\x00"]
)
def test_a_large_request_of_very_many_fields_is_refused_before_it_is_decoded(inner: bytes) -> None:
    asked = _fill_request(inner)
    assert find_crowded_field_in_bytes(asked, CreateDebateRequest.DESCRIPTOR) is not None
    refused = min(
        cpu_seconds(lambda: find_crowded_field_in_bytes(asked, CreateDebateRequest.DESCRIPTOR))
        for _ in range(3)
    )
    documents = _fill_request(b"\x12\x00")
    assert refused < cpu_seconds(lambda: CreateDebateRequest.FromString(documents)) / 3


def test_a_large_request_of_as_many_fields_as_lists_may_have_is_let_in() -> None:
    some = [ContextDocument(path=str(n), text="x" * 1000) for n in range(MAX_ENTRIES)]
    asked = _make_request(DebateSpec(context=some))
    assert find_crowded_field_in_bytes(asked.SerializeToString(), CreateDebateRequest.DESCRIPTOR) is None


def test_fields_of_messages_in_messages_count() -> None:
    agent = Participant(agent=Agent(routes=["r"] * 9, id="a"))
    agents = [agent] * (MAX_FIELDS // 10)
    whole = _make_request(DebateSpec(question="x" * 1_200_000, agents=agents)).SerializeToString()
    assert find_crowded_field_in_bytes(whole, CreateDebateRequest.DESCRIPTOR) is not None


def test_fields_of_several_messages_count_together() -> None:
    one = _make_request(DebateSpec(agents=[Participant()] * 10)).SerializeToString()  # and the specification
    assert has_more_fields([one, one], CreateDebateRequest.DESCRIPTOR, 21)
    assert not has_more_fields([one, one], CreateDebateRequest.DESCRIPTOR, 22)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_left_to_whoever_decodes_them(rest: bytes) -> None:
    assert find_crowded_field_in_bytes(_QUESTION + rest, CreateDebateRequest.DESCRIPTOR) is None
