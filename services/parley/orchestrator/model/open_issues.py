"""The issues that were raised and their answers: a judge reads them with the final proposals. Pure functions."""

from collections.abc import Iterable, Iterator, Sequence

from parley.orchestrator.model.contributions import Contribution, Letters
from parley.orchestrator.model.critiques import (
    STATUS_WORDS,
    AnsweredIssue,
    issue_name,
    no_answer,
    severity_text,
)
from parley.orchestrator.model.issue_answers import RaisedIssue
from parley.v1.critique_pb2 import IssueAnswer

_MAX_EARLIER = 5
"""The most issues of earlier rounds that are listed for an agent, the most severe first."""
_MAX_EARLIER_CHARACTERS = 300
_MAX_REMARKS_CHARACTERS = 500
_PLACES = {status: place for place, status in enumerate(STATUS_WORDS)}


class _NamedIssue(AnsweredIssue, frozen=True):
    """An issue, its answer, and what agents call it."""

    name: str
    round: int

    def sort_key(self) -> tuple[bool, int, int, str]:
        """Return its place among others: open ones first, then by severity."""
        severity = -1 if self.severity is None else self.severity
        return not self.is_open, -severity, _PLACES[self.answer.status], self.name


def list_raised_issues(letter: Letters, critiques: Iterable[Contribution]) -> list[RaisedIssue]:
    """Return the issues that critiques of one proposal raise."""
    return [
        RaisedIssue(issue_name(letter(made.agent), issue.number), made.agent, issue.number)
        for made in critiques
        if made.critique is not None
        for issue in made.critique.issues
    ]


def count_open_issues(made: Sequence[Contribution], severity: int) -> int:
    """Return how many issues of a round are open that have this severity, or more, or none that is known."""
    targets = {each.target for each in made if each.target}
    tracked = [issue for target in targets for issue in _track_issues(str, target, made)]
    return sum(each.is_open and (each.severity is None or each.severity >= severity) for each in tracked)


def answers_of(letter: Letters, made: Contribution) -> str:
    """Return an author's answers to the issues that were raised, a line each; empty if it was not asked."""
    return "\n".join(_answer_line(letter, each) for each in made.answers)


def _answer_line(letter: Letters, answer: IssueAnswer) -> str:
    reason = f": {_join_lines(answer.reason)}" if answer.reason else ""
    name = issue_name(letter(answer.critic_agent_id), answer.number)
    return f"- issue {name}, {STATUS_WORDS[answer.status]}{reason}"


def is_structured(made: Contribution) -> bool:
    """Return whether it is a critique with its content as data; one in prose has only its text."""
    return made.critique is not None and (bool(made.critique.issues) or made.critique.HasField("agrees"))


def issues_of(letter: Letters, rounds: Sequence[Sequence[Contribution]]) -> str:
    """Return, for each agent whose work was criticized, the issues of the last round with any, and its answers.

    Open ones come first, then the most severe. Of the rounds before, the most severe ones are listed that were not accepted.
    Empty if nothing was criticized. `rounds` are all contributions, round by round.
    """
    criticized = [number for number, each in enumerate(rounds) if any(made.target for made in each)]
    if not criticized:
        return ""
    until = rounds[: criticized[-1] + 1]
    targets = sorted({made.target for each in until for made in each if made.target}, key=letter)
    parts = ["\n".join(_lines_of(letter, target, until)) for target in targets]
    return "\n\n".join(each for each in parts if each)


def own_issues(letter: Letters, critic: str, target: str, exchange: Sequence[Contribution]) -> str:
    """Return what a critic held against an earlier text of an agent, and what that agent answered, a line each; empty for nothing.

    `exchange` are critiques with the revision that answered them.
    """
    own = [made for made in exchange if not made.target or (made.agent, made.target) == (critic, target)]
    tracked = sorted(_track_issues(letter, target, own), key=_NamedIssue.sort_key)
    return "\n".join(_earlier_line(each) for each in tracked[:_MAX_EARLIER])


def _lines_of(letter: Letters, target: str, rounds: Sequence[Sequence[Contribution]]) -> Iterator[str]:
    last = [made for made in rounds[-1] if made.target == target]
    standing = sorted(_track_issues(letter, target, rounds[-1]), key=_NamedIssue.sort_key)
    earlier = [
        each for before in rounds[:-1] for each in _track_issues(letter, target, before) if each.is_open
    ]
    lines = [_line(each) for each in standing]
    lines += [_prose_line(letter, made) for made in last if not is_structured(made)]
    lines += [_agreement(letter, made) for made in last if made.critique is not None]
    if earlier:
        lines.append("Raised in earlier rounds and not taken up then:")
        lines += [_earlier_line(each) for each in sorted(earlier, key=_NamedIssue.sort_key)[:_MAX_EARLIER]]
        more = len(earlier) - _MAX_EARLIER
        lines += [f"- and {more} less severe ones"] if more > 0 else []
    shown = [each for each in lines if each]
    if shown:
        number = max(made.round for made in rounds[-1])
        yield f"Issues raised in round {number} against the work of agent {letter(target)}:"
        yield from shown


def _track_issues(
    letter: Letters, target: str, contributions: Sequence[Contribution]
) -> Iterator[_NamedIssue]:
    answers = {
        (answer.critic_agent_id, answer.number): answer
        for made in contributions
        if made.agent == target and not made.target
        for answer in made.answers
    }
    for made in contributions:
        if made.target != target or made.critique is None:
            continue
        for issue in made.critique.issues:
            answer = answers.get((made.agent, issue.number)) or no_answer(made.agent, issue.number)
            yield _NamedIssue(issue, answer, issue_name(letter(made.agent), issue.number), made.round)


def _line(each: _NamedIssue) -> str:
    reason = f" Agent's answer: {_join_lines(each.answer.reason)}" if each.answer.reason else ""
    suggestion = f" Suggestion: {_join_lines(each.issue.suggestion)}" if each.issue.suggestion else ""
    status = STATUS_WORDS[each.answer.status]
    text = _join_lines(each.issue.text)
    return f"- issue {each.name}, {severity_text(each.severity)}, {status}: {text}{suggestion}{reason}"


def _earlier_line(each: _NamedIssue) -> str:
    text = _truncate(_join_lines(each.issue.text), _MAX_EARLIER_CHARACTERS)
    reason = _truncate(_join_lines(each.answer.reason), _MAX_EARLIER_CHARACTERS)
    answer = f" Agent's answer: {reason}" if reason else ""
    status = STATUS_WORDS[each.answer.status]
    return (
        f"- round {each.round}, issue {each.name}, {severity_text(each.severity)}, {status}: {text}{answer}"
    )


def _prose_line(letter: Letters, made: Contribution) -> str:
    return f"- the critique by agent {letter(made.agent)} names no single issues; it stands with the debate itself"


def _agreement(letter: Letters, made: Contribution) -> str:
    assert made.critique is not None
    if not made.critique.HasField("agrees"):
        return ""
    finds = "" if made.critique.issues else ", and named no issue"
    remarks = _truncate(_join_lines(made.critique.remarks), _MAX_REMARKS_CHARACTERS)
    agreed = "agreed" if made.critique.agrees else "did not agree"
    line = f"- agent {letter(made.agent)} {agreed} with the proposal before it was refined{finds}"
    return f"{line}{': ' if remarks else ''}{remarks}"


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
