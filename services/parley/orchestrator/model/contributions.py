"""Contributions as later phases read them."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from parley.orchestrator.model.readiness import Readiness
from parley.v1.critique_pb2 import Critique, IssueAnswer

Letters = Callable[[str], str]
"""Return the letter by which an agent's peers know it."""


class Contribution(Struct, frozen=True, dict=True):
    """One agent's text in one phase of one round, as others read it.

    Attributes:
        target: Whose proposal a critique is about.
        critique: The content of a structured critique, as data.
        answers: A refinement's answers to the issues that were raised.
        readiness: Whether its author is ready for the vote, by its own statement.
        claims: Sentences of a proposal that need a citation and have none, if this is checked.
    """

    agent: str
    activity: str
    round: int
    text: str
    position: str = ""
    target: str = ""
    critique: Critique | None = None
    answers: tuple[IssueAnswer, ...] = ()
    readiness: Readiness = Readiness()
    claims: tuple[str, ...] = ()

    @property
    def computed(self) -> dict[str, Any]:
        """What was computed of it, which every later prompt needs again, by what it is. It is not compared, and no copy has it."""
        return self.__dict__

    @property
    def name(self) -> tuple[int, str, str, str]:
        """What names it among all contributions to the rounds: round, activity, agent, target."""
        return self.round, self.activity, self.agent, self.target

    def with_text(self, text: str) -> "Contribution":
        """Return the same with another text."""
        return replace(self, text=text)


def texts_of(made: Iterable[Contribution]) -> list[str]:
    """Return the complete texts of contributions, and the reasons in answers to issues, which are no part of these texts."""
    return [text for each in made for text in (each.text, *(answer.reason for answer in each.answers))]
