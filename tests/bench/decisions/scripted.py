"""The simulated agents as a model: the same minds, asked over HTTP with the prompts of a real debate.

What an agent reads it reads from its prompt. What it held at first and what dice fall for it follow from the question; what it held
last is remembered, as a vote does not tell an agent which of the proposals is its own.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.bench.decisions.agents import JUDGE_SEAT, OPTIONS, Panel, Question, Regime, revise
from tests.bench.decisions.debates import NAMES
from tests.support.grouping_answers import list_shown_positions
from tests.support.model_server import Call
from tests.support.model_server.wire import find_schema
from tests.support.model_server.words import sentence

JUDGE: Final = "judge"
_PROPOSAL_WORDS: Final = 370
"""About 2,500 characters."""
_REMARK_WORDS: Final = 120
_ANSWER: Final[Mapping[str, Any]] = {"implementation": "", "confidence": 80}
"""What the answer says besides its text; of everything else it has nothing."""

_NAME: Final = re.compile(r"Question ([\w-]+):")
_ROUND: Final = re.compile(r"This is round (\d+) of")
_STAND: Final = re.compile(r"^- agent \w: The metal is (\w+)\.$", re.MULTILINE)
_POSITION: Final = re.compile(r"^(\d+)\. The metal is (\w+)\.$", re.MULTILINE)
_QUOTED: Final = re.compile(
    r"^(?P<title>[^\n]*) \(quotation[^)\n]*\):\n<{3,}\n(?P<text>.*?)\n>{3,}$",
    re.MULTILINE | re.DOTALL,
)
_HELD: Final = re.compile(r"[Tt]he metal is (\w+)\.")
_LETTER: Final = re.compile(r"of agent (\w)")
_FIRST_REVISION: Final = 3


@dataclass(frozen=True, slots=True)
class Case:
    """A question that is debated, by a name that its text carries."""

    name: str
    panel: Panel
    regime: Regime
    question: Question


def put_question(case: Case) -> str:
    """Return a question as it is put to a debate."""
    return f"Question {case.name}: which metal is it, {', '.join(OPTIONS[:-1])} or {OPTIONS[-1]}? One of them is right."


class ScriptedAgents:
    """Answers every call of the debates of some cases; who is asked is told by the model's name."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        self._cases = cases
        self._held: dict[tuple[str, int], dict[int, str]] = {}

    def answer(self, call: Call) -> str | dict[str, Any]:  # noqa: PLR0911 (one for each thing that is asked)
        """Return what is said to a prompt."""
        case = self._cases[_find(_NAME, call.prompt)]
        schema = find_schema(call.body)
        agent = call.model.rpartition("-")[2]
        if schema is None:
            return (
                _filler(case, call, _PROPOSAL_WORDS) if agent == JUDGE else self._proposal(case, agent, call)
            )
        fields = schema["properties"]
        if "choice" in fields:
            return self._ballot(case, agent, call.prompt)
        if "issues" in fields:
            return self._critique(case, agent, call)
        if "ranking" in fields:
            return _judgement(case, call.prompt, chooses="position" in fields)
        if "can_live_with_it" in fields:
            return {"can_live_with_it": True, "objection": ""}
        if "groups" in fields:
            return _groups(call.prompt)
        if "requirements" in fields:
            return {"requirements": [], "kind": "closed"}
        if "description" in fields:
            return {each: _ANSWER.get(each, []) for each in fields} | {
                "description": _filler(case, call, _PROPOSAL_WORDS)
            }
        raise AssertionError(f"nobody is asked for {', '.join(fields)}")

    def _proposal(self, case: Case, agent: str, call: Call) -> str:
        seat = NAMES.index(agent)
        number = int(_find(_ROUND, call.prompt))
        held = self._held.setdefault((case.name, seat), {})
        held[number] = self._thought(case, seat, number, call.prompt)
        ready = (
            f"\nReady: no, {100 * case.question.confidences[seat]:.0f} %" if "`Ready: " in call.prompt else ""
        )
        return f"{_filler(case, call, _PROPOSAL_WORDS)}\nPosition: The metal is {held[number]}.{ready}"

    def _thought(self, case: Case, seat: int, number: int, prompt: str) -> str:
        """Return what an agent holds in a round, by what its prompt gives it to read."""
        question = case.question
        if number < _FIRST_REVISION:
            return question.first[seat]
        return revise(
            case.panel.kinds[seat],
            case.regime,
            question.right,
            self._before(case, seat, number),
            _STAND.findall(prompt),
            [
                held
                for title, held in _list_quoted(prompt)
                if title.startswith(("Critique by", "Present proposal"))
            ],
            question.dice[seat][number - _FIRST_REVISION],
        )

    def _before(self, case: Case, seat: int, number: int) -> str:
        held = self._held[case.name, seat]
        return held[max(each for each in held if each < number)]

    def _critique(self, case: Case, agent: str, call: Call) -> dict[str, Any]:
        own = self._before(case, NAMES.index(agent), int(_find(_ROUND, call.prompt)))
        criticized = _HELD.findall(call.prompt)[-1]
        remarks = f"{_filler(case, call, _REMARK_WORDS)} I hold that the metal is {own}."
        issue = {"issue": "It names another metal than I do.", "severity": 5, "suggestion": f"Say {own}."}
        return {
            "issues": [issue] if own != criticized else [],
            "agrees": own == criticized,
            "remarks": remarks,
        }

    def _ballot(self, case: Case, agent: str, prompt: str) -> dict[str, Any]:
        seat = NAMES.index(agent)
        held = self._held[case.name, seat]
        own = held[max(held)]
        shown = [each for title, each in _list_quoted(prompt) if title.startswith("Proposal ")]
        confidence = round(case.question.confidences[seat], 6)
        return {"choice": shown.index(own) + 1, "confidence": confidence, "reason": f"It is {own}."}


