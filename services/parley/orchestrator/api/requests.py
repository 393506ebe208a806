"""Requests are checked once and completely on arrival: the result is a specification that can run, or every bad field."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from google.protobuf.json_format import SerializeToJsonError
from google.protobuf.message import Message

from parley.orchestrator.api.judge_route import set_judge_route, set_model_families
from parley.orchestrator.api.participants import ParticipantResolver, ValidationContext
from parley.orchestrator.engine.format import Format, Formats, Settings, UnknownFormatError
from parley.orchestrator.model.digest import digest
from parley.orchestrator.model.labels import check_labels
from parley.orchestrator.model.spec import (
    format_settings,
    set_format_settings,
    with_default_limits,
    without_sections,
)
from parley.orchestrator.model.times import time_of
from parley.orchestrator.outgoing.web_address import refuse_address
from parley.runtime.contract_settings import check_settings, default_of, with_defaults
from parley.runtime.errors import FieldViolation, invalid_argument
from parley.runtime.held_texts import digest_of_text
from parley.runtime.partial_copies import copy_without
from parley.runtime.validation import (
    CONTROL_CHARACTER,
    DEBATE_ID,
    MAX_PATH_CHARACTERS,
    REQUEST_ID,
    Violations,
)
from parley.v1 import debate_pb2, event_pb2, orchestrator_pb2
from parley.v1.agent_pb2 import Agent

if TYPE_CHECKING:  # imported on use: most orchestrators read no page
    from parley.orchestrator.research.sources import WebSources

_MAX_NAME = 64
_MAX_QUESTION_BYTES = 256 * 1024
_MAX_DOCUMENTS = 2000
_MAX_CONTEXT_BYTES = 4 * 1024 * 1024
_SETTINGS_OF_FORMATS = frozenset(
    each.name for each in debate_pb2.DebateSpec.DESCRIPTOR.oneofs_by_name["format_settings"].fields
)


def check_id(debate_id: str) -> str:
    """Return a `debate_id` that is well formed. Raises ParleyError for any other."""
    if not DEBATE_ID.fullmatch(debate_id):
        raise invalid_argument([FieldViolation("debate_id", _describe_bad_id(debate_id))])
    return debate_id


def _describe_bad_id(text: str) -> str:
    return f"{text[:80]!r} is not a debate id"


def check_request_id(violations: Violations, request_id: str) -> None:
    """Note a request id that is missing or has the wrong form."""
    violations.check(
        that=bool(REQUEST_ID.fullmatch(request_id)),
        field="request_id",
        otherwise="must be 1 to 128 characters of A-Z a-z 0-9 . _ - (over HTTP: the header Idempotency-Key)",
    )


def check_debate_id(violations: Violations, debate_id: str) -> None:
    """Note a `debate_id` that has the wrong form."""
    if not DEBATE_ID.fullmatch(debate_id):
        violations.add("debate_id", _describe_bad_id(debate_id))


def check_name(violations: Violations, name: str) -> None:
    """Note a name of something that people create, if it is blank, too long or not printable."""
    fine = bool(name.strip()) and len(name) <= _MAX_NAME and name.isprintable()
    violations.check(that=fine, field="name", otherwise=f"must be 1 to {_MAX_NAME} printable characters")


def read_time(violations: Violations, message: Message, field: str) -> datetime | None:
    """Return the time in a field, None if it is not set; note one that is none."""
    if message.HasField(field):
        try:
            return time_of(getattr(message, field))
        except (ValueError, OverflowError):
            violations.add(field, "is not a time")
    return None


def resolve_request(
    request: orchestrator_pb2.CreateDebateRequest, known: ValidationContext
) -> event_pb2.DebateCreated:
    """Return the first event of the debate that a request asks for: agents resolved, defaults filled in.

    Raises:
        ParleyError: INVALID_ARGUMENT with every bad field.
    """
    spec, violations = request.spec, Violations()
    check_request_id(violations, request.request_id)
    debate_format = _format(violations, spec, known.formats)
    count = len(spec.agents or known.roster.default_team)
    kind = _check_spec(violations, spec, debate_format, known, count)
    agents = ParticipantResolver(known, violations, debate_format)
    team = agents.resolve_team(spec.agents)
    judge = agents.resolve_judge(spec.judge if spec.HasField("judge") else None, team)
    given = format_settings(spec)
    if kind is not None and given is not None and len(team) == count:
        kind.check_names(violations, given, [each.id for each in team])
    violations.refuse()
    assert debate_format is not None
    assert judge is not None
    created = event_pb2.DebateCreated(
        request_id=request.request_id,
        spec=spec,
        roles=[
            event_pb2.RolePrompts(role=each, sections=sections_of_role)
            for each, sections_of_role in agents.instructions.items()
        ],
        demonstration=any(map(known.roster.is_demonstration, (*team, judge))),
    )
    _fill_in(created, debate_format, team, judge, known.web)
    set_model_families(created.spec, known.roster)
    if debate_format.is_judged:
        set_judge_route(created, known.roster)
    return created


def _check_spec(
    violations: Violations,
    spec: debate_pb2.DebateSpec,
    debate_format: Format | None,
    known: ValidationContext,
    team_size: int,
) -> Settings | None:
    """Check all of a specification but its agents. Return the kind of its settings; None if its format has none, or is not known."""
    _check_question(violations, spec.question, debate_format)
    _check_texts(violations, spec)
    check_labels(violations, "spec.labels", spec.labels)
    check_settings(violations, "spec", spec, but=_SETTINGS_OF_FORMATS)
    _check_settings(violations, spec, known.formats, team_size)
    _check_research(violations, spec, known.web)
    kind = _kind_of_settings(violations, spec, debate_format) if debate_format else None
    _check_concurrency(violations, spec.concurrency, debate_format)
    return kind


def _fill_in(
    created: event_pb2.DebateCreated,
    debate_format: Format,
    team: Iterable[Agent],
    judge: Agent,
    web: "WebSources | None",
) -> None:
    """Set the agents, and in place of what is unset the defaults."""
    spec, given = created.spec, format_settings(created.spec)
    if debate_format.settings is not None:
        is_demonstration = created.demonstration
        set_format_settings(
            spec, debate_format.settings.with_defaults(given, is_demonstration=is_demonstration)
        )
    spec.format = debate_format.id
    del spec.agents[:]
    spec.agents.extend(debate_pb2.Participant(agent=without_sections(each)) for each in team)
    spec.judge.agent.CopyFrom(without_sections(judge))
    spec.limits.CopyFrom(with_default_limits(spec.limits, debate_format.limits))
    spec.domain = spec.domain or default_of(debate_pb2.DebateSpec, "domain")
    for name in ("history_limit", "patterns", "knowledge"):
        if not spec.HasField(name):
            setattr(spec, name, default_of(debate_pb2.DebateSpec, name))
    if spec.HasField("clarifications"):
        spec.clarifications.CopyFrom(with_defaults(spec.clarifications))
    is_wanted = spec.analysis if spec.HasField("analysis") else debate_format.is_analysed(spec)
    can_be = debate_format.is_judged and debate_format.is_recorded and not created.demonstration
    spec.analysis = can_be and is_wanted
    if web is not None:
        is_wanted = spec.research or not spec.HasField("research")
        spec.research = can_be and is_wanted and web.has_something_for(spec)


def most_found_characters(spec: debate_pb2.DebateSpec, web: "WebSources | None") -> int:
    """Return how many characters research may find for a debate, at most."""
    return 0 if web is None else web.most_characters(spec)


def _check_research(violations: Violations, spec: debate_pb2.DebateSpec, web: "WebSources | None") -> None:
    violations.check(
        that=web is not None or not spec.research,
        field="spec.research",
        otherwise="no research is switched on here; the operator does that with PARLEY_RESEARCH_…",
    )
    if not spec.research_pages:
        return
    violations.check(
        that=(web is not None and web.reads_pages) and (spec.research or not spec.HasField("research")),
        field="spec.research_pages",
        otherwise="no pages are read: `research` is false, or the operator has not set PARLEY_RESEARCH_PAGES",
    )
    for index, each in enumerate(spec.research_pages):
        if refused := refuse_address(each):
            violations.add(f"spec.research_pages[{index}]", refused)


def _format(violations: Violations, spec: debate_pb2.DebateSpec, formats: Formats) -> Format | None:
    name = spec.format or spec.WhichOneof("format_settings") or formats.default()
    try:
        return formats.get(name)
    except UnknownFormatError as unknown:
        violations.add("spec.format", str(unknown))
        return None


def _check_settings(
    violations: Violations, spec: debate_pb2.DebateSpec, formats: Formats, agents: int
) -> None:
    """Check the settings by their own format: the debate may have another one, or an unknown one."""
    given = format_settings(spec)
    kind = formats.settings(spec.WhichOneof("format_settings") or "")
    if given is not None and kind is not None:
        kind.check(violations, given, agents)


def _kind_of_settings(
    violations: Violations, spec: debate_pb2.DebateSpec, debate_format: Format
) -> Settings | None:
    """Return the settings that the debate's format has, if any; note settings of another format."""
    given, kind = format_settings(spec), debate_format.settings
    if given is not None and (kind is None or spec.WhichOneof("format_settings") != kind.name):
        name = spec.WhichOneof("format_settings")
        violations.add(f"spec.{name}", f"are settings of another format than {debate_format.name}")
        return None
    return kind


