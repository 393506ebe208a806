"""Contributions as the prompts of version 1 tell them."""

from collections.abc import Iterable

from parley.orchestrator.model.contributions import Contribution, Letters

__all__ = ["length", "quoted"]


def length(contributions: Iterable[Contribution]) -> int:
    """Return the characters of all texts together."""
    return sum(len(each.text) for each in contributions)


def quoted(letter: Letters, contributions: Iterable[Contribution], reader: str = "") -> str:
    """Return contributions one after the other, each under a line that says what it is; the reader's own as `you`.

    `letter` returns the letter of an agent.
    """
    return "\n\n".join(f"[{_heading(letter, each, reader)}]\n{each.text}" for each in contributions)


def _heading(letter: Letters, contribution: Contribution, reader: str) -> str:
    made, target = contribution.agent, contribution.target
    by = "you" if made == reader else f"agent {letter(made)}"
    of = ""
    if target:
        of = " of your proposal" if target == reader else f" of agent {letter(target)}'s proposal"
    return f"round {contribution.round}, {contribution.activity}{of} by {by}"
