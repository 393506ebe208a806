"""Marks where phases start and finish, for those who follow a debate."""

from parley.orchestrator.debate import Debate
from parley.orchestrator.events import PhaseFinished, PhaseStarted

__all__ = ["PhaseMarks"]


class PhaseMarks:
    """The start and finish of one phase of a round: it starts with its first step and ends with its last."""

    def __init__(self, debate: Debate, number: int, name: str, expected: int) -> None:
        """Expect so many steps, each of which begins (or is left out) and ends."""
        self._debate = debate
        self._number = number
        self._name = name
        self._expected = expected
        self._begun = False
        self._ended = 0

    def begin(self) -> None:
        """Mark the start, the first time."""
        if not self._begun:
            self._begun = True
            payload = PhaseStarted(self._name, self._number, self._expected)
            self._debate.note(f"round/{self._number}/{self._name}/started", payload)

    def end(self) -> None:
        """Count one step as ended, with or without a result; mark the finish with the last."""
        self._ended += 1
        if self._begun and self._ended == self._expected:
            payload = PhaseFinished(self._name, self._number)
            self._debate.note(f"round/{self._number}/{self._name}/finished", payload)
