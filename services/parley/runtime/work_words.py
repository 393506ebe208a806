"""Phases, steps, limits, waits and findings of a debate in a few words, as all that show progress name them."""

from datetime import UTC
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.v1.arena_pb2 import (
    TRICKSTER_VERDICT_CHALLENGED,
    TRICKSTER_VERDICT_NO_INTERVENTION_LEFT,
    TRICKSTER_VERDICT_NO_ROUND_LEFT,
    TRICKSTER_VERDICT_SOUND,
    TricksterFinding,
)
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import LimitReached, WaitStarted

AFTER_THE_ANSWER: Final = "after/"
"""What the keys of steps and events begin with that follow the answer."""
TRYING_AGAIN: Final = "trying again"
"""The end of a wait for a provider."""
NO_PERSON_ANSWERED: Final = "no answer came in time"
"""The end of a checkpoint that nobody answered."""
_ENDINGS: Final = {
    "total_timeout": "ended early by its time limit",
    "token_budget": "ended early by its budget of tokens",
    "cost_budget": "ended early by its budget of money",
}
_CONSEQUENCES: Final = {
    TRICKSTER_VERDICT_CHALLENGED: "; it is challenged, and the rounds go on",
    TRICKSTER_VERDICT_NO_INTERVENTION_LEFT: "; no challenge is left",
    TRICKSTER_VERDICT_NO_ROUND_LEFT: "; no round is left to challenge it in",
}


def round_text(number: int, total: int) -> str:
    """Return `round 1/3`; before the first, which has no number of its own, `before round 1/3`."""
    return f"round {number}/{total}" if number else f"before round 1/{total}"


def phase_text(name: str, number: int) -> str:
    """Return `round 1 proposal`; the name alone outside of rounds."""
    return f"round {number} {name}" if number else name


def work_text(work: Work) -> str:
    """Return `ada criticizes bo`."""
    return " ".join(
        part for part in (work.agent_id, work.doing or work.activity, work.target_agent_id) if part
    )


def utc_time_text(time: Timestamp) -> str:
    """Return the time of day in UTC, such as `14:05:09 UTC`."""
    return f"{time.ToDatetime(UTC):%H:%M:%S} UTC"


def ending_text(ended_by: str) -> str:
    """Return `ended early by its time limit`."""
    return _ENDINGS.get(ended_by, f"ended early: {ended_by}")


def limit_text(reached: LimitReached) -> str:
    """Return which limit was reached, and what follows from it."""
    if reached.limit == "round_timeout":
        return f"round {reached.round}: its time limit is over after {reached.used:.0f} s; it goes on without late agents"
    return f"{ending_text(reached.limit)}; only the answer is still asked for"


def wait_text(started: WaitStarted) -> str:
    """Return `waiting for ada in round 1 proposal until 14:05:09 UTC: PROVIDER_RATE_LIMIT: …`."""
    return (
        f"waiting for {started.agent_id} in {started.phase} until {utc_time_text(started.until)}: "
        f"{started.reason}: {started.message}"
    )


def probability_text(percent: float) -> str:
    """Return how sure a decision is: `58 %`, and never as if it was certain."""
    if percent > 99:
        return "over 99 %"
    return f"{percent:.0f} %" if percent >= 1 else "under 1 %"


def trickster_text(finding: TricksterFinding) -> str:
    """Return what the trickster found: `the agreement is hollow (87 %, threshold 60 %); no challenge is left`."""
    kind = "not hollow" if finding.verdict == TRICKSTER_VERDICT_SOUND else "hollow"
    share = f"{finding.hollow_percent:.0f} %, threshold {finding.threshold_percent} %"
    return f"the agreement is {kind} ({share}){_CONSEQUENCES.get(finding.verdict, '')}"
