"""An author's answers to the issues that were raised: requested after the text, and parsed leniently."""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from parley.orchestrator.model.positions import POSITION_LINE
from parley.v1.critique_pb2 import (
    ISSUE_STATUS_NOT_ANSWERED,
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    ISSUE_STATUS_UNSPECIFIED,
    IssueAnswer,
    IssueStatus,
)

_HEADING = re.compile(
    r"^[ \t>]*(?:\d{1,2}[.)][ \t]*|[-*+][ \t]+)?(?:#{1,6}[ \t]*)?[*_]{0,2}(?:my[ \t]+)?(?:answers?|repl(?:y|ies)|responses?)[ \t]+to[ \t]+(?:the[ \t]+|each[ \t]+)?"
    r"(?:issues?|critiques?|critics?|criticisms?)[ \t]*:?[*_]{0,2}[ \t]*:?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]")
_NAME = r"[*_`\[(]*(?:(?i:agent|issue)[ \t]+)*(?P<{0}letter>[A-Za-z]{{1,2}})(?:['\u2019]s)?(?:[ \t]?[.\-\u2013:][ \t]?|,?[ \t]+(?i:issue)[ \t]+|)(?P<{0}number>\d{{1,2}})[*_`\])]*"
_FIRST_NAME = re.compile(
    r"^[ \t>|]*(?:[-*+•][ \t]+|#{1,6}[ \t]+|\d{1,2}[.)][ \t]+)?" + _NAME.format("") + r"(?![\w.]*\d)"
)
_UNKNOWN = re.compile(_FIRST_NAME.pattern + r"[*_`\])]*[ \t]*[:|\u2013\u2014]")
"""A line that answers an issue which no critic raised."""
_NEXT_NAME = re.compile(r"[ \t]*(?:,|;|&|/|and)[ \t]*(?:and[ \t]+)?" + _NAME.format("") + r"(?![\w.]*\d)")
_BEFORE_STATUS = re.compile(r"^[\s|:*_\u2013\u2014\-.()\[\]]+")
_BEFORE_REASON = re.compile(r"^(?:[\s|:;,.*_\u2013\u2014\-()\[\]]|because\b)+", re.IGNORECASE)
_NOT = r"(?:not|n['\u2019]t|never|nothing|cannot)\b[ \t]+(?:(?:be|been|being|to|yet|is|was)[ \t]+)*"
_DONE = r"(?:taken[ \t]up|take[ \t]up|taken|adopted|accepted|changed|addressed|incorporated|included|applied|followed|added|fixed|done|agreed)"
_REJECTED = re.compile(
    rf"{_NOT}{_DONE}|\b(?:reject(?:ed|ing)?|declin(?:e|ed)|dismiss(?:ed)?|disagree[ds]?|refused?|unchanged|left[ \t]as|kept[ \t]as|no[ \t]change)\b",
    re.IGNORECASE,
)
_TAKEN_UP = re.compile(
    rf"\b(?:(?:partly|partially|fully|now)[ \t]+)?(?:{_DONE}|accept|adopt|agree|resolved|mended|corrected|clarified|revised|yes)\b",
    re.IGNORECASE,
)
_MAX_STATUS_OFFSET = 3
"""The characters at the beginning of an answer in which its status may be stated directly."""


class RaisedIssue(Struct, frozen=True):
    """An issue that an author is to answer. `name` is what it is called, such as `B.2`."""

    name: str
    critic: str
    number: int


def answer_instructions(names: Sequence[str]) -> str:
    """Return in which form an author answers issues, as a part of what it writes."""
    example = names[0]
    return (
        "The heading `## Answers to issues`, and under it an answer to every issue of this round by its number, a line each:"
        f" `{example}: taken up` or `{example}: not taken up, because …`. The issues: {', '.join(names)}. Keep these answers"
        " out of the proposal itself."
    )


