"""Marks where phases start and finish, for those who follow a debate."""

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity
from parley.v1.event_pb2 import PhaseFinished, PhaseStarted


class PhaseMarks:
    """The start and finish of one phase of a round: it starts with its first step and ends with its last."""

    def __init__(self, debate: Debate, number: int, activity: Activity, expected: int) -> None:
        """Expect so many steps, each of which begins (or is left out) and ends."""
        self._debate = debate
        self._number = number
        self._activity = activity
        self._expected = expected
        self._is_started = False
        self._ended = 0

    def mark_start(self) -> None:
        """Mark the start, the first time."""
        if not self._is_started:
            self._is_started = True
            payload = PhaseStarted(
                activity=self._activity.name,
                title=self._activity.title,
                round=self._number,
                expected=self._expected,
            )
            self._debate.record_event(self._key("started"), payload)

    def mark_end(self) -> None:
        """Count one step as ended, with or without a result; mark the finish with the last."""
        self._ended += 1
        if self._is_started and self._ended == self._expected:
            payload = PhaseFinished(
                activity=self._activity.name, title=self._activity.title, round=self._number
            )
            self._debate.record_event(self._key("finished"), payload)

    def _key(self, what: str) -> str:
        return f"round/{self._number}/{self._activity.name}/{what}"
