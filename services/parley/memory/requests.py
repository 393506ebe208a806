"""Checks of requests, which name every bad field at once."""

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Final

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from parley.runtime.page_tokens import Place, read_token
from parley.runtime.validation import NAME, Violations
from parley.v1 import memory_pb2 as pb

MAX_LIMIT: Final = 100
_MAX_CHARACTERS: Final = 100_000
_MAX_BYTES: Final = 256 * 1024
_MAX_PART_BYTES: Final = 16 * 1024
_MAX_PARTS: Final = {
    "debate.dissents": 32,
    "debate.evidence": 32,
    "debate.related": 100,
    "stands": 64,
    "issues": 256,
}


def check_recall(request: pb.RecallRequest) -> None:
    """Raise ParleyError for a bad request."""
    violations = Violations()
    violations.check_text("text", request.text, max_characters=_MAX_CHARACTERS)
    violations.check_setting("limit", request.limit, MAX_LIMIT)
    violations.check_setting("floor_percent", request.floor_percent, 100)
    _check_domain(violations, "domain", request.domain)
    violations.check(
        that=len(request.excluded_debate_ids) <= MAX_LIMIT,
        field="excluded_debate_ids",
        otherwise=f"at most {MAX_LIMIT} are allowed",
    )
    violations.refuse()


def check_record(request: pb.RecordDebateRequest) -> None:
    """Raise ParleyError for a bad request."""
    violations, debate = Violations(), request.debate
    _check_debate_id(violations, "debate.debate_id", debate.debate_id)
    violations.check_stored_text("debate.question", debate.question, max_bytes=_MAX_BYTES)
    violations.check_stored_text("debate.conclusion", debate.conclusion, max_bytes=_MAX_BYTES)
    _check_domain(violations, "debate.domain", debate.domain)
    concluded = "debate.concluded_at"
    violations.check(that=debate.HasField("concluded_at"), field=concluded, otherwise="is not set")
    _check_time(violations, concluded, debate.concluded_at)
    violations.check_range("debate.confidence.percent", debate.confidence.percent, 0, 100)
    violations.check(
        that=not debate.HasField("relevance"), field="debate.relevance", otherwise="must not be set"
    )
    for field, parts in (
        ("debate.dissents", debate.dissents),
        ("debate.evidence", debate.evidence),
        ("debate.related", debate.related),
        ("stands", request.stands),
        ("issues", request.issues),
    ):
        _check_parts(violations, field, parts)
    _check_texts(violations, "debate.confidence", debate.confidence)
    for place, related in enumerate(debate.related[: _MAX_PARTS["debate.related"]]):
        _check_time(violations, f"debate.related[{place}].decided_at", related.decided_at)
    for place, stand in enumerate(request.stands[: _MAX_PARTS["stands"]]):
        violations.check(
            that=stand.first_position >= 0,
            field=f"stands[{place}].first_position",
            otherwise="must not be negative",
        )
    for place, each in enumerate(request.issues[: _MAX_PARTS["issues"]]):
        violations.check_range(f"issues[{place}].issue.severity", each.issue.severity, 0, 10)
    violations.refuse()


def check_debate_id(debate_id: str) -> None:
    """Raise ParleyError for a request whose only field, `debate_id`, is bad."""
    violations = Violations()
    _check_debate_id(violations, "debate_id", debate_id)
    violations.refuse()


def check_rate(request: pb.RateDebateRequest) -> None:
    """Raise ParleyError for a bad request."""
    violations = Violations()
    _check_debate_id(violations, "debate_id", request.debate_id)
    violations.check(that=request.number >= 1, field="number", otherwise="must be at least 1")
    violations.check(that=request.value in (1, -1), field="value", otherwise="must be 1 or -1")
    violations.refuse()


def check_list_patterns(request: pb.ListPatternsRequest) -> tuple[int, Place | None]:
    """Return the page's size and where it begins. Raise ParleyError for a bad request."""
    violations = Violations()
    violations.check(
        that=len(request.text) <= _MAX_CHARACTERS,
        field="text",
        otherwise=f"has {len(request.text)} characters, at most {_MAX_CHARACTERS} are allowed",
    )
    _check_domain(violations, "domain", request.domain)
    violations.check(
        that=bool(request.text.strip()) or not request.only_related,
        field="only_related",
        otherwise="needs a text to which they are related",
    )
    size, after = violations.page_size(request.page_size), read_token(violations, request.page_token)
    violations.refuse()
    return size, after


def check_list_positions(request: pb.ListPositionsRequest) -> tuple[int, Place | None]:
    """Return the page's size and where it begins. Raise ParleyError for a bad request."""
    violations = Violations()
    violations.check(
        that=len(request.agent_id.encode()) <= _MAX_PART_BYTES,
        field="agent_id",
        otherwise=f"must have at most {_MAX_PART_BYTES // 1024} KiB",
    )
    size, after = violations.page_size(request.page_size), read_token(violations, request.page_token)
    violations.refuse()
    return size, after


def check_list_moments(request: pb.ListMomentsRequest) -> tuple[int, str]:
    """Return the page's size and the place after which it begins. Raise ParleyError for a bad request."""
    violations = Violations()
    violations.check(
        that=request.kind in pb.MomentKind.values(), field="kind", otherwise=f"is no kind: {request.kind}"
    )
    size, after = violations.page_size(request.page_size), read_token(violations, request.page_token)
    place = after[1] if after else ""
    violations.check(
        that=place.isprintable(), field="page_token", otherwise="is not the token of an earlier page"
    )
    violations.refuse()
    return size, place


def _check_time(violations: Violations, field: str, time: Timestamp) -> None:
    try:
        time.ToDatetime(UTC)
    except (ValueError, OverflowError):
        violations.add(field, "is not a time of the years 1 to 9999")


_MAY_BE_EMPTY: Final = frozenset(
    {"agent_name", "decision", "first_text", "reason", "suggestion", "unknown", "judge_word"}
)


def _check_parts(violations: Violations, field: str, parts: Sequence[Message]) -> None:
    most = _MAX_PARTS[field]
    violations.check(that=len(parts) <= most, field=field, otherwise=f"at most {most} are allowed")
    for place, part in enumerate(parts[:most]):
        _check_texts(violations, f"{field}[{place}]", part)


def _check_texts(violations: Violations, path: str, message: Message) -> None:
    """Check each text of a message and of what is in it."""
    for name, text in _texts(message):
        if text or name.rpartition(".")[2] not in _MAY_BE_EMPTY:
            violations.check_stored_text(f"{path}.{name}", text, max_bytes=_MAX_PART_BYTES)


def _texts(message: Message) -> Iterator[tuple[str, str]]:
    for field in message.DESCRIPTOR.fields:
        if field.type == field.TYPE_STRING:
            yield field.name, getattr(message, field.name)
        elif field.type == field.TYPE_MESSAGE:
            inner = getattr(message, field.name)
            yield from ((f"{field.name}.{name}", text) for name, text in _texts(inner))


def _check_debate_id(violations: Violations, field: str, debate_id: str) -> None:
    violations.check(
        that=bool(NAME.fullmatch(debate_id)),
        field=field,
        otherwise="must be 1 to 128 characters of [A-Za-z0-9._-]",
    )


def _check_domain(violations: Violations, field: str, domain: str) -> None:
    violations.check(
        that=len(domain) <= 64 and "\0" not in domain,
        field=field,
        otherwise="must be at most 64 characters, without NUL",
    )
