"""Events and text of a debate as lines for a person who follows it."""

from collections.abc import Iterator

from parley.cli.halts import answer_hint, ending_text, halt_text
from parley.cli.progress import working_text
from parley.cli.words import phase_words
from parley.client import DebateEvent, TextPiece
from parley.client.events import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Concluded,
    DebateFailed,
    Intervened,
    LimitReached,
    PhaseFinished,
    PhaseStarted,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    WaitFinished,
    WaitStarted,
    Warned,
    Work,
)

__all__ = ["EventLines"]

_WIDTH = 100


class EventLines:
    """Turns what a watch of a debate yields into lines; text is held back until a line of it is full."""

    def __init__(self, debate_id: str, server: str | None = None) -> None:
        self._debate_id = debate_id
        self._server = server
        self._texts: dict[str, _Text] = {}

    def of(self, seen: DebateEvent | TextPiece) -> Iterator[str]:
        """The lines that this adds."""
        if isinstance(seen, TextPiece):
            text = self._texts.setdefault(seen.key, _Text(seen.key))
            yield from text.add(seen)
            return
        if seen.kind in {"step_succeeded", "step_failed"} and seen.key in self._texts:
            yield from self._texts.pop(seen.key).rest()
        said = _said(seen)
        if said is not None:
            yield f"{seen.sequence} {said}"
        if isinstance(seen.payload, CheckpointOpened):
            yield f"    answer with: {answer_hint(self._debate_id, seen.key, self._server)}"


class _Text:
    def __init__(self, key: str) -> None:
        self._key = key
        self._try = (0, 0)
        self._length = 0
        self._held = ""

    def add(self, piece: TextPiece) -> Iterator[str]:
        present = (piece.attempt, piece.try_number)
        if present < self._try:
            return
        if present > self._try:
            if self._length:
                yield f"    {self._key} | (begins again)"
            self._try, self._length, self._held = present, 0, ""
        new = piece.text[max(self._length - piece.offset, 0) :]
        self._length = max(self._length, piece.offset + len(piece.text))
        self._held += new
        while "\n" in self._held or len(self._held) > _WIDTH:
            yield self._line()

    def rest(self) -> Iterator[str]:
        while self._held:
            yield self._line()

    def _line(self) -> str:
        line, newline, after = self._held.partition("\n")
        if len(line) > _WIDTH:
            cut = line.rfind(" ", 0, _WIDTH) + 1 or _WIDTH
            self._held = line[cut:] + newline + after
            line = line[:cut].rstrip()
        else:
            self._held = after
        return f"    {self._key} | {line}"


def _said(event: DebateEvent) -> str | None:  # noqa: C901, PLR0911 (a case a kind)
    match event.payload:
        case RoundStarted(number=number, total=total):
            return f"round {number}/{total}"
        case PhaseStarted(name=name, round=number, expected=expected):
            return f"round {number} {name}: {expected} to come"
        case PhaseFinished(name=name, round=number):
            return f"round {number} {name}: done"
        case StepStarted(work=work):
            return working_text(work)
        case StepSucceeded(work=work, reply=reply):
            return f"{_step(work)}: done" + (
                f" ({reply.latency_ms / 1000:.1f} s, {reply.usage.input_tokens + reply.usage.output_tokens:,} tokens)"
                if reply
                else ""
            )
        case StepFailed(work=work, reason=reason, message=message):
            return f"{_step(work)}: failed: {reason}: {message}"
        case Warned(message=message):
            return f"warning: {message}"
        case Intervened(wish=wish, text=text, agent=agent):
            return " ".join(part for part in ("asked to", wish, agent, text) if part)
        case (
            LimitReached()
            | WaitStarted()
            | WaitFinished()
            | CheckpointOpened()
            | CheckpointClosed()
            | CheckpointExpired()
        ):
            return halt_text(event)
        case DebateFailed(reason=reason, message=message):
            return f"failed: {reason}: {message}"
        case Concluded(status=status, ended_by=ended_by):
            return f"{status}, {ending_text(ended_by)}" if ended_by else status
        case _:
            return event.kind.replace("_", " ") if event.kind in {"paused", "resumed", "closed"} else None


def _step(work: Work) -> str:
    return " ".join(
        part
        for part in (work.agent, phase_words(work.activity), f"of {work.target}" if work.target else "")
        if part
    )
