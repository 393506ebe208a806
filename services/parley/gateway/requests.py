"""Checks of what callers send: every bad field is found in one go."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from parley.gateway.prompt.document_cache import DocumentCache
from parley.gateway.prompt.fitting import ROLE_NAMES
from parley.gateway.prompt.structured_answers import AnswerShape, parse_shape
from parley.gateway.prompt.tools import TOOL_NAMES
from parley.gateway.routing.call import Call
from parley.runtime.contract_settings import check_settings
from parley.runtime.errors import failed_precondition
from parley.runtime.held_texts import HeldText, hold_text
from parley.runtime.partial_copies import copy_without
from parley.runtime.passages import MAX_PASSAGES
from parley.runtime.validation import AGENT_ID, CONTROL_CHARACTER, Violations
from parley.v1 import agent_pb2, gateway_pb2

_MAX_ROUTES: Final = 16
_MAX_LISTED_NAMES: Final = 256
_MAX_FORGOTTEN: Final = 256
_MAX_NAME: Final = 512
_MAX_PROMPT_CHARACTERS: Final = 8 * 1024 * 1024
_MAX_OUTPUT_TOKENS: Final = 1_000_000
_MAX_TIMEOUT_SECONDS: Final = 3600
_MAX_PATH: Final = 1024
_MAX_ANSWER_START: Final = 1000


def check_generate(request: gateway_pb2.GenerateRequest, cache: DocumentCache) -> Call:
    """Return the request with the shape that its schema stands for, and its documents, of which some are kept in the cache.

    Raises:
        ParleyError: INVALID_ARGUMENT with every bad field; `DOCUMENTS_MISSING` if a document is not in the cache.
    """
    violations = Violations()
    if request.HasField("call_id"):
        _check_call_id("call_id", request.call_id, violations)
    _check_agent(request, violations)
    characters = _check_prompt(request, violations)
    shape = _shape(request, violations)
    violations.check_range("max_output_tokens", request.max_output_tokens, 0, _MAX_OUTPUT_TOKENS)
    affordable = request.affordable_output_tokens
    violations.check_range("affordable_output_tokens", affordable, 0, _MAX_OUTPUT_TOKENS)
    violations.check(
        that=request.affordable_input_tokens >= 0,
        field="affordable_input_tokens",
        otherwise="must not be below 0",
    )
    documents = _find_documents(request, cache, violations)
    call = Call(request, shape, {}, characters)
    seconds = call.seconds
    if seconds is not None and not 0 < seconds <= _MAX_TIMEOUT_SECONDS:
        violations.add("timeout", f"must be above 0 and at most {_MAX_TIMEOUT_SECONDS} s")
    _check_answer_start(request, violations)
    violations.refuse()
    if (missing := sum(held is None for held in documents.values())) > 0:
        message = f"{missing} documents of the prompt are not known here; call again with their texts"
        raise failed_precondition("DOCUMENTS_MISSING", message)
    known = {path: held for path, held in documents.items() if held is not None}
    return _create_call(request, shape, known) if known else call


def check_cancel(request: gateway_pb2.CancelCallRequest) -> gateway_pb2.CallId:
    """Return the id of the call.

    Raises:
        ParleyError: INVALID_ARGUMENT with every bad field.
    """
    violations = Violations()
    _check_call_id("call_id", request.call_id, violations)
    violations.refuse()
    return request.call_id


def check_forget(request: gateway_pb2.ForgetAnswersRequest) -> Sequence[gateway_pb2.CallId]:
    """Return the ids of the calls.

    Raises:
        ParleyError: INVALID_ARGUMENT with every bad field.
    """
    violations, count = Violations(), len(request.call_ids)
    violations.check(
        that=0 < count <= _MAX_FORGOTTEN, field="call_ids", otherwise=f"must be 1 to {_MAX_FORGOTTEN} calls"
    )
    for number, each in enumerate(request.call_ids[:_MAX_FORGOTTEN]):
        _check_call_id(f"call_ids[{number}]", each, violations)
    violations.refuse()
    return request.call_ids


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


def _check_call_id(place: str, given: gateway_pb2.CallId, violations: Violations) -> None:
    for name, value in (("tenant", given.tenant), ("debate_id", given.debate_id), ("step", given.step)):
        if not value:
            violations.add(f"{place}.{name}", "is required")
        elif len(value) > _MAX_NAME:
            violations.add(f"{place}.{name}", f"has more than {_MAX_NAME} characters")
    if given.step_attempt < 1:
        violations.add(f"{place}.step_attempt", "must be 1 or more")


def _check_agent(request: gateway_pb2.GenerateRequest, violations: Violations) -> None:
    if not request.HasField("agent"):
        violations.add("agent", "is required")
        return
    agent = request.agent
    if not AGENT_ID.fullmatch(agent.id):
        violations.add("agent.id", f"must match {AGENT_ID.pattern}")
    _check_tools(agent, violations)
    check_settings(violations, "agent", agent)
    if len(agent.routes) > _MAX_ROUTES:
        violations.add("agent.routes", f"has more than {_MAX_ROUTES} routes")
    for index, route in enumerate(agent.routes):
        if not 0 < len(route) <= _MAX_NAME:
            violations.add(f"agent.routes[{index}]", f"must have 1 to {_MAX_NAME} characters")


def _check_tools(agent: agent_pb2.Agent, violations: Violations) -> None:
    seen: set[int] = set()
    for index, tool in enumerate(agent.tools):
        field = f"agent.tools[{index}]"
        if tool not in TOOL_NAMES:
            violations.add(field, "must be CONTEXT_SEARCH, FILE_READ or LIST_FILES")
        elif tool in seen:
            violations.add(field, f"{TOOL_NAMES[tool]} is there twice")
        seen.add(tool)


def _check_prompt(request: gateway_pb2.GenerateRequest, violations: Violations) -> int:
    """Return how many characters the texts of the prompt have."""
    violations.check(that=bool(request.prompt), field="prompt", otherwise="needs at least one part")
    paths: set[str] = set()
    characters, is_blank = 0, True
    for index, part in enumerate(request.prompt):
        _check_part(part, f"prompt[{index}]", paths, violations)
        text = part.text
        characters += len(text)
        is_blank = is_blank and not part.digest and not text.strip()
    if characters > _MAX_PROMPT_CHARACTERS:
        violations.add("prompt", f"has more than {_MAX_PROMPT_CHARACTERS} characters")
    elif request.prompt and is_blank:
        violations.add("prompt", "holds no text")
    return characters


def _check_part(part: gateway_pb2.PromptPart, field: str, paths: set[str], violations: Violations) -> None:
    is_known = part.role in ROLE_NAMES
    if not is_known:
        violations.add(f"{field}.role", "must be SYSTEM, USER or ASSISTANT")
    if part.shrink_priority < 0:
        violations.add(f"{field}.shrink_priority", "must be 0 or more")
    if part.document:
        violations.check(
            that=part.role == gateway_pb2.PROMPT_ROLE_USER or not is_known,
            field=f"{field}.document",
            otherwise="only a USER part may be a document",
        )
        _check_path(part.document, f"{field}.document", paths, violations)
    if part.digest:
        violations.check(
            that=bool(part.document), field=f"{field}.digest", otherwise="only a document has a digest"
        )
    if part.source < 0 or (part.source and not part.document):
        violations.add(f"{field}.source", "must be 0 or more, and 0 for what is no document")
    if part.passages:
        violations.check(
            that=bool(part.document)
            and len(part.passages) <= MAX_PASSAGES
            and all(0 <= each.start < each.end for each in part.passages),
            field=f"{field}.passages",
            otherwise=f"must be at most {MAX_PASSAGES} passages of a document, each with a start from 0 and an end after it",
        )


def _check_path(given: str, field: str, seen: set[str], violations: Violations) -> None:
    path = PurePosixPath(given)
    if path.is_absolute() or ".." in path.parts:
        violations.add(field, "must be a relative path without '..'")
    elif len(given) > _MAX_PATH or CONTROL_CHARACTER.search(given):
        violations.add(field, f"must have at most {_MAX_PATH} characters, none of them a control character")
    elif given in seen:
        violations.add(field, "is there twice")
    seen.add(given)


def _find_documents(
    request: gateway_pb2.GenerateRequest, cache: DocumentCache, violations: Violations
) -> dict[str, HeldText | None]:
    """Return the text of each document by its path; None if it is named by a digest and not known here."""
    found: dict[str, HeldText | None] = {}
    for index, part in enumerate(request.prompt):
        if part.digest and not part.text:
            found[part.document] = cache.find(part.digest)
        elif part.document:
            found[part.document] = held = hold_text(part.text)
            if part.digest == held.digest:
                cache.keep(held)
            elif part.digest:
                violations.add(f"prompt[{index}].digest", "is not the digest of the text")
    return found


def _create_call(
    request: gateway_pb2.GenerateRequest, shape: AnswerShape | None, documents: Mapping[str, HeldText]
) -> Call:
    """Return a call whose request names its documents by their digests, however they came."""
    bare, size = copy_without(request, "prompt"), 0
    for part in request.prompt:
        held = documents.get(part.document)
        size += len(part.text) if held is None else len(held.utf8)
        if held is None:
            bare.prompt.append(part)
        else:
            bare.prompt.add(
                role=part.role,
                shrink_priority=part.shrink_priority,
                document=part.document,
                digest=held.digest,
                source=part.source,
                passages=part.passages,
            )
    return Call(bare, shape, documents, size)


def _shape(request: gateway_pb2.GenerateRequest, violations: Violations) -> AnswerShape | None:
    if not request.HasField("schema"):
        return None
    try:
        schema = request.schema
        return parse_shape(schema.name, schema.json_schema, accepts_prose=schema.accepts_prose)
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
        otherwise="begins plain text; it cannot be used with a schema",
    )
