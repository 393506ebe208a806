"""What the trickster and the observer of a debate found, as blocks of its report."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from parley.runtime.agent_names import Names
from parley.runtime.safe_markdown import inline, quote
from parley.v1.arena_pb2 import (
    TRICKSTER_VERDICT_CHALLENGED,
    TRICKSTER_VERDICT_NO_INTERVENTION_LEFT,
    TRICKSTER_VERDICT_NO_ROUND_LEFT,
    TRICKSTER_VERDICT_SOUND,
    TRICKSTER_VERDICT_UNSPECIFIED,
    TricksterFinding,
)
from parley.v1.rhetoric_pb2 import RhetoricalMark

_ENGLISH_FEATURES: Final[tuple[Literal["reasons", "reports", "vagueness"], ...]] = (
    "reasons",
    "reports",
    "vagueness",
)
_VERDICTS: Final = {
    TRICKSTER_VERDICT_UNSPECIFIED: "looked at",
    TRICKSTER_VERDICT_SOUND: "the agreement counts",
    TRICKSTER_VERDICT_CHALLENGED: "it was challenged, and the rounds went on",
    TRICKSTER_VERDICT_NO_INTERVENTION_LEFT: "the rounds ended all the same, since no challenge was left",
    TRICKSTER_VERDICT_NO_ROUND_LEFT: "the rounds ended all the same, since this was the last round of revision",
}


def describe_marks(marks: Iterable[RhetoricalMark]) -> str:
    """Return the observer's marks of one kind in a contribution."""
    return ", ".join(map(_mark, marks))


def trickster_blocks(finding: TricksterFinding, names: Names) -> Iterator[str]:
    """Yield the trickster's findings after a round, and its message to the agents."""
    measured = finding.features
    rates = [f"figures {measured.figures:.1f}", f"specifics {measured.specifics:.1f}"]
    rates += [
        f"{name} {getattr(measured, name):.1f}" for name in _ENGLISH_FEATURES if measured.HasField(name)
    ]
    shares = [f"echo {measured.echo:.0%}"]
    if measured.HasField("silence"):
        shares.append(f"silent critiques {measured.silence:.0%}")
    if finding.HasField("support"):
        shares.append(f"support {finding.support:.1f} of 10, by the judge")
    yield "#### Trickster"
    yield f"Hollow at {finding.hollow_percent:.0f} % (threshold {finding.threshold_percent} %): {_VERDICTS[finding.verdict]}."
    yield f"In 100 words: {' · '.join(rates)}; in all: {' · '.join(shares)}"
    if finding.challenge:
        yield quote(names.put_in(finding.challenge))


def _mark(mark: RhetoricalMark) -> str:
    """Return a mark of the observer, such as `concession (2): "Admittedly, it is slow."`."""
    times = f" ({mark.count})" if mark.count > 1 else ""
    return inline(f'{mark.name}{times}: "{mark.quote}"')