def parse_answers(text: str, raised: Sequence[RaisedIssue]) -> tuple[str, list[IssueAnswer]]:
    """Return a text without its answers, and an answer for each issue that was raised.

    An issue that is not mentioned is not answered. If nothing else is left of the text, it stays whole.
    """
    known = {each.name.upper(): each for each in raised}
    proposal, section = _split_answers(text, known)
    classified: dict[str, tuple[IssueStatus.ValueType, str]] = {}
    for names, words in _entries(section, known):
        for name in names:
            classified.setdefault(name, _classify(words))
    answers = []
    for name, issue in known.items():
        status, reason = classified.get(name, (ISSUE_STATUS_NOT_ANSWERED, ""))
        answers.append(
            IssueAnswer(critic_agent_id=issue.critic, number=issue.number, status=status, reason=reason)
        )
    return (proposal if proposal.strip() else text), answers


def _split_answers(text: str, known: Mapping[str, RaisedIssue]) -> tuple[str, Sequence[str]]:
    """Return what is the proposal, and the lines in which issues are answered."""
    if not known:
        return text, ()
    lines = text.split("\n")
    headings = [place for place, line in enumerate(lines) if _HEADING.match(line)]
    if headings:
        begin, first = headings[-1], headings[-1] + 1
    else:
        begin = first = _trailing_answers(lines, known)
    end = next((place for place in range(first, len(lines)) if _is_end(lines[place], known)), len(lines))
    section = lines[first:end]
    # issues that no critic raised are no part of a proposal either
    if not any(_FIRST_NAME.match(line) for line in section):
        return text, ()
    rest = "\n".join(lines[end:]).strip()
    kept = "\n".join(lines[:begin]).rstrip().removesuffix("---").rstrip()
    return (f"{kept}\n\n{rest}" if rest else kept), section


def _trailing_answers(lines: Sequence[str], known: Mapping[str, RaisedIssue]) -> int:
    """Return the start of a block of answers at the end, without a heading; the end of the text if there is none."""
    begin = len(lines)
    for place in range(len(lines) - 1, -1, -1):
        if _names(lines[place], known):
            begin = place
        elif lines[place].strip() and not POSITION_LINE.match(lines[place]):
            break
    return begin


def _is_end(line: str, known: Mapping[str, RaisedIssue]) -> bool:
    if POSITION_LINE.match(line):
        return True
    return bool(_ANY_HEADING.match(line)) and not _names(line, known)


def _entries(section: Sequence[str], known: Mapping[str, RaisedIssue]) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the issues that are answered together, and their answer."""
    names: Sequence[str] = ()
    words: list[str] = []
    for line in section:
        found = _names(line, known)
        if found:
            if names:
                yield names, "\n".join(words)
            names, words = found, [line[_end_of_names(line) :]]
        elif _UNKNOWN.match(line):
            if names:
                yield names, "\n".join(words)
            names, words = (), []
        else:
            words.append(line)
    if names:
        yield names, "\n".join(words)


def _names(line: str, known: Mapping[str, RaisedIssue]) -> list[str]:
    """Return the issues that a line begins with; none unless all of them are known."""
    names = [f"{each['letter']}.{each['number']}".upper() for each in _matches(line)]
    return names if all(name in known for name in names) else []


def _end_of_names(line: str) -> int:
    return max(each.end() for each in _matches(line))


def _matches(line: str) -> Iterator[re.Match[str]]:
    match = _FIRST_NAME.match(line)
    while match:
        yield match
        match = _NEXT_NAME.match(line, match.end())


def _classify(words: str) -> tuple["IssueStatus.ValueType", str]:
    """Return the status, if the words show it, and the reason."""
    answer = _BEFORE_STATUS.sub("", words).rstrip(" \t\n|*_")
    if not answer:
        return ISSUE_STATUS_NOT_ANSWERED, ""
    rejected, taken_up = _REJECTED.search(answer), _TAKEN_UP.search(answer)
    # What comes first is the status; what follows may speak of either.
    for status, found in ((ISSUE_STATUS_REJECTED, rejected), (ISSUE_STATUS_TAKEN_UP, taken_up)):
        if found is not None and found.start() <= _MAX_STATUS_OFFSET:
            has_only_status = " " not in answer[: found.start()]
            return status, _BEFORE_REASON.sub("", answer[found.end() :]) if has_only_status else answer
    if rejected is not None:
        return ISSUE_STATUS_REJECTED, answer
    return (ISSUE_STATUS_TAKEN_UP if taken_up is not None else ISSUE_STATUS_UNSPECIFIED), answer
