"""What the contract has to say of each RPC, setting and event, and where each kind of event is handled."""

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

import parley.v1
from parley.cli.input.spec import WAITING_SECONDS
from parley.cli.terminal import event_lines, event_texts
from parley.orchestrator.api import folding
from parley.orchestrator.formats.moderated.v1 import V1 as MODERATED
from parley.orchestrator.log import replay
from parley.orchestrator.model.times import seconds_of
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
    ACCESS_ROLE_SERVICE,
    ACCESS_ROLE_UNSPECIFIED,
    CALL_QUEUE_NONE,
    CALL_QUEUE_UNSPECIFIED,
    needs,
    not_in_client,
    queue,
)
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.audit_pb2 import AUDIT_ACT_UNSPECIFIED, act
from parley.v1.debate_pb2 import Clarifications, DebateLimits
from parley.v1.evaluation_pb2 import EvaluationSettings
from parley.v1.event_pb2 import Event, ignorable, in_no_kept_log, not_in_state, without_line
from parley.v1.moderated_pb2 import ModeratedSettings
from parley.v1.panel_pb2 import PanelSettings
from tests.support.access import methods
from tests.support.contract_reference import comments_of_rpcs
from tests.support.kept_logs import KEPT, read_log
from tests.support.parsed_modules import parse_folder
from tests.support.prompt_settings import find_debates_with, find_prompt_settings
from tests.support.right_requests import RIGHT_REQUESTS

METHODS = methods()
PARLEY = Path(parley.v1.__path__[0]).parent
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
        f"{method.full_name}: add `option (needs) = ACCESS_ROLE_…;` to the RPC, or no caller may use it"
    )
    is_outer = method.containing_service.name == "OrchestratorService"
    is_for_services = method.GetOptions().Extensions[needs] == ACCESS_ROLE_SERVICE
    assert is_for_services != is_outer, "all but the orchestrator are for services"


@pytest.mark.parametrize(
    "method",
    [each for each in METHODS if each.containing_service.name == "OrchestratorService"],
    ids=lambda each: each.name,
)
def test_every_rpc_of_the_orchestrator_says_what_it_is_to_the_audit_log(method: MethodDescriptor) -> None:
    assert method.GetOptions().Extensions[act] != AUDIT_ACT_UNSPECIFIED, (
        f"{method.full_name}: add `option (act) = AUDIT_ACT_…;`, NONE if nothing of it is to be recorded"
    )


def test_every_rpc_says_its_errors() -> None:
    silent = {
        name for name, said in comments_of_rpcs().items() if not re.search("^Errors[:,]", said, re.MULTILINE)
    }
    assert not silent, (
        "end the RPC's comment with `Errors: ` and each code with its reasons, or with `Errors: none of its own.`"
    )


def test_only_these_rpcs_are_worked_on_without_a_bound() -> None:
    of_orchestrator = [each for each in METHODS if each.containing_service.name == "OrchestratorService"]
    unbounded = {
        each.name for each in of_orchestrator if each.GetOptions().Extensions[queue] == CALL_QUEUE_NONE
    }
    assert unbounded == UNBOUNDED.keys(), "leave out `option (queue)`, or add a line to UNBOUNDED here"


@pytest.mark.parametrize(
    "method",
    [each for each in METHODS if each.containing_service.name != "OrchestratorService"],
    ids=lambda each: each.full_name,
)
def test_calls_of_services_wait_in_no_queue_of_a_tenant(method: MethodDescriptor) -> None:
    assert method.GetOptions().Extensions[queue] == CALL_QUEUE_UNSPECIFIED


def attributes_in(*folders: Path) -> set[str]:
    """The names of the attributes that the code of these folders reads."""
    return {
        each.attr
        for folder in folders
        for tree in parse_folder(folder)
        for each in ast.walk(tree)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load)
    }


