"""Debates that ended in agreement, well argued or hollow, as people labelled them: tests/data/consensus."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.phases.critique import CRITIQUE
from parley.orchestrator.phases.refine import REFINEMENT
from parley.v1.critique_pb2 import Critique, Issue

_FOLDER: Final = Path(__file__).parents[1] / "data" / "consensus"
_ROUND: Final = 3
_RIGHT: Final = 0.75
_SUPPORT: Final = {True: (1, 4), False: (6, 9)}
"""What a judge says, where it is right, of hollow and of well-argued debates: from, to."""
_UNSURE: Final = (4, 6)


@dataclass(frozen=True, slots=True)
class LabelledDebate:
    """The last texts of a debate and the critiques of its last round.

    Attributes:
        hollow: Whether its agreement is hollow.
    """

    topic: str
    question: str
    hollow: bool
    work: Sequence[Contribution]
    critiques: Sequence[Contribution]


def read_fitted_debates() -> list[LabelledDebate]:
    """Return the debates that the trickster's weights are fitted to."""
    return _read("fit")


def read_held_out_debates() -> list[LabelledDebate]:
    """Return the debates on other topics."""
    return _read("held-out")


def support_told(debates: Sequence[LabelledDebate]) -> list[float]:
    """Return what a judge of dice says of the support: it is right about three debates of four, and unsure about the rest."""
    dice = random.Random(0)
    return [dice.uniform(*(_SUPPORT[each.hollow] if dice.random() < _RIGHT else _UNSURE)) for each in debates]


def _read(name: str) -> list[LabelledDebate]:
    topics = yaml.load((_FOLDER / f"{name}.yaml").read_bytes(), yaml.CSafeLoader)
    return [
        LabelledDebate(
            topic["topic"],
            topic["question"],
            kind == "hollow",
            [
                Contribution("ABCD"[place], REFINEMENT.name, _ROUND, text)
                for place, text in enumerate(topic[kind]["texts"])
            ],
            [_critique(*each) for each in topic[kind]["critiques"]],
        )
        for topic in topics
        for kind in ("argued", "hollow")
    ]


def _critique(critic: str, target: str, agrees: bool, severity: int | None, text: str) -> Contribution:
    issues = [Issue(number=1, text=text, severity=severity)] if text else []
    said = Critique(agrees=agrees, issues=issues)
    return Contribution(critic, CRITIQUE.name, _ROUND, text, target=target, critique=said)