def _judgement(case: Case, prompt: str, *, chooses: bool) -> dict[str, Any]:
    """Rank what agrees with the judge first, and choose it among the first positions."""
    own = case.question.first[JUDGE_SEAT]
    shown = [
        (_find(_LETTER, title), held)
        for title, held in _list_quoted(prompt)
        if title.startswith("Proposal of")
    ]
    ranking = [
        {"agent": letter, "reason": f"It is {held}.", "score": 8 if held == own else 4}
        for letter, held in sorted(shown, key=lambda each: each[1] != own)
    ]
    said = {"ranking": ranking, "sufficient": True, "missing": ""}
    if not chooses:
        return said
    numbers = {held: int(number) for number, held in _POSITION.findall(prompt)}
    confidence = round(case.question.confidences[JUDGE_SEAT], 6)
    choice = {"position": numbers.get(own, 0), "position_confidence": confidence}
    return said | choice | {"position_reason": f"It is {own}."}


def _groups(prompt: str) -> dict[str, list[Any]]:
    """Group the positions that are shown, by the metal that they name."""
    by_metal: dict[str, list[str]] = {}
    for name, text in list_shown_positions(prompt).items():
        by_metal.setdefault(_HELD.findall(text)[-1], []).append(name)
    return {"groups": list(by_metal.values()), "cannot_be_told": []}


def _list_quoted(prompt: str) -> Iterator[tuple[str, str]]:
    """Yield the title of each quotation that says which metal it is, and that metal."""
    for found in _QUOTED.finditer(prompt):
        held = _HELD.findall(found["text"])
        if held:
            yield found["title"], held[-1]


def _filler(case: Case, call: Call, words: int) -> str:
    return sentence(Random(f"{case.name}/{call.digest}"), words).capitalize() + "."


def _find(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    assert found is not None, f"no {pattern.pattern} in: {text[:200]}"
    return found[1]
