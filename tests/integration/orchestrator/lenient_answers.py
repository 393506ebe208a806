"""How judges answer a schema in practice: twenty-odd deviations, and what each of them means."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

WHOLE: Final[Mapping[str, Any]] = {
    "description": "Keep one process.",
    "implementation": "Begin today.",
    "tradeoffs": ["speed for ease"],
    "recommendations": ["measure"],
    "unfulfilled_requirements": [{"text": "free", "hard": False}],
    "open_questions": ["when?"],
    "confidence": 80,
    "scores": {"A": 9, "B": 4},
}
TEXT: Final = json.dumps(WHOLE)


@dataclass(frozen=True)
class Deviation:
    """What a judge writes, every time that it is asked.

    Attributes:
        meant: Where the result differs from `WHOLE`; None for what is absent.
        calls: HTTP requests for the answer: 2 where it takes asking again.
        warning: A part of the debate's warning; empty for none.
    """

    said: str
    meant: Mapping[str, Any] = field(default_factory=dict)
    calls: int = 1
    warning: str = ""


def _with(**fields: Any) -> str:
    return json.dumps({**WHOLE, **fields})


def _without(*names: str) -> str:
    return json.dumps({name: value for name, value in WHOLE.items() if name not in names})


_PROSE: Final = "Keep one process.\n\nIt is the simplest thing, and I am 80 percent sure. {really}"
_NOTHING_ELSE: Final[Mapping[str, Any]] = {
    "implementation": "",
    "tradeoffs": [],
    "recommendations": [],
    "unfulfilled_requirements": [],
    "open_questions": [],
    "confidence": None,
    "scores": {},
}

DEVIATIONS: Final[Mapping[str, Deviation]] = {
    "nothing is wrong": Deviation(TEXT),
    "numbers as text": Deviation(_with(confidence="80", scores={"A": "9", "B": "4"})),
    "fractions for whole numbers": Deviation(_with(confidence=80.0, scores={"A": 8.6, "B": 4.2})),
    "confidence from 0 to 1": Deviation(_with(confidence=0.8)),
    "confidence as a percentage": Deviation(_with(confidence="80%")),
    "scores of ten": Deviation(_with(scores={"A": "9/10", "B": "4 out of 10"})),
    "scores with reasons": Deviation(_with(scores={"A": {"score": 9, "reason": "good"}, "B": {"score": 4}})),
    "scores as a list": Deviation(
        _with(scores=[{"agent": "A", "score": 9}, {"agent": "Agent B", "score": 4}])
    ),
    "scores by the agents' full letters": Deviation(_with(scores={"Agent A": 9, "agent b": 4})),
    "keys of its own": Deviation(_with(summary="x", notes={"a": [1]})),
    "keys in another style": Deviation(
        TEXT.replace("open_questions", "openQuestions").replace('"tradeoffs"', '"Trade-offs"')
    ),
    "lists left out": Deviation(
        _without("tradeoffs", "unfulfilled_requirements"), {"tradeoffs": [], "unfulfilled_requirements": []}
    ),
    "null for what is empty": Deviation(
        _with(implementation=None, open_questions=None), {"implementation": "", "open_questions": []}
    ),
    "a list for a text": Deviation(
        _with(implementation=["Begin today.", "Then go on."]),
        {"implementation": "- Begin today.\n- Then go on."},
    ),
    "a text for a list": Deviation(
        _with(tradeoffs="- speed for ease\n- time for money", open_questions="none"),
        {"tradeoffs": ["speed for ease", "time for money"], "open_questions": []},
    ),
    "objects for texts in a list": Deviation(
        _with(recommendations=[{"step": "measure"}]), {"recommendations": ["step: measure"]}
    ),
    "more items than may be": Deviation(
        _with(tradeoffs=list("abcdefghijklmn")), {"tradeoffs": list("abcdefghijkl")}
    ),
    "an object inside of another": Deviation(json.dumps({"synthesis": WHOLE})),
    "JSON inside of JSON": Deviation(_with(scores=json.dumps(WHOLE["scores"]))),
    "a fence": Deviation(f"Here it is:\n```json\n{TEXT}\n```\nI hope this helps {{really}}."),
    "reasoning before it": Deviation(f'<think>\nSo {{"description": "no"}}\n</think>\n\n{TEXT}'),
    "reasoning whose beginning stood in the prompt": Deviation(f"So {{one}}.\n</think>\n{TEXT}"),
    "trailing commas": Deviation(TEXT.replace("}}", "},}").replace('"measure"]', '"measure",]')),
    "single quotes": Deviation(repr(WHOLE)),
    "comments, and keys without quotes": Deviation(
        TEXT.replace('"confidence":', "// how sure I am\nconfidence:")
    ),
    "no end": Deviation(TEXT[:-2]),
    "line ends inside of a text": Deviation(
        TEXT.replace("Begin today.", "Begin\ntoday."), {"implementation": "Begin\ntoday."}
    ),
    "confidence in words": Deviation(
        _with(confidence="high"), {"confidence": None}, calls=2, warning="without confidence"
    ),
    "confidence out of range": Deviation(
        _with(confidence=800), {"confidence": None}, calls=2, warning="without confidence"
    ),
    "a score left out": Deviation(
        _with(scores={"A": 9}), {"scores": {"A": 9}}, calls=2, warning="without a score of agent B"
    ),
    "a score out of range": Deviation(
        _with(scores={"A": 9, "B": 40}), {"scores": {"A": 9}}, calls=2, warning="without a score of agent B"
    ),
    "no confidence and no scores": Deviation(
        _without("confidence", "scores"),
        {"confidence": None, "scores": {}},
        calls=2,
        warning="without confidence and a score of agents A, B",
    ),
    "requirements as texts": Deviation(_with(unfulfilled_requirements=["free"]), calls=2),
    "prose": Deviation(_PROSE, {"description": _PROSE, **_NOTHING_ELSE}, calls=2, warning="not of the form"),
    "an object of its own": Deviation(
        json.dumps({"answer": "Keep one.", "why": ["simple", "cheap"], "confidence": 80}),
        {"description": "answer: Keep one.\n\nwhy: - simple\n- cheap", **_NOTHING_ELSE},
        calls=2,
        warning="not of the form",
    ),
}
