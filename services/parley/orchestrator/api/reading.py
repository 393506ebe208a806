"""A debate as people read it: whole or in parts. What is larger than a message may be is refused, and never sent."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from google.protobuf.message import Message
from msgspec import Struct

from parley.orchestrator.api.answer import answer_markdown, process_markdown
from parley.orchestrator.api.conversion import status_word
from parley.orchestrator.api.feedback import feedback_to_proto
from parley.orchestrator.api.page_tokens import page_token, place_of
from parley.orchestrator.engine.format import Format
from parley.orchestrator.log.feedback import Feedback
from parley.runtime.errors import failed_precondition
from parley.runtime.message_limits import MAX_MESSAGE_BYTES
from parley.runtime.validation import Violations
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_CANCELLED,
    DEBATE_STATUS_COMPLETED,
    Contribution,
    Debate,
    FailedContribution,
)
from parley.v1.orchestrator_pb2 import (
    DEBATE_VIEW_SUMMARY,
    DebateView,
    GetAnswerResponse,
    GetDebateRequest,
    GetDebateResponse,
    GetReportResponse,
    ListContributionsRequest,
    ListContributionsResponse,
    StreamReportResponse,
)

_PAGE_BYTES: Final = 2 * 1024 * 1024
_MAX_PAGE_BYTES: Final = 12 * 1024 * 1024
_PIECE_CHARACTERS: Final = 64 * 1024
_PLACE: Final = re.compile(r"contributions/[1-9]\d{0,17}", re.ASCII)


def wants_full_view(request: GetDebateRequest) -> bool:
    """Return whether the whole debate is asked for, and not its summary. Raises ParleyError for a view that is none."""
    violations = Violations()
    violations.check(
        that=request.view in DebateView.values(), field="view", otherwise="must be SUMMARY or FULL"
    )
    violations.refuse()
    return request.view != DEBATE_VIEW_SUMMARY


def check_size(message: Message, debate: str, otherwise: str) -> None:
    """Raise ParleyError if a message of a debate is too large; `otherwise` names another way to read it."""
    size = message.ByteSize()
    if size > MAX_MESSAGE_BYTES:
        text = f"{debate} takes {size:,} bytes, and one message at most {MAX_MESSAGE_BYTES:,}; {otherwise}"
        numbers = {"bytes": str(size), "max_bytes": str(MAX_MESSAGE_BYTES)}
        raise failed_precondition("DEBATE_TOO_LARGE", text, numbers)


def require_completed(debate: Debate, what: str) -> Debate:
    """Return a debate, if it is completed. Raises ParleyError for any other."""
    if debate.status != DEBATE_STATUS_COMPLETED:
        message = f"debate {debate.id} is {status_word(debate)}; only a completed one {what}"
        raise failed_precondition("DEBATE_NOT_COMPLETED", message)
    return debate


def debate_response(
    view: Callable[[], Debate], evaluation_ids: Sequence[str], feedback: Feedback | None
) -> GetDebateResponse:
    """Return what `view` shows of a debate, with what was said of it since. Raises ParleyError if that is too large for a message."""
    response = GetDebateResponse(debate=view())
    response.debate.evaluation_ids.extend(evaluation_ids)
    if feedback is not None:
        response.debate.feedback.CopyFrom(feedback_to_proto(feedback))
    check_size(response, response.debate.id, "ask for the view SUMMARY, GetAnswer and ListContributions")
    return response


def answer_of(debate: Debate, debate_format: Format | None) -> GetAnswerResponse:
    """Return a debate's answer. Raises ParleyError if there is none yet, or it is too large for a message."""
    if not debate.HasField("outcome"):
        why = (
            "was cancelled, and came to no answer"
            if debate.status == DEBATE_STATUS_CANCELLED
            else f"is {status_word(debate)}, and has come to no answer yet"
        )
        raise failed_precondition("NO_ANSWER", f"debate {debate.id} {why}; read its report instead")
    markdown = answer_markdown(debate, debate_format)
    process = process_markdown(debate, debate_format)
    answer = GetAnswerResponse(markdown=markdown, process=process, outcome=debate.outcome)
    for name in ("outcome", "process"):
        if answer.ByteSize() > MAX_MESSAGE_BYTES:
            answer.ClearField(name)
    check_size(answer, f"the answer of {debate.id}", "ask for StreamReport")
    return answer


class ContributionsPage(Struct, frozen=True):
    """Which page of contributions is asked for. `after` is the last sequence of the page before; 0 for the first."""

    after: int
    size: int
    max_bytes: int


def contributions_page(request: ListContributionsRequest) -> ContributionsPage:
    """Return the page that a request asks for. Raises ParleyError with every bad field."""
    violations = Violations()
    size = violations.page_size(request.page_size)
    place = place_of(violations, request.page_token, _PLACE, request.debate_id)
    violations.check(that=request.page_bytes >= 0, field="page_bytes", otherwise="must not be negative")
    violations.refuse()
    max_bytes = min(request.page_bytes or _PAGE_BYTES, _MAX_PAGE_BYTES)
    return ContributionsPage(int(place.rpartition("/")[2] or 0), size, max_bytes)


def contributions_response(page: ContributionsPage, debate: Debate) -> ListContributionsResponse:
    """Return a page of contributions and failures, in the order of the log."""
    made: list[Contribution | FailedContribution] = [*debate.contributions, *debate.failures]
    rest = sorted((each for each in made if each.sequence > page.after), key=lambda each: each.sequence)
    response = ListContributionsResponse()
    taken = size = 0
    for each in rest[: page.size]:
        item = ListContributionsResponse()
        if isinstance(each, Contribution):
            item.contributions.append(each)
        else:
            item.failures.append(each)
        size += item.ByteSize()  # lists are as large as their parts together
        if taken and size > page.max_bytes:
            break
        response.MergeFrom(item)
        taken += 1
    if taken < len(rest):
        response.next_page_token = page_token(f"contributions/{rest[taken - 1].sequence}", debate.id)
    return response


def report_response(debate_id: str, pieces: Iterable[str]) -> GetReportResponse:
    """Return a report in one message. Raises ParleyError if it is too large for one."""
    response = GetReportResponse(markdown="".join(pieces))
    check_size(response, f"the report of {debate_id}", "ask for StreamReport")
    return response


def report_responses(pieces: Iterable[str]) -> Iterator[StreamReportResponse]:
    """Yield the pieces of a report joined and cut to messages of one size; only the text of one message is kept."""
    text = ""
    for piece in pieces:
        text += piece
        while len(text) >= _PIECE_CHARACTERS:
            yield StreamReportResponse(markdown=text[:_PIECE_CHARACTERS])
            text = text[_PIECE_CHARACTERS:]
    if text:
        yield StreamReportResponse(markdown=text)