def test_every_rpc_of_the_orchestrator_is_called_by_the_client_and_any_other_by_the_client_or_a_service() -> (
    None
):
    by_client = attributes_in(PARLEY / "client")
    by_any = attributes_in(*(each for each in PARLEY.iterdir() if each.is_dir() and each.name != "v1"))
    uncalled = {
        each.name
        for each in METHODS
        if each.name not in (by_client if each.containing_service.name == "OrchestratorService" else by_any)
    }
    assert uncalled == {each.name for each in METHODS if each.GetOptions().Extensions[not_in_client]}, (
        'add a method to services/parley/client, or the call of a service, or `option (not_in_client) = "…";` to the RPC'
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.full_name)
def test_every_rpc_has_a_right_request_of_which_odd_ones_are_made(method: MethodDescriptor) -> None:
    assert RIGHT_REQUESTS[method.input_type.name], (
        f"{method.input_type.full_name}: add `option (example) = '{{…}}';` to the message: a right request, as JSON"
    )


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


def _list_own_fields(trees: Sequence[ast.Module]) -> set[tuple[str, str]]:
    """Name the fields of our classes, as they are read: `situation.cites` of `Situation`, `plan.total` of `RoundPlan`."""
    classes = [each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
    return {
        (holder, field.target.id)
        for each in classes
        for field in each.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        for holder in ("self", re.findall("[A-Z][a-z]*", each.name)[-1].lower())
    }


def _settings_read_in(folder: Path) -> set[str]:
    """Name what is read of an object that is none of our own: a field of ours may have a setting's name, and says nothing of it."""
    trees = parse_folder(folder)
    own = _list_own_fields(trees)
    return {
        each.attr
        for tree in trees
        for each in ast.walk(tree)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load)
        if not (isinstance(each.value, ast.Name) and (each.value.id, each.attr) in own)
    }


def test_every_setting_is_read_where_debates_are_run() -> None:
    read = _settings_read_in(PARLEY / "orchestrator")
    unread = {name for name, field in SETTINGS.items() if field.name not in read}
    assert not unread, (
        "no code reads these, so they have no effect: read them in services/parley/orchestrator/formats/FORMAT, or where debates are run"
    )


@pytest.mark.parametrize("setting", find_prompt_settings())
def test_a_setting_that_a_phase_reads_is_set_in_a_kept_log(setting: str) -> None:
    assert "." in setting, f"read each setting as `debate.spec.{setting}.NAME`, so that it is seen here which"
    assert find_debates_with(setting), (
        f"no kept log has what prompts say with {setting}: set it in a debate of tests/support/kept_logs.py, then record that: "
        "`python -m tests.support.kept_logs --again FORMAT@1`"
    )


def test_a_number_that_cannot_be_0_says_what_holds_if_it_is_unset() -> None:
    unsaid = {
        name
        for name, field in SETTINGS.items()
        if (said := setting_of(field)) is not None
        and said.min > 0
        and not (said.default or said.otherwise or said.required or said.zero or said.not_in_file)
    }
    assert not unsaid, "add `default`, `otherwise` or `required` to the setting"


@pytest.mark.parametrize(
    "kind",
    [PanelSettings, ArenaSettings, ModeratedSettings, EvaluationSettings, Clarifications, DebateLimits],
)
def test_defaults_are_values_of_their_fields_and_in_range(kind: type[Message]) -> None:
    violations = Violations()
    check_settings(violations, "spec", with_defaults(kind()))
    violations.refuse()
    for field in settings_below(kind.DESCRIPTOR):
        said = setting_of(field)
        if said is not None and said.default:
            default_of(message_factory.GetMessageClass(field.containing_type), field.name)


def read_default(field: str) -> str:
    """What the contract says in words of a limit's default."""
    said = setting_of(DebateLimits.DESCRIPTOR.fields_by_name[field])
    assert said is not None
    return said.otherwise


def test_the_words_on_other_defaults_of_limits_are_what_the_code_sets() -> None:
    assert f"for `moderated` {seconds_of(MODERATED.limits.round):g}" in read_default("round")
    assert f"for `moderated` {seconds_of(MODERATED.limits.total):g}" in read_default("total")
    assert f"with `parley debate` {WAITING_SECONDS}" in read_default("waiting")


