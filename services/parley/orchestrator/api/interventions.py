"""Requests to intervene, checked once at the edge."""

from parley.orchestrator.api.requests import check_debate_id, check_request_id
from parley.orchestrator.engine.checkpoints import CLOSING_ACTS
from parley.runtime.validation import CHECKPOINT_KEY, Violations
from parley.v1 import debate_pb2, orchestrator_pb2
from parley.v1.event_pb2 import Intervened

_MAX_TEXT_BYTES = 8 * 1024
_MAX_REASON_CHARACTERS = 1000
_MAX_ANSWERS = 64
_MAX_QUESTION_ID_CHARACTERS = 128


def intervention_event(request: orchestrator_pb2.InterveneRequest, intervened_by: str = "") -> Intervened:
    """Return the event that a request asks for, and who sent it.

    Raise ParleyError: INVALID_ARGUMENT with every bad field.
    """
    violations, intervention = Violations(), request.intervention
    check_request_id(violations, request.request_id)
    check_debate_id(violations, request.debate_id)
    act = intervention.WhichOneof("act")
    if act is None:
        violations.add("intervention", "must be set")
    _check_checkpoint(violations, intervention.checkpoint, act)
    _check_texts(violations, intervention)
    violations.refuse()
    return Intervened(request_id=request.request_id, intervention=intervention, intervened_by=intervened_by)


def _check_checkpoint(violations: Violations, checkpoint: str, act: str | None) -> None:
    violations.check(
        that=not checkpoint or bool(CHECKPOINT_KEY.fullmatch(checkpoint)),
        field="intervention.checkpoint",
        otherwise="must be 1 to 256 characters: segments of a-z 0-9 . _ - with / between them",
    )
    *others, last = sorted(CLOSING_ACTS)
    violations.check(
        that=not checkpoint or act is None or act in CLOSING_ACTS,
        field="intervention.checkpoint",
        otherwise=f"goes with {', '.join(others)} and {last} alone",
    )


def _check_texts(violations: Violations, intervention: debate_pb2.Intervention) -> None:
    match intervention.WhichOneof("act"):
        case "guide":
            _check_text(violations, "guide.text", intervention.guide.text)
        case "answer":
            answer = intervention.answer
            _check_text(violations, "answer.text", answer.text, may_be_blank=bool(answer.answers))
            violations.check(
                that=len(answer.answers) <= _MAX_ANSWERS,
                field="intervention.answer.answers",
                otherwise=f"must be at most {_MAX_ANSWERS}",
            )
            seen: set[str] = set()
            for place, each in enumerate(answer.answers):
                field = f"answer.answers[{place}]"
                _check_question(violations, f"intervention.{field}.question_id", each.question_id, seen)
                _check_text(violations, f"{field}.text", each.text)
        case "approve":
            _check_text(violations, "approve.text", intervention.approve.text, may_be_blank=True)
        case "cancel":
            reason = intervention.cancel.reason
            violations.check(
                that=len(reason) <= _MAX_REASON_CHARACTERS and "\0" not in reason,
                field="intervention.cancel.reason",
                otherwise=f"must be at most {_MAX_REASON_CHARACTERS} characters, without NUL",
            )


def _check_question(violations: Violations, field: str, question: str, seen: set[str]) -> None:
    fine = bool(question.strip()) and len(question) <= _MAX_QUESTION_ID_CHARACTERS and "\0" not in question
    otherwise = f"must not be blank, be at most {_MAX_QUESTION_ID_CHARACTERS} characters, without NUL"
    violations.check(that=fine, field=field, otherwise=otherwise)
    if fine:
        violations.check_new(field, question, seen)


def _check_text(violations: Violations, field: str, text: str, *, may_be_blank: bool = False) -> None:
    fine = (may_be_blank or bool(text.strip())) and len(text.encode()) <= _MAX_TEXT_BYTES
    violations.check(
        that=fine and "\0" not in text,
        field=f"intervention.{field}",
        otherwise=f"must {'' if may_be_blank else 'not be blank, '}be at most 8 KiB, without NUL",
    )
