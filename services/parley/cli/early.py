"""Why the rounds of a debate ended before the last, in words."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from parley.client import Debate, DebateEvent, ParleyClient
from parley.client.events import (
    Concluded,
    DebateCreated,
    Intervened,
    Reply,
    RoundStarted,
    StepSucceeded,
    Work,
)

__all__ = ["RoundEnds", "why_early"]

_DEFAULT_PERCENT: Final = 90


@dataclass(frozen=True, slots=True)
class RoundEnds:
    """What was decided after rounds, as a fold of the events.

    Attributes:
        round: The latest round begun; 0 before the first.
        verdict: What the check after it came to, such as `the agents agree (94 %, threshold 90 %)`; empty before it.
        why: The same where it ends the rounds, else empty.
        threshold: Percent.
    """

    round: int = 0
    verdict: str = ""
    why: str = ""
    threshold: float = _DEFAULT_PERCENT

    def after(self, event: DebateEvent) -> "RoundEnds":
        """What holds after the next event."""
        match event.payload:
            case DebateCreated(spec=spec):
                threshold = _number(_part(spec, "termination").get("threshold_percent"))
                return replace(self, threshold=threshold or self.threshold)
            case RoundStarted(number=number):
                return replace(self, round=number, verdict="", why="")
            case Intervened(wish="end"):
                return replace(self, why="as was wished")
            case StepSucceeded(work=Work(activity="convergence")):
                return self._agreement(_part(_json(event.payload_json), "value"))
            case StepSucceeded(work=Work(activity="assessment"), reply=Reply(text=text)):
                return self._quality(_json(text))
            case _:
                return self

    def _agreement(self, value: Mapping[str, Any]) -> "RoundEnds":
        percent = f"{_number(value.get('agreement_percent')):.0f} %, threshold {self.threshold:.0f} %"
        match value.get("verdict"):
            case "CONVERGED":
                verdict = why = f"the agents agree ({percent})"
            case "STABLE_DISAGREEMENT":
                verdict = why = f"the agents disagree and no longer move (agreement {percent})"
            case _:
                verdict, why = f"the agents do not agree yet ({percent})", self.why
        return replace(self, verdict=verdict, why=why)

    def _quality(self, answer: Mapping[str, Any]) -> "RoundEnds":
        best = max((_number(each) for each in _part(answer, "scores").values()), default=0.0)
        verdict = f"the judge scores the best work {best:.0f} of 100 (threshold {self.threshold:.0f})"
        return replace(self, verdict=verdict, why=verdict if best >= self.threshold else self.why)


async def why_early(parley: ParleyClient, debate: Debate) -> str:
    """Why an answered debate did not hold all of its rounds; empty where it did, or a limit ended it."""
    if not debate.HasField("solution") or debate.ended_by or debate.current_round >= debate.spec.rounds:
        return ""
    ends = RoundEnds()
    async for event in parley.watch(debate.id):
        if isinstance(event, DebateEvent):
            ends = ends.after(event)
            if isinstance(event.payload, Concluded) or event.sequence >= debate.last_sequence:
                break
    return f"ended after round {ends.round}: {ends.why}" if ends.why else ""


def _json(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = found.get(name)
    return part if isinstance(part, dict) else {}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
