"""What the rules find that end the rounds. Pure functions of what agents said and hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from parley.orchestrator.model.readiness import Readiness
from parley.orchestrator.model.stopping import is_unanimous, posterior
from parley.v1.arena_pb2 import StoppingSettings
from parley.v1.debate_pb2 import DraftGroups

__all__ = [
    "CONFIDENCE_QUORUM",
    "Found",
    "asks_readiness",
    "found_confident",
    "found_probable",
    "found_ready",
    "found_stable",
    "found_unanimous",
]

CONFIDENCE_QUORUM: Final = 0.75
"""The share of the agents that must say how sure they are, for their average to count."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule has found after a round: whether it holds, and why, in words."""

    holds: bool
    finding: str


def asks_readiness(stopping: StoppingSettings) -> bool:
    """Return whether a rule goes by what agents say of themselves, so that they are asked for it."""
    return stopping.ready_signal or stopping.stable_positions or bool(stopping.confidence_threshold_percent)


def found_unanimous(drafts: DraftGroups) -> Found:
    """Return whether all first drafts take the same position beyond doubt."""
    groups = [str(place) for place, group in enumerate(drafts.groups) for _ in group.agent_ids]
    if not drafts.certain:
        return Found(holds=False, finding="whether the first drafts agree cannot be told")
    if not is_unanimous(groups):
        return Found(holds=False, finding=f"the first drafts take {len(drafts.groups)} positions")
    return Found(holds=True, finding=f"all {len(groups)} first drafts take the same position")


def found_probable(drafts: DraftGroups, weights: Mapping[str, float], stopping: StoppingSettings) -> Found:
    """Return whether what agents of such weights hold is probable enough, so that nobody else need be asked."""
    if not drafts.certain:
        return Found(holds=False, finding="which first drafts agree cannot be told")
    held = {agent: str(place) for place, group in enumerate(drafts.groups) for agent in group.agent_ids}
    place, probable = max(posterior(held, weights).items(), key=lambda each: (each[1], each[0]))
    percent, threshold = 100 * probable, stopping.sequential_percent
    return Found(
        holds=percent >= threshold,
        finding=(
            f"the position of {', '.join(drafts.groups[int(place)].agent_ids)} is {percent:.0f} % probable"
            f" (threshold {threshold} %)"
        ),
    )


def found_stable(shifted: float | None, stopping: StoppingSettings) -> Found:
    """Return whether who holds which position has hardly changed; `shifted` is 0 to 1, None where it cannot be told."""
    if shifted is None:
        return Found(holds=False, finding="whether the agents have changed their positions cannot be told")
    percent, threshold = 100 * shifted, stopping.stable_positions_percent
    return Found(
        holds=percent <= threshold,
        finding=f"who holds which position has changed by {percent:.0f} % since the round before (threshold {threshold} %)",
    )


def found_ready(said: Sequence[Readiness], agents: int, stopping: StoppingSettings) -> Found:
    """Return whether enough of so many agents are ready and sure enough; who says nothing is not."""
    least = stopping.ready_confidence_percent / 100
    ready = sum(
        each.ready is True and each.confidence is not None and each.confidence >= least for each in said
    )
    return Found(
        holds=agents > 0 and ready * 100 >= stopping.ready_share_percent * agents,
        finding=(
            f"{ready} of {agents} agents are ready for the vote and at least {stopping.ready_confidence_percent} % sure "
            f"(threshold {stopping.ready_share_percent} % of them)"
        ),
    )


def found_confident(said: Sequence[Readiness], agents: int, stopping: StoppingSettings) -> Found:
    """Return whether the agents are sure enough on average; it cannot hold where too few of so many say how sure they are."""
    sure = [each.confidence for each in said if each.confidence is not None]
    if not sure or len(sure) < CONFIDENCE_QUORUM * agents:
        return Found(holds=False, finding=f"only {len(sure)} of {agents} agents say how sure they are")
    average = 100 * sum(sure) / len(sure)
    threshold = stopping.confidence_threshold_percent
    return Found(
        holds=average >= threshold,
        finding=f"the agents are {average:.0f} % sure on average (threshold {threshold} %)",
    )
