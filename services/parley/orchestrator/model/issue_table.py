"""All issues of a debate, each with a number that is unique in it, and what became of them."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from parley.orchestrator.model.critiques import SERIOUS, AnsweredIssue, no_answer
from parley.v1.critique_pb2 import IssueAnswer
from parley.v1.debate_pb2 import Contribution


class TrackedIssue(AnsweredIssue, frozen=True, gc=False):  # thousands, which are part of no cycle
    """An issue with its author's answer, and its place in the debate.

    Attributes:
        sequence: Of the event that recorded the critique.
        number: Its number in the debate, from 1, in the order in which issues were raised.
    """

    sequence: int
    round: int
    critic: str
    target: str
    number: int

    @property
    def is_serious(self) -> bool:
        """Whether its critic found it serious."""
        return self.severity is not None and self.severity >= SERIOUS


_SEQUENCE: Final = attrgetter("sequence")


class IssueTable:
    """The issues of a debate, in the order in which they were raised."""

    def __init__(self, contributions: Sequence[Contribution]) -> None:
        """Find the issues of a debate and the answers to them, in its contributions in the order of the log."""
        self.issues = _track_issues(contributions)
        self._by_target: dict[tuple[str, int, str], list[TrackedIssue]] = {}
        self._by_critique: dict[tuple[int, int], TrackedIssue] = {}
        for each in self.issues:
            number = each.issue.number
            self._by_target.setdefault((each.critic, number, each.target), []).append(each)
            self._by_critique[each.sequence, number] = each

    def of(self, made: Contribution, critic: str, number: int) -> TrackedIssue | None:
        """Return the issue that a contribution means by a critic and a number; None if there is none.

        It is one of its own critique, or else the last one before it that was raised against its author's work.
        """
        work = made.work
        author = work.agent_id
        if author == critic and work.target_agent_id:
            return self._by_critique.get((made.sequence, number))
        raised = self._by_target.get((critic, number, author), ())
        before = bisect_left(raised, made.sequence, key=_SEQUENCE)
        return raised[before - 1] if before else None

    def find(self, round_number: int, critic: str, target: str, number: int) -> TrackedIssue | None:
        """Return the last issue that a critic raised against an agent's work in a round or before it; None if there is none."""
        fitting = (
            each
            for each in reversed(self._by_target.get((critic, number, target), ()))
            if each.round <= round_number
        )
        return next(fitting, None)

    def list_open_serious(self) -> Iterator[TrackedIssue]:
        """Yield the serious issues that were not taken up, most severe first."""
        return iter(
            sorted(
                (each for each in self.issues if each.is_open and each.is_serious),
                key=lambda each: (-(each.severity or 0), each.number),
            )
        )


def _track_issues(contributions: Sequence[Contribution]) -> tuple[TrackedIssue, ...]:
    """Return the issues, each with the first answer after it: the last one that is seen from the end of the log."""
    tracked = []
    answers: dict[tuple[str, str, int], IssueAnswer] = {}
    for made in reversed(contributions):
        work, reply = made.work, made.reply
        author, target = work.agent_id, work.target_agent_id
        if target and (issues := reply.critique.issues):
            place = (made.sequence, work.round, author, target)
            for issue in reversed(issues):
                answer = answers.get((target, author, issue.number)) or no_answer(author, issue.number)
                tracked.append((issue, answer, *place))
        for answer in reversed(reply.issue_answers):
            answers[author, answer.critic_agent_id, answer.number] = answer
    tracked.reverse()
    return tuple(TrackedIssue(*each, number) for number, each in enumerate(tracked, start=1))
