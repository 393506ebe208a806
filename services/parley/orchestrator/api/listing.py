"""Lists of debates: their filter, their order, and the start of a page."""

import hashlib
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple, replace

from parley.orchestrator.api.conversion import status_from_proto
from parley.orchestrator.api.page_tokens import place_form, place_of
from parley.orchestrator.api.requests import read_time
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.log.debate_filter import DebateFilter
from parley.orchestrator.model.labels import check_labels, label_texts
from parley.orchestrator.model.times import time_text
from parley.runtime.validation import DEBATE_ID, Violations
from parley.v1 import orchestrator_pb2

_MAX_FORMAT: Final = 64
_ORDERS: Final = ("create_time desc", "create_time")
_OLDEST_FIRST: Final = {"": False, "create_time desc": False, "create_time": True}
_PLACE: Final = place_form(DEBATE_ID)


class Listing(Struct, frozen=True):
    """A page of a list of debates.

    Attributes:
        after: The end of the page before; empty for the first one.
        fingerprint: Names the filter and the order; a token is valid for these only.
    """

    debate_filter: DebateFilter
    after: str
    size: int
    fingerprint: str


def listing_of(request: orchestrator_pb2.ListDebatesRequest, formats: Formats) -> Listing:
    """Return the listing that a request asks for. Raise ParleyError: INVALID_ARGUMENT with every bad field."""
    violations = Violations()
    size = violations.page_size(request.page_size)
    violations.check(
        that=len(request.format) <= _MAX_FORMAT and "\0" not in request.format,
        field="format",
        otherwise=f"must be at most {_MAX_FORMAT} characters, without NUL",
    )
    order = " ".join(request.order_by.split())
    known = ", ".join(_ORDERS)
    violations.check(that=order in _OLDEST_FIRST, field="order_by", otherwise=f"must be one of: {known}")
    check_labels(violations, "labels", request.labels)
    wanted = DebateFilter(
        statuses=_statuses(violations, request),
        formats=_formats(request.format, formats),
        since=_time(violations, request, "created_from"),
        before=_time(violations, request, "created_before"),
        labels=label_texts(request.labels),
        oldest_first=_OLDEST_FIRST.get(order, False),
    )
    asked = _fingerprint(wanted, request.format)
    after = place_of(violations, request.page_token, _PLACE, asked)
    violations.refuse()
    return Listing(wanted, after, size, asked)


def _fingerprint(wanted: DebateFilter, format_name: str) -> str:
    """Return a name of the filter, which is the same at replicas that know other versions of a format."""
    named = replace(wanted, formats=(format_name,), statuses=tuple(sorted(wanted.statuses)))
    return hashlib.sha256(repr(astuple(named)).encode()).hexdigest()[:16]


def _statuses(violations: Violations, request: orchestrator_pb2.ListDebatesRequest) -> tuple[str, ...]:
    statuses = []
    for place, status in enumerate(request.statuses):
        try:
            statuses.append(status_from_proto(status))
        except ValueError:
            violations.add(f"statuses[{place}]", "is not a known state")
    return tuple(dict.fromkeys(statuses))  # a store limits how many it accepts


def _formats(name: str, formats: Formats) -> tuple[str, ...]:
    """Return a format with its version, in every version that is known here if none is given."""
    if not name:
        return ()
    return formats.ids(name) or (name,)


def _time(violations: Violations, request: orchestrator_pb2.ListDebatesRequest, field: str) -> str:
    """Return a time in the index's form; empty if it is not set."""
    time = read_time(violations, request, field)
    return time_text(time) if time else ""
