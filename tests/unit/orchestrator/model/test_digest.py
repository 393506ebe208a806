"""Digests of what is asked: the same for the same request, before and after a field was added."""

import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from hypothesis import assume, example, given
from hypothesis import strategies as st

from parley.orchestrator.model.digest import canonical_json, digest
from parley.v1.agent_pb2 import Agent, PromptText, SummarySettings, Tool
from parley.v1.gateway_pb2 import GenerateRequest, PromptPart

_Field = descriptor_pb2.FieldDescriptorProto


def declare_type(**later: dict[str, Any]) -> type[Message]:
    """Return a message type `Part` of a pool of its own: `text` and `number`, and fields that were added later."""
    part = descriptor_pb2.DescriptorProto(name="Part")
    part.field.add(name="text", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    part.field.add(name="number", number=2, type=_Field.TYPE_INT64, label=_Field.LABEL_OPTIONAL)
    for place, (name, kind) in enumerate(later.items(), start=3):
        part.field.add(name=name, number=place, **{"label": _Field.LABEL_OPTIONAL, **kind})
    file = descriptor_pb2.FileDescriptorProto(
        name="part.proto", package="example", syntax="proto3", message_type=[part]
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("example.Part"))


BEFORE = declare_type()
NOW = declare_type(
    kind={"type": _Field.TYPE_STRING},
    weight={"type": _Field.TYPE_DOUBLE},
    is_last={"type": _Field.TYPE_BOOL},
    labels={"type": _Field.TYPE_STRING, "label": _Field.LABEL_REPEATED},
    inner={"type": _Field.TYPE_MESSAGE, "type_name": ".example.Part"},
)

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=9)
PROMPTS = st.builds(PromptText, text=TEXTS, source=TEXTS)
AGENTS = st.builds(
    Agent,
    id=TEXTS,
    name=TEXTS,
    role=TEXTS,
    routes=st.lists(TEXTS, max_size=2),
    temperature=st.none() | st.floats(0, 2),
    system_prompt=st.none() | PROMPTS,
    summary_prompt=st.none() | PROMPTS,
    summaries=st.none()
    | st.builds(SummarySettings, enabled=st.none() | st.booleans(), threshold=st.integers(0, 3)),
    tools=st.lists(st.sampled_from(Tool.values()), max_size=2),
    tool_call_limit=st.integers(0, 3),
)
REQUESTS = st.builds(
    GenerateRequest,
    agent=AGENTS,
    prompt=st.lists(
        st.builds(PromptPart, role=st.integers(0, 2), text=TEXTS, shrink_priority=st.integers(0, 2)),
        max_size=2,
    ),
    max_output_tokens=st.integers(0, 2),
)


@given(TEXTS, NUMBERS)
def test_a_field_that_was_added_and_is_not_used_changes_no_digest(text: str, number: int) -> None:
    before = digest(BEFORE(text=text, number=number))
    assert digest(NOW(text=text, number=number)) == before
    unused = NOW(text=text, number=number, kind="", weight=0.0, is_last=False, labels=[])
    assert digest(unused) == before


@pytest.mark.parametrize(
    "used", [{"kind": "k"}, {"weight": 0.5}, {"is_last": True}, {"labels": [""]}, {"inner": NOW()}]
)
def test_a_field_that_was_added_counts_as_soon_as_it_holds_something(used: dict[str, Any]) -> None:
    assert digest(NOW(text="t", number=1, **used)) != digest(BEFORE(text="t", number=1))


@given(REQUESTS, REQUESTS)
def test_two_requests_have_one_digest_exactly_where_they_are_the_same(
    one: GenerateRequest, other: GenerateRequest
) -> None:
    assert (digest(one) == digest(other)) == (one == other)


@given(REQUESTS, AGENTS, st.sampled_from([each.name for each in Agent.DESCRIPTOR.fields]))
def test_a_change_to_any_one_field_changes_the_digest(
    request: GenerateRequest, other: Agent, field: Any
) -> None:
    assume(getattr(other, field) != getattr(request.agent, field))
    changed = GenerateRequest()
    changed.CopyFrom(request)
    changed.agent.ClearField(field)
    changed.agent.MergeFrom(Agent(**{field: getattr(other, field)}))
    assert digest(changed) != digest(request)


@given(REQUESTS)
def test_a_request_that_was_stored_and_read_again_has_the_digest_that_it_had(
    request: GenerateRequest,
) -> None:
    assert digest(GenerateRequest.FromString(request.SerializeToString())) == digest(request)


def test_an_unset_temperature_is_not_one_of_zero() -> None:
    assert digest(Agent(id="ada")) != digest(Agent(id="ada", temperature=0))


@given(st.dictionaries(TEXTS, NUMBERS | TEXTS | st.none() | st.lists(NUMBERS, max_size=2)))
def test_the_order_in_which_a_json_value_was_made_does_not_count(value: dict[str, Any]) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)
    assert len(digest(value)) == 32


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans() | st.floats(-1e20, 1e20)))
@example({"fraction": 1e16})
@example({"fraction": 1e-5, "text": '\x00\x1f\x7f\\"/\u2028\U0001f600'})
@example({"b": 2**64, "a": -(2**64), "é": "z", "z": "é"})
def test_the_digest_of_an_object_is_of_the_same_bytes_as_ever(value: dict[str, Any]) -> None:
    written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical_json(value) == written.encode()
