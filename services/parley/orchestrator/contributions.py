"""Contributions as later phases read them."""

from collections.abc import Iterable
from dataclasses import dataclass

from parley.orchestrator.spec import DebateSpec

__all__ = ["Contribution", "label", "length", "quoted"]


@dataclass(frozen=True, slots=True)
class Contribution:
    """One agent's text in one phase of one round. `target` is whose proposal a critique is about."""

    agent: str
    activity: str
    round: int
    text: str
    position: str = ""
    target: str = ""


def label(spec: DebateSpec, agent: str) -> str:
    """Return the letter an agent goes by among its peers: names invite herd behaviour."""
    place = [each.id for each in spec.agents].index(agent)
    letter = chr(ord("A") + place % 26)
    return letter * (1 + place // 26)


def length(contributions: Iterable[Contribution]) -> int:
    """Return the characters of all texts together."""
    return sum(len(each.text) for each in contributions)


def quoted(spec: DebateSpec, contributions: Iterable[Contribution], reader: str = "") -> str:
    """Return contributions one after the other, each under a line that says what it is; the reader's own as `you`."""
    return "\n\n".join(f"[{_heading(spec, each, reader)}]\n{each.text}" for each in contributions)


def _heading(spec: DebateSpec, contribution: Contribution, reader: str) -> str:
    made, target = contribution.agent, contribution.target
    by = "you" if made == reader else f"agent {label(spec, made)}"
    of = ""
    if target:
        of = " of your proposal" if target == reader else f" of agent {label(spec, target)}'s proposal"
    return f"round {contribution.round}, {contribution.activity}{of} by {by}"