KINDS: dict[str, Any] = {
    inner.name: inner
    for each in Event.DESCRIPTOR.oneofs_by_name["payload"].fields
    if (inner := each.message_type) is not None
}


def kinds_with(option: Any) -> set[str]:
    """The kinds of events whose message has this option of the contract."""
    return {name for name, each in KINDS.items() if each.GetOptions().Extensions[option]}


def cases_in(*trees: ast.AST) -> set[str]:
    """The classes that this code has a `case` or an `isinstance` for; in a union alone, none is handled."""
    nodes = [each for tree in trees for each in ast.walk(tree)]
    named = [each.cls for each in nodes if isinstance(each, ast.MatchClass)]
    for each in nodes:
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "isinstance":
            named += each.args[1:]
    return {each.id for tree in named for each in ast.walk(tree) if isinstance(each, ast.Name)}


def tree_of(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def functions_behind(name: str, *modules: ModuleType) -> list[ast.AST]:
    """A function, and those of these modules that it calls, and so on."""
    all_here = {
        each.name: each
        for module in modules
        for each in tree_of(module).body
        if isinstance(each, ast.FunctionDef)
    }
    found, left = dict[str, ast.AST](), {name}
    while left:
        found |= {each: all_here[each] for each in left}
        named = {each.id for tree in found.values() for each in ast.walk(tree) if isinstance(each, ast.Name)}
        left = (named & all_here.keys()) - found.keys()
    return list(found.values())


def test_every_message_of_an_event_is_a_kind_of_event() -> None:
    messages = event_pb2.DESCRIPTOR.message_types_by_name.values()
    used = {each.message_type for message in messages for each in message.fields if each.message_type}
    unused = {each.name for each in messages if each not in used}
    assert unused == {"Event", "PastDebates", "CommonName"}, (
        "a kind has its line in the oneof `payload` of `Event`"
    )


def test_a_kind_of_event_is_recorded_by_some_code() -> None:
    trees = parse_folder(PARLEY / "orchestrator")
    calls = [each.func for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Call)]
    created = {each.id if isinstance(each, ast.Name) else getattr(each, "attr", "") for each in calls}
    assert KINDS.keys() <= created, "no code of services/parley/orchestrator creates one"


def test_a_kind_of_event_is_replayed_unless_the_contract_says_that_it_can_be_ignored() -> None:
    assert KINDS.keys() - cases_in(tree_of(replay)) == kinds_with(ignorable), (
        "add a case to orchestrator/log/replay.py, or `option (ignorable) = true;` to the message"
    )


def test_a_kind_of_event_changes_a_debates_state_unless_the_contract_says_why_not() -> None:
    assert KINDS.keys() - cases_in(tree_of(folding)) == kinds_with(not_in_state), (
        'add a case to orchestrator/api/folding.py, or `option (not_in_state) = "…";` to the message'
    )


def test_a_kind_of_event_has_a_line_in_parley_watch_unless_the_contract_says_why_not() -> None:
    shown = cases_in(*functions_behind(event_lines.event_lines.__name__, event_lines, event_texts))
    assert KINDS.keys() - shown == kinds_with(without_line), (
        'add a case to _event_text in cli/terminal/event_lines.py, or `option (without_line) = "…";` to the message'
    )


def test_a_kind_of_event_is_in_a_kept_log_unless_the_contract_says_why_not() -> None:
    kept = {type(event.payload).__name__ for each in KEPT.values() for event in read_log(each)}
    assert KINDS.keys() - kept == kinds_with(in_no_kept_log), (
        "if a kept debate records it by now, only record anew: `python -m tests.support.kept_logs --again FORMAT@1`; otherwise add a debate "
        'to tests/support/kept_logs.py, or `option (in_no_kept_log) = "…";` to the message'
    )
