"""Checks of what callers send: every bad field is found in one go."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from parley.gateway.calls.key import CallKey
from parley.gateway.prompt.parts import PromptPart
from parley.gateway.prompt.structured_answers import AnswerShape, shape_of
from parley.gateway.prompt.tools import DEFAULT_CALL_LIMIT
from parley.runtime.contract_settings import check_settings
from parley.runtime.validation import AGENT_ID, CONTROL_CHARACTER, Violations
from parley.v1 import agent_pb2, gateway_pb2

__all__ = ["CheckedRequest", "check_call_id", "check_generate", "check_route_names"]

_MAX_ROUTES: Final = 16
_MAX_LISTED_NAMES: Final = 256
_MAX_NAME: Final = 512
_MAX_PROMPT_CHARACTERS: Final = 8 * 1024 * 1024
_MAX_OUTPUT_TOKENS: Final = 1_000_000
_MAX_TIMEOUT_SECONDS: Final = 3600
_MAX_PATH: Final = 1024
_MAX_ANSWER_START: Final = 1000
_TOOLS: Final[dict[int, str]] = {
    agent_pb2.TOOL_CONTEXT_SEARCH: "context_search",
    agent_pb2.TOOL_FILE_READ: "file_read",
    agent_pb2.TOOL_LIST_FILES: "list_files",
}
_ROLES: Final = {
    gateway_pb2.PROMPT_ROLE_SYSTEM: "system",
    gateway_pb2.PROMPT_ROLE_USER: "user",
    gateway_pb2.PROMPT_ROLE_ASSISTANT: "assistant",
}


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that holds what it should. `seconds` None: the caller names no timeout."""

    key: CallKey | None
    routes: tuple[str, ...]
    prompt: tuple[PromptPart, ...]
    shape: AnswerShape | None
    max_output_tokens: int
    temperature: float | None
    seconds: float | None
    agent_name: str
    tools: tuple[str, ...] = ()
    tool_call_limit: int = DEFAULT_CALL_LIMIT
    answer_start: str = ""
    affordable_output_tokens: int = 0


def check_generate(request: gateway_pb2.GenerateRequest) -> CheckedRequest:
    """Return the request as domain values.

    Raises:
        ParleyError: INVALID_ARGUMENT with every bad field.
    """
    violations = Violations()
    key = _call_key(request.call_id, violations) if request.HasField("call_id") else None
    _check_agent(request, violations)
    prompt = _prompt(request, violations)
    shape = _shape(request, violations)
    violations.check_range("max_output_tokens", request.max_output_tokens, 0, _MAX_OUTPUT_TOKENS)
    affordable = request.affordable_output_tokens
    violations.check_range("affordable_output_tokens", affordable, 0, _MAX_OUTPUT_TOKENS)
    seconds = _seconds(request, violations)
    _check_answer_start(request, violations)
    violations.refuse()
    agent = request.agent
    return CheckedRequest(
        key,
        tuple(dict.fromkeys(agent.routes)),
        prompt,
        shape,
        request.max_output_tokens,
        agent.temperature if agent.HasField("temperature") else None,
        seconds,
        agent.name or agent.id,
        tuple(_TOOLS[each] for each in agent.tools),
        agent.tool_call_limit or DEFAULT_CALL_LIMIT,
        request.answer_start,
        affordable,
    )


def check_call_id(request: gateway_pb2.CancelCallRequest) -> CallKey:
    """Return the name of the call.

    Raises:
        ParleyError: INVALID_ARGUMENT with every bad field.
    """
    violations = Violations()
    key = _call_key(request.call_id, violations)
    violations.refuse()
    return key


def check_route_names(request: gateway_pb2.ListRoutesRequest) -> tuple[str, ...]:
    """Return the names of the routes that are to be listed whatever becomes of them.

    Raises:
        ParleyError: INVALID_ARGUMENT with every bad field.
    """
    violations = Violations()
    violations.check(
        that=len(request.names) <= _MAX_LISTED_NAMES,
        field="names",
        otherwise=f"must be at most {_MAX_LISTED_NAMES}",
    )
    for number, name in enumerate(request.names):
        violations.check(
            that=len(name) <= _MAX_NAME and not CONTROL_CHARACTER.search(name),
            field=f"names[{number}]",
            otherwise=f"must be at most {_MAX_NAME} characters, on one line",
        )
    violations.refuse()
    return tuple(request.names)


def _call_key(given: gateway_pb2.CallId, violations: Violations) -> CallKey:
    for name in ("tenant", "debate_id", "step"):
        field, value = f"call_id.{name}", getattr(given, name)
        violations.check(that=bool(value), field=field, otherwise="is required")
        violations.check(
            that=len(value) <= _MAX_NAME, field=field, otherwise=f"has more than {_MAX_NAME} characters"
        )
    violations.check(
        that=given.step_attempt >= 1, field="call_id.step_attempt", otherwise="must be 1 or more"
    )
    return CallKey(given.tenant, given.debate_id, given.step, given.step_attempt)


