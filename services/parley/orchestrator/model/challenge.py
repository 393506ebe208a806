"""The prompt for agents whose agreement is hollow: what it lacks, by the measured features. Pure functions."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import astuple

from parley.orchestrator.model.hollowness import NEUTRAL, WEIGHTS, Features, terms_of

_OPENING: Final = (
    "You all agree, or say that you are ready. A check of your texts finds this agreement hollow: it stands on little that anybody"
    " could check. So it does not count yet, and this round is held to find out whether it holds."
)
_CLOSING: Final = (
    "As a critic, ask for the evidence of the claim on which most depends, and say what would"
    " show that it is wrong. As an author, give that evidence, or say that you have none and how sure you are then; look for the"
    " strongest case against your common answer, and change the answer if that case holds. Invent no numbers, sources or cases:"
    " a claim that is open and said to be open is worth more than one with made-up support."
)


_MIN_RATE: Final = 0.05
_QUIET: Final = 0.75
"""From this share of silent critiques on, their silence is named."""


def challenge_of(features: Features) -> str:
    """Return the challenge: what is worse than in the middle of the debates that the weights were fitted to is named."""
    lacking = list(_missing_evidence(features))
    listed = ["What is lacking:", *(f"- {each}" for each in lacking)] if lacking else []
    return "\n".join([_OPENING, *listed, _CLOSING])


def _missing_evidence(features: Features) -> Iterator[str]:
    names = ("figures", "specifics", "reasons", "reports", "vagueness", "echo")
    worse = {
        name
        for name, weight, term, neutral in zip(
            names, astuple(WEIGHTS), astuple(terms_of(features)), astuple(NEUTRAL), strict=False
        )
        if weight * (term - neutral) > 0
    }
    if "figures" in worse:
        yield f"figures: {_rate(features.figures)}. Which numbers were measured, or can be looked up, and where?"
    if "specifics" in worse:
        yield f"particulars: {_rate(features.specifics)}. Which systems, places, sources or cases are meant, by name?"
    if features.reasons is not None and "reasons" in worse:
        yield f"reasons: {_rate(features.reasons)}. Why is it so, when would it not hold, what speaks against it?"
    if "reports" in worse:
        yield "experience: hardly anything is told that has happened. Where was this done, or tested, and what came of it?"
    if features.vagueness is not None and "vagueness" in worse:
        yield f"plain words: {features.vagueness:.1f} words of 100 fit any proposal, or name nobody and no amount. What exactly is meant?"
    if "echo" in worse:
        yield f"words of your own: {features.echo:.0%} of the pairs of words stand in another agent's proposal, too."
    if features.silence is not None and features.silence > _QUIET:
        yield f"criticism: {features.silence:.0%} of the critiques of the round raised nothing that matters."


def _rate(found: float) -> str:
    return f"{found:.1f} in 100 words" if found >= _MIN_RATE else "none"
