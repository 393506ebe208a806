"""Checks of what callers send: every bad field is found in one go."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from parley.gateway.call_store import CallKey
from parley.gateway.fitting import PromptPart
from parley.gateway.structured import AnswerShape, shape_of
from parley.gateway.tools import DEFAULT_CALL_LIMIT
from parley.runtime.errors import FieldViolation, invalid_argument
from parley.v1 import agent_pb2, gateway_pb2

__all__ = ["CheckedRequest", "check_call_id", "check_generate"]

_AGENT_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_MAX_ROUTES: Final = 16
_MAX_NAME: Final = 512
_MAX_PROMPT_CHARACTERS: Final = 8 * 1024 * 1024
_MAX_OUTPUT_TOKENS: Final = 1_000_000
_MAX_TIMEOUT_SECONDS: Final = 3600
_MAX_TOOL_CALLS: Final = 100
_MAX_PATH: Final = 1024
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
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


def check_generate(request: gateway_pb2.GenerateRequest) -> CheckedRequest:
    """The request as domain values. Raises INVALID_ARGUMENT with every bad field."""
    bad: list[FieldViolation] = []
    key = _call_key(request.call_id, bad) if request.HasField("call_id") else None
    if request.HasField("agent"):
        _check_agent(request.agent, bad)
    else:
        bad.append(FieldViolation("agent", "is required"))
    prompt = _prompt(request, bad)
    shape = _shape(request, bad)
    if not 0 <= request.max_output_tokens <= _MAX_OUTPUT_TOKENS:
        bad.append(FieldViolation("max_output_tokens", f"must be 0 to {_MAX_OUTPUT_TOKENS}"))
    seconds = _seconds(request, bad)
    if bad:
        raise invalid_argument(bad)
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
    )


def check_call_id(request: gateway_pb2.CancelCallRequest) -> CallKey:
    """The name of the call. Raises INVALID_ARGUMENT with every bad field."""
    bad: list[FieldViolation] = []
    key = _call_key(request.call_id, bad)
    if bad:
        raise invalid_argument(bad)
    return key


def _call_key(given: gateway_pb2.CallId, bad: list[FieldViolation]) -> CallKey:
    for name in ("tenant", "debate_id", "step"):
        value = getattr(given, name)
        if not value:
            bad.append(FieldViolation(f"call_id.{name}", "is required"))
        elif len(value) > _MAX_NAME:
            bad.append(FieldViolation(f"call_id.{name}", f"has more than {_MAX_NAME} characters"))
    if given.attempt < 1:
        bad.append(FieldViolation("call_id.attempt", "must be 1 or more"))
    return CallKey(given.tenant, given.debate_id, given.step, given.attempt)


def _check_agent(agent: agent_pb2.Agent, bad: list[FieldViolation]) -> None:
    if not _AGENT_ID.fullmatch(agent.id):
        bad.append(FieldViolation("agent.id", "must match [a-z0-9][a-z0-9-]{0,31}"))
    if agent.HasField("temperature") and not 0 <= agent.temperature <= 2:
        bad.append(FieldViolation("agent.temperature", "must be 0 to 2"))
    if len(agent.routes) > _MAX_ROUTES:
        bad.append(FieldViolation("agent.routes", f"has more than {_MAX_ROUTES} routes"))
    for index, route in enumerate(agent.routes):
        if not route or len(route) > _MAX_NAME:
            bad.append(FieldViolation(f"agent.routes[{index}]", f"must have 1 to {_MAX_NAME} characters"))
    for index, tool in enumerate(agent.tools):
        if tool not in _TOOLS:
            known = "CONTEXT_SEARCH, FILE_READ or LIST_FILES"
            bad.append(FieldViolation(f"agent.tools[{index}]", f"must be {known}"))
        elif tool in agent.tools[:index]:
            bad.append(FieldViolation(f"agent.tools[{index}]", f"{_TOOLS[tool]} is there twice"))
    if not 0 <= agent.tool_call_limit <= _MAX_TOOL_CALLS:
        bad.append(FieldViolation("agent.tool_call_limit", f"must be 0 to {_MAX_TOOL_CALLS}"))


def _prompt(request: gateway_pb2.GenerateRequest, bad: list[FieldViolation]) -> tuple[PromptPart, ...]:
    if not request.prompt:
        bad.append(FieldViolation("prompt", "needs at least one part"))
    parts: list[PromptPart] = []
    paths: set[str] = set()
    for index, part in enumerate(request.prompt):
        role = _ROLES.get(part.role)
        if role is None:
            bad.append(FieldViolation(f"prompt[{index}].role", "must be SYSTEM, USER or ASSISTANT"))
        if part.give < 0:
            bad.append(FieldViolation(f"prompt[{index}].give", "must be 0 or more"))
        if part.document:
            if role not in {"user", None}:
                bad.append(FieldViolation(f"prompt[{index}].document", "only a USER part may be a document"))
            wrong = _wrong_path(part.document, paths)
            if wrong is not None:
                bad.append(FieldViolation(f"prompt[{index}].document", wrong))
            paths.add(part.document)
        parts.append(PromptPart(role or "", part.text, part.give, part.document))
    if sum(len(part.text) for part in parts) > _MAX_PROMPT_CHARACTERS:
        bad.append(FieldViolation("prompt", f"has more than {_MAX_PROMPT_CHARACTERS} characters"))
    elif parts and not any(part.text.strip() for part in parts):
        bad.append(FieldViolation("prompt", "holds no text"))
    return tuple(parts)


def _wrong_path(given: str, seen: set[str]) -> str | None:
    path = PurePosixPath(given)
    if path.is_absolute() or ".." in path.parts:
        return "must be a relative path without '..'"
    if len(given) > _MAX_PATH or _CONTROL.search(given):
        return f"must have at most {_MAX_PATH} characters, none of them a control character"
    return "is there twice" if given in seen else None


def _shape(request: gateway_pb2.GenerateRequest, bad: list[FieldViolation]) -> AnswerShape | None:
    if not request.HasField("schema"):
        return None
    try:
        return shape_of(request.schema.name, request.schema.json_schema)
    except ValueError as error:
        field, _, what = str(error).partition(": ")
        bad.append(FieldViolation(f"schema.{field}", what))
        return None


def _seconds(request: gateway_pb2.GenerateRequest, bad: list[FieldViolation]) -> float | None:
    if not request.HasField("timeout"):
        return None
    seconds = request.timeout.seconds + request.timeout.nanos / 1e9
    if not 0 < seconds <= _MAX_TIMEOUT_SECONDS:
        bad.append(FieldViolation("timeout", f"must be above 0 and at most {_MAX_TIMEOUT_SECONDS} s"))
    return seconds
