"""The names by which people read of agents. Among themselves agents go by letters; whatever people read has names instead."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateSpec

_ONE: Final = r"[A-Z]{1,2}(?![\w.]*\d)\b"
_BETWEEN: Final = r"(?:[ \t]*,[ \t]*(?:(?:and|or|&)[ \t]+)?|[ \t]+(?:and|or|&)[ \t]+)"
_AGENTS: Final = re.compile(rf"gent(?=[s \t])(?<=\b[Aa]gent)s?[ \t]+({_ONE}(?:{_BETWEEN}{_ONE})*)")
"""`agent B`, `agents A, B and C`, without the first letter: what begins with a fixed text is found much faster."""
_LETTER: Final = re.compile(r"\b[A-Z]{1,2}\b")
_ISSUE: Final = re.compile(
    r"(?=[A-Zaip])(?:\b(?:([IiPp])(?:ssues?|oints?)|[Aa]gent)[ \t]+)?(?<![\w.\-/])([A-Z]{1,2})\.(\d{1,2})(?![\w\-/]|\.\d)"
)
"""`B.2`, also after the word *issue* or *point*. What it begins with is looked at first: most characters are none of these."""
_MAY_NAME_ISSUE: Final = re.compile(r"\.(?<=[A-Z]\.)\d")
"""Found much faster, since the dot comes first, and seldom."""
_BEFORE_DOT: Final = 24
"""Characters before the dot of an issue in which its letters are, and the word before them."""
_AFTER_DOT: Final = 6
"""From the dot on: two digits, and what must not follow them."""

NameIssue = Callable[[str, int], str]
"""Return what people call the issue of a critic with this number in its critique; empty if there is none."""


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list in a sentence, such as `a, b and c`."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def letter_of(agents: Sequence[str], agent: str) -> str:
    """Return the letter by which an agent's peers know it: names invite herd behaviour."""
    place = agents.index(agent)
    return chr(ord("A") + place % 26) * (1 + place // 26)


def name_numbered(spec: DebateSpec) -> str:
    """Return what agents number in what they write: those of a moderated debate make points, and raise no issues."""
    return "point" if spec.HasField("moderated") else "issue"


class Names:
    """The names of a debate's agents. Agents whose names are the same have their ids behind them.

    An agent goes by its id if its name reads as the letter of another one, such as `Agent A`.
    """

    def __init__(self, participants: Sequence[Agent], judge: Agent, numbered: str = "issue") -> None:
        """Take the agents that debate, in the order of their letters, and the judge; `numbered`: what `B.2` is one of."""
        self._numbered = numbered
        agents = {each.id: " ".join((each.name or each.id).split()) for each in (judge, *participants)}
        count = Counter(each.casefold() for each in agents.values())
        self._names = {
            agent: name if count[name.casefold()] == 1 or name == agent else f"{name} ({agent})"
            for agent, name in agents.items()
        }
        ids = [each.id for each in participants]
        self._agents = {letter_of(ids, each): each for each in ids}
        mistaken = [agent for agent, name in self._names.items() if self.put_in(name) != name]
        self._names |= {agent: agent for agent in mistaken}

    def of(self, agent: str) -> str:
        """Return the name of an agent; its id if it is not known."""
        return self._names.get(agent, agent)

    def of_judge(self, agent: str) -> str:
        """Return the name of an agent as that of a judge, such as `the judge Ada`."""
        name = self.of(agent)
        return "the judge" if name.casefold() in {"judge", "the judge"} else f"the judge {name}"

    def list_of(self, agents: Iterable[str]) -> str:
        """Return the names of agents as a list in a sentence."""
        return join_words([self.of(each) for each in agents])

    def put_in(self, text: str, name_issue: NameIssue | None = None) -> str:
        """Return a text of an agent with names in place of letters: `agent B` becomes its name, `B.2` its issue."""
        return self._put_in_issues(self._put_in_agents(text), name_issue)

    def _put_in_agents(self, text: str) -> str:
        pieces: list[str] = []
        end = 0
        while found := _AGENTS.search(text, end):
            begin = found.start() - 1
            names, last = self._name_agents(found[1])
            pieces += text[end:begin], names or text[begin : found.end()]
            end = found.end()
            if last and text.startswith(f" ({last})", end):  # as in `agent B (Security Advocate)`
                end += len(f" ({last})")
        return "".join([*pieces, text[end:]]) if pieces else text

    def _put_in_issues(self, text: str, name_issue: NameIssue | None) -> str:
        pieces: list[str] = []
        end = seen = 0
        while hint := _MAY_NAME_ISSUE.search(text, seen):
            dot, seen = hint.span()
            found = _ISSUE.search(text, max(dot - _BEFORE_DOT, end), dot + _AFTER_DOT)
            if found and found.start() < dot:  # of a later one, not all may be within these bounds
                pieces += text[end : found.start()], self._name_issue(name_issue, found)
                end = found.end()
        return "".join([*pieces, text[end:]]) if pieces else text

    def _name_agents(self, letters: str) -> tuple[str, str]:
        """Return the names of `B`, or of `A, B and C`, and the last of them; both empty if the first is no agent."""
        if (only := self._agents.get(letters)) is not None:
            return self._names[only], self._names[only]
        single = _LETTER.findall(letters)
        if single[0] not in self._agents:
            return "", ""
        names = _LETTER.sub(lambda each: self.of(self._agents.get(each[0], each[0])), letters)
        return names, self.of(self._agents.get(single[-1], single[-1]))

    def _name_issue(self, name_issue: NameIssue | None, found: re.Match[str]) -> str:
        word, letter, number = found.groups()
        critic = self._agents.get(letter)
        if critic is None:
            return found[0]
        name = name_issue(critic, int(number)) if name_issue is not None else ""
        name = name or f"{self._numbered} {number} of {self.of(critic)}"
        return f"{name[0].upper()}{name[1:]}" if word in {"I", "P"} else name
