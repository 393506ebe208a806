"""How a debate goes on, as text that clients show as reasoning."""

from typing import Final

from google.protobuf.message import Message

from parley.runtime.debaters import Debaters
from parley.runtime.printable import printable, printable_line
from parley.runtime.work_words import NO_PERSON_ANSWERED, TRYING_AGAIN, limit_text, trickster_text, wait_text
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import (
    CheckpointExpired,
    CheckpointOpened,
    Event,
    LimitReached,
    Paused,
    PhaseStarted,
    Resumed,
    RoundAssessed,
    RoundsEnded,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TricksterChecked,
    WaitFinished,
    WaitStarted,
    Warned,
)

_BALLOT: Final = "vote"
"""The activity of a ballot, which is no answer though limits do not stop it."""
_MAX_TEXT: Final = 8000
"""Characters of a contribution; the report has all of it."""


class Progress:
    """The texts of one debate's events, in the order of its log."""

    def __init__(self) -> None:
        self._answers: set[str] = set()
        self._debaters = Debaters()

    def tell(self, event: Event) -> str:
        """Return paragraphs of Markdown on an event; empty for one that is of no interest. The answer itself is not among them."""
        kind = event.WhichOneof("payload")
        payload: Message | None = getattr(event, kind) if kind else None
        if isinstance(payload, StepStarted) and payload.is_answer and payload.work.activity != _BALLOT:
            self._answers.add(event.key)
            return f"{_name_work(payload.work)} begins\n\n"
        if event.key in self._answers and isinstance(payload, StepSucceeded):
            return ""
        self._debaters = self._debaters.after(event)
        text = self._debaters.names.put_in(_to_text(payload))
        return f"{text}\n\n" if text else ""


def _to_text(payload: Message | None) -> str:  # noqa: C901, PLR0911, PLR0912 (a case a kind)
    match payload:
        case RoundStarted(number=number, total=total):
            return f"### Round {number} of {total}"
        case PhaseStarted(activity=activity, title=title, expected=expected):
            return f"*{printable_line(title or activity)}: {expected} to come*"
        case StepSucceeded(work=work, reply=reply) if work.agent_id and payload.HasField("reply"):
            return f"**{_name_work(work)}**\n\n{_shorten(printable(reply.rendered or reply.text).strip())}"
        case StepFailed(work=work, reason=reason, message=message):
            return f"{_name_work(work)} failed: {reason}: {printable_line(message)}"
        case RoundAssessed(round=number, finding=finding) if finding:
            return f"*after round {number}: {printable_line(finding)}*"
        case RoundsEnded(explanation=explanation) if explanation:
            return f"*the rounds ended: {printable_line(explanation)}*"
        case TricksterChecked(finding=found):
            return f"*after round {found.round}: {trickster_text(found)}*"
        case LimitReached() as reached:
            return limit_text(reached)
        case WaitStarted() as started:
            return printable_line(wait_text(started))
        case WaitFinished():
            return TRYING_AGAIN
        case CheckpointOpened():
            return "waiting for a person: answer in the console or with `parley show`"
        case CheckpointExpired():
            return NO_PERSON_ANSWERED
        case Paused():
            return "paused by a person; it goes on once it is resumed"
        case Resumed():
            return "resumed"
        case Warned(message=message):
            return f"warning: {printable_line(message)}"
        case _:
            return ""


def _name_work(work: Work) -> str:
    target = f" of {work.target_agent_id}" if work.target_agent_id else ""
    return printable_line(f"{work.agent_id} · {work.activity}{target}")


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT].rstrip()} …"
