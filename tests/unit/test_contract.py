"""What the contract has to say of each RPC, setting and event, and where each kind of event is handled."""

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from parley.cli.terminal import event_lines, event_texts
from parley.orchestrator.api import folding
from parley.orchestrator.log import replay
from parley.runtime.contract_settings import (
    check_settings,
    default_of,
    fields_of,
    is_map,
    setting_of,
    with_defaults,
)
from parley.runtime.validation import Violations
from parley.v1 import event_pb2
from parley.v1.access_pb2 import (
    ACCESS_ROLE_UNSPECIFIED,
    CALL_QUEUE_NONE,
    CALL_QUEUE_UNSPECIFIED,
    needs,
    queue,
)
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.debate_pb2 import Clarifications, DebateLimits
from parley.v1.evaluation_pb2 import EvaluationSettings
from parley.v1.event_pb2 import Event, ignorable
from parley.v1.moderated_pb2 import ModeratedSettings
from parley.v1.panel_pb2 import PanelSettings
from tests.support.access import methods

METHODS = methods()
UNBOUNDED = {
    "WatchDebate": "waits nearly all the time, and its streams are counted",
    "CreateKey": "is rare",
    "ListKeys": "is rare",
    "RevokeKey": "is rare",
}
"""RPCs of the orchestrator of which any number of a tenant's calls are worked on at a time, and why."""


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.full_name)
def test_every_rpc_names_the_role_that_its_callers_need(method: MethodDescriptor) -> None:
    assert method.GetOptions().Extensions[needs] != ACCESS_ROLE_UNSPECIFIED, (
        f"{method.full_name}: add `option (needs) = ACCESS_ROLE_…;` to the RPC, or nobody may call it"
    )


def test_only_these_rpcs_are_worked_on_without_a_bound() -> None:
    of_orchestrator = [each for each in METHODS if each.containing_service.name == "OrchestratorService"]
    unbounded = {
        each.name for each in of_orchestrator if each.GetOptions().Extensions[queue] == CALL_QUEUE_NONE
    }
    assert unbounded == UNBOUNDED.keys()


@pytest.mark.parametrize(
    "method",
    [each for each in METHODS if each.containing_service.name != "OrchestratorService"],
    ids=lambda each: each.full_name,
)
def test_calls_of_services_wait_in_no_queue_of_a_tenant(method: MethodDescriptor) -> None:
    assert method.GetOptions().Extensions[queue] == CALL_QUEUE_UNSPECIFIED


def settings_below(message: Any) -> Iterator[Any]:
    """Every field of a settings message, and of the messages inside that hold settings too."""
    for field in fields_of(message):
        yield field
        inner = field.message_type
        if inner is not None and inner.file.package == message.file.package and not is_map(field):
            yield from settings_below(inner)


SETTINGS = {
    field.full_name: field
    for kind in (
        PanelSettings,
        ArenaSettings,
        ModeratedSettings,
        EvaluationSettings,
        Clarifications,
        DebateLimits,
    )
    for field in settings_below(kind.DESCRIPTOR)
    if field.containing_type.name not in {"EvaluatedDebate", "EvaluatedProposal"}
}


@pytest.mark.parametrize("field", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_says_what_it_may_be(field: FieldDescriptor) -> None:
    said = setting_of(field)
    assert said is not None, (
        f"{field.full_name}: add `[(setting) = {{help: …}}]`, or it can neither be configured nor checked"
    )
    if field.message_type is None and not said.not_in_file:
        assert said.help or said.default, (
            f"{field.full_name}: `help` is what a configuration file's author reads"
        )
    is_number = field.cpp_type in {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_DOUBLE,
    }
    is_time = field.message_type is not None and field.message_type.name == "Duration"
    assert said.HasField("max") or not (is_number or is_time), (
        f"{field.full_name}: `min` and `max` are its range"
    )


@pytest.mark.parametrize(
    "kind", [PanelSettings, ArenaSettings, ModeratedSettings, EvaluationSettings, Clarifications]
)
def test_defaults_are_values_of_their_fields_and_in_range(kind: type[Message]) -> None:
    violations = Violations()
    check_settings(violations, "spec", with_defaults(kind()))
    violations.refuse()
    for field in settings_below(kind.DESCRIPTOR):
        said = setting_of(field)
        if said is not None and said.default:
            default_of(message_factory.GetMessageClass(field.containing_type), field.name)


KINDS: dict[str, Any] = {
    inner.name: inner
    for each in Event.DESCRIPTOR.oneofs_by_name["payload"].fields
    if (inner := each.message_type) is not None
}
NOT_IN_STATE = {
    "JudgeChosen": "is in the outcome",
    "LimitReached": "is in the outcome that follows",
    "PhaseFinished": "changes no state",
    "PhaseStarted": "its steps say what is done",
    "RoundFinished": "changes no state",
    "Settled": "is read by replay alone",
    "SteeringRead": "is the engine's own",
    "TimerFired": "is the engine's own",
    "TimerStarted": "is the engine's own",
    "TopologyDrawn": "is read by those who watch",
}
"""Kinds of events that change nothing in a debate's state, and why."""
WITHOUT_LINE = {
    "Claimed": "says nothing to a person",
    "DebateCreated": "is told when the debate is accepted",
    "Recalled": "is in the debate's state",
    "RoundFinished": "the next round's beginning says it",
    "SteeringRead": "says nothing to a person",
}
"""Kinds of events that `parley watch` prints no line of, and why."""


def names_in(*modules: ModuleType) -> set[str]:
    """The names that the code of these modules uses, imports aside."""
    trees = [ast.parse(inspect.getsource(each)) for each in modules]
    return {each.id for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Name)}


def test_every_message_of_an_event_is_a_kind_of_event() -> None:
    messages = event_pb2.DESCRIPTOR.message_types_by_name.values()
    used = {each.message_type for message in messages for each in message.fields if each.message_type}
    unused = {each.name for each in messages if each not in used}
    assert unused == {"Event", "PastDebates"}, "a kind has its line in the oneof `payload` of `Event`"


def test_a_kind_of_event_is_replayed_unless_the_contract_says_that_it_can_be_ignored() -> None:
    can_be_ignored = {name for name, each in KINDS.items() if each.GetOptions().Extensions[ignorable]}
    assert KINDS.keys() - names_in(replay) == can_be_ignored, (
        "add a case to orchestrator/log/replay.py, or `option (ignorable) = true;` to the message"
    )


def test_a_kind_of_event_changes_a_debates_state_unless_it_is_named_here() -> None:
    assert KINDS.keys() - names_in(folding) == NOT_IN_STATE.keys(), (
        "add a case to orchestrator/api/folding.py, or a line to NOT_IN_STATE here"
    )


def test_a_kind_of_event_has_a_line_in_parley_watch_unless_it_is_named_here() -> None:
    assert KINDS.keys() - names_in(event_lines, event_texts) == WITHOUT_LINE.keys(), (
        "add a case to cli/terminal/event_lines.py, or a line to WITHOUT_LINE here"
    )