def _check_agent(request: gateway_pb2.GenerateRequest, violations: Violations) -> None:
    if not request.HasField("agent"):
        violations.add("agent", "is required")
        return
    agent = request.agent
    violations.check(
        that=bool(AGENT_ID.fullmatch(agent.id)), field="agent.id", otherwise=f"must match {AGENT_ID.pattern}"
    )
    check_settings(violations, "agent", agent)
    violations.check(
        that=len(agent.routes) <= _MAX_ROUTES,
        field="agent.routes",
        otherwise=f"has more than {_MAX_ROUTES} routes",
    )
    for index, route in enumerate(agent.routes):
        violations.check(
            that=0 < len(route) <= _MAX_NAME,
            field=f"agent.routes[{index}]",
            otherwise=f"must have 1 to {_MAX_NAME} characters",
        )
    _check_tools(agent, violations)


def _check_tools(agent: agent_pb2.Agent, violations: Violations) -> None:
    seen: set[int] = set()
    for index, tool in enumerate(agent.tools):
        field = f"agent.tools[{index}]"
        if tool not in _TOOLS:
            violations.add(field, "must be CONTEXT_SEARCH, FILE_READ or LIST_FILES")
        elif tool in seen:
            violations.add(field, f"{_TOOLS[tool]} is there twice")
        seen.add(tool)


def _prompt(request: gateway_pb2.GenerateRequest, violations: Violations) -> tuple[PromptPart, ...]:
    violations.check(that=bool(request.prompt), field="prompt", otherwise="needs at least one part")
    paths: set[str] = set()
    parts = tuple(
        _part(part, f"prompt[{index}]", paths, violations) for index, part in enumerate(request.prompt)
    )
    if sum(len(part.text) for part in parts) > _MAX_PROMPT_CHARACTERS:
        violations.add("prompt", f"has more than {_MAX_PROMPT_CHARACTERS} characters")
    elif parts and not any(part.text.strip() for part in parts):
        violations.add("prompt", "holds no text")
    return parts


def _part(part: gateway_pb2.PromptPart, field: str, paths: set[str], violations: Violations) -> PromptPart:
    role = _ROLES.get(part.role)
    violations.check(
        that=role is not None, field=f"{field}.role", otherwise="must be SYSTEM, USER or ASSISTANT"
    )
    violations.check(
        that=part.shrink_priority >= 0, field=f"{field}.shrink_priority", otherwise="must be 0 or more"
    )
    if part.document:
        violations.check(
            that=role in {"user", None},
            field=f"{field}.document",
            otherwise="only a USER part may be a document",
        )
        _check_path(part.document, f"{field}.document", paths, violations)
    return PromptPart(role or "", part.text, part.shrink_priority, part.document)


def _check_path(given: str, field: str, seen: set[str], violations: Violations) -> None:
    path = PurePosixPath(given)
    if path.is_absolute() or ".." in path.parts:
        violations.add(field, "must be a relative path without '..'")
    elif len(given) > _MAX_PATH or CONTROL_CHARACTER.search(given):
        violations.add(field, f"must have at most {_MAX_PATH} characters, none of them a control character")
    elif given in seen:
        violations.add(field, "is there twice")
    seen.add(given)


def _shape(request: gateway_pb2.GenerateRequest, violations: Violations) -> AnswerShape | None:
    if not request.HasField("schema"):
        return None
    try:
        schema = request.schema
        return shape_of(schema.name, schema.json_schema, accepts_prose=schema.accepts_prose)
    except ValueError as error:
        field, _, what = str(error).partition(": ")
        violations.add(f"schema.{field}", what)
        return None


def _check_answer_start(request: gateway_pb2.GenerateRequest, violations: Violations) -> None:
    violations.check(
        that=len(request.answer_start) <= _MAX_ANSWER_START,
        field="answer_start",
        otherwise=f"must be at most {_MAX_ANSWER_START} characters",
    )
    violations.check(
        that=not (request.answer_start and request.HasField("schema")),
        field="answer_start",
        otherwise="begins plain text; it cannot stand beside a schema",
    )


def _seconds(request: gateway_pb2.GenerateRequest, violations: Violations) -> float | None:
    if not request.HasField("timeout"):
        return None
    seconds = request.timeout.seconds + request.timeout.nanos / 1e9
    violations.check(
        that=0 < seconds <= _MAX_TIMEOUT_SECONDS,
        field="timeout",
        otherwise=f"must be above 0 and at most {_MAX_TIMEOUT_SECONDS} s",
    )
    return seconds
