"""All issues of a debate, each with a number that is unique in it, and what became of them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from parley.orchestrator.model.critiques import SERIOUS, AnsweredIssue, no_answer
from parley.v1.critique_pb2 import Issue, IssueAnswer
from parley.v1.debate_pb2 import Contribution


class TrackedIssue(AnsweredIssue, frozen=True):
    """An issue with its author's answer, and its place in the debate.

    Attributes:
        number: Its number in the debate, from 1, in the order in which issues were raised.
        key: Of the critique's step.
        sequence: Of the event that recorded the critique.
    """

    number: int
    key: str
    sequence: int
    round: int
    critic: str
    target: str

    @property
    def is_serious(self) -> bool:
        """Whether its critic found it serious."""
        return self.severity is not None and self.severity >= SERIOUS


class IssueTable:
    """The issues of a debate, in the order in which they were raised."""

    def __init__(self, contributions: Sequence[Contribution]) -> None:
        """Find the issues of a debate and the answers to them, in its contributions in the order of the log."""
        answers = _list_answers(contributions)
        raised = (
            (made, work, issue)
            for made, work in ((made, made.work) for made in contributions)
            if work.target_agent_id
            for issue in made.reply.critique.issues
        )
        self.issues = tuple(
            TrackedIssue(
                issue,
                _find_answer(made, issue, answers),
                number,
                made.key,
                made.sequence,
                work.round,
                work.agent_id,
                work.target_agent_id,
            )
            for number, (made, work, issue) in enumerate(raised, start=1)
        )
        self._by_target: dict[tuple[str, int, str], list[TrackedIssue]] = {}
        self._by_critique: dict[tuple[str, int, str], list[TrackedIssue]] = {}
        for each in self.issues:
            self._by_target.setdefault((each.critic, each.issue.number, each.target), []).append(each)
            self._by_critique.setdefault((each.critic, each.issue.number, each.key), []).append(each)

    def of(self, made: Contribution, critic: str, number: int) -> TrackedIssue | None:
        """Return the issue that a contribution means by a critic and a number; None if there is none.

        It is one of its own critique, or else the last one before it that was raised against its author's work.
        """
        author = made.work.agent_id
        if made.work.target_agent_id and author == critic:
            return next(reversed(self._by_critique.get((critic, number, made.key), ())), None)
        raised = self._by_target.get((critic, number, author), ())
        before = bisect_left(raised, made.sequence, key=lambda each: each.sequence)
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


_Answers = dict[tuple[str, str, int], list[tuple[int, IssueAnswer]]]


def _list_answers(contributions: Sequence[Contribution]) -> _Answers:
    """Return the answers to issues with the sequences of their events, by author, critic and number."""
    answers: _Answers = {}
    for made in contributions:
        given = made.reply.issue_answers
        if not given:
            continue
        author, sequence = made.work.agent_id, made.sequence
        for answer in given:
            answers.setdefault((author, answer.critic_agent_id, answer.number), []).append((sequence, answer))
    return answers


def _find_answer(critique: Contribution, issue: Issue, answers: _Answers) -> IssueAnswer:
    """Return the first answer after a critique to its issue."""
    work = critique.work
    given = answers.get((work.target_agent_id, work.agent_id, issue.number), ())
    later = bisect_right(given, critique.sequence, key=lambda each: each[0])
    return given[later][1] if later < len(given) else no_answer(work.agent_id, issue.number)