def _check_concurrency(
    violations: Violations, concurrency: Mapping[str, int], debate_format: Format | None
) -> None:
    for label in sorted(concurrency):
        field = f"spec.concurrency.{label[:80]}"
        if debate_format is not None and label not in debate_format.concurrency:
            known = ", ".join(sorted(debate_format.concurrency)) or "none"
            violations.add(field, f"is no label of the format {debate_format.name}; known labels: {known}")


def _check_question(violations: Violations, question: str, debate_format: Format | None) -> None:
    field = "spec.question"
    if debate_format is not None and debate_format.subject is not None:
        otherwise = "must be empty: what is debated is another debate"
        violations.check(that=not question, field=field, otherwise=otherwise)
        return
    violations.check(that=bool(question.strip()), field=field, otherwise="must not be blank")
    violations.check(that="\0" not in question, field=field, otherwise="must not hold a NUL character")
    violations.check(
        that=len(question.encode()) <= _MAX_QUESTION_BYTES, field=field, otherwise="must be at most 256 KiB"
    )


def _check_texts(violations: Violations, spec: debate_pb2.DebateSpec) -> None:
    size = sum(len(each.text.encode()) for each in spec.context)
    violations.check(
        that=size <= _MAX_CONTEXT_BYTES, field="spec.context", otherwise="must be at most 4 MiB together"
    )
    if len(spec.context) > _MAX_DOCUMENTS:
        violations.add(
            "spec.context", f"has {len(spec.context)} documents, at most {_MAX_DOCUMENTS} are allowed"
        )
        return
    seen: set[str] = set()
    for place, document in enumerate(spec.context):
        path, field = PurePosixPath(document.path), f"spec.context[{place}].path"
        fine = (
            document.path and not path.is_absolute() and ".." not in path.parts and document.path not in seen
        )
        violations.check(
            that=bool(fine),
            field=field,
            otherwise="must be a relative path without '..', unique in the debate",
        )
        violations.check(
            that=len(document.path) <= MAX_PATH_CHARACTERS and not CONTROL_CHARACTER.search(document.path),
            field=field,
            otherwise=f"must be at most {MAX_PATH_CHARACTERS} characters, none of them a control character",
        )
        seen.add(document.path)


def digest_content(request: orchestrator_pb2.CreateDebateRequest) -> str:
    """Return the digest of a request's content as it was sent: what it is resolved to may change.

    Empty if it has an invalid duration, so that it will be refused.
    """
    spec = copy_without(request.spec, "context")
    for each in request.spec.context:
        # What stands for a text does as well: to write megabytes as JSON would keep other callers waiting.
        spec.context.add(path=each.path, text=digest_of_text(each.text.encode()))
    try:
        return digest(spec)
    except SerializeToJsonError:
        return ""
