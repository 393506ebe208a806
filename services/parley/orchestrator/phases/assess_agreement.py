"""Agreement after a round, as the convergence service tells it: whether another round is worth it."""

from collections.abc import Sequence
from typing import Final, TypeGuard

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.peers.services import truncate_text
from parley.orchestrator.phases.settle_agreement import settle_agreement
from parley.orchestrator.phases.stands import stands_of
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONVERGED,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    CONVERGENCE_VERDICT_UNDETERMINED,
    AssessRequest,
    AssessResponse,
    CriticVerdict,
)
from parley.v1.debate_pb2 import STOP_REASON_CONVERGED, STOP_REASON_STABLE_DISAGREEMENT
from parley.v1.event_pb2 import RoundAssessed, RoundsEnded, StepFailed, Warned

__all__ = [
    "CONVERGENCE",
    "agreement_ends_rounds",
    "assess_agreement",
    "assessment_key",
    "ended_by_agreement",
    "verdicts_of",
]

CONVERGENCE = Activity("convergence", "checking for agreement", title="check for agreement")
_ENDING: Final = {
    CONVERGENCE_VERDICT_CONVERGED: STOP_REASON_CONVERGED,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT: STOP_REASON_STABLE_DISAGREEMENT,
}
"""Verdicts that end the rounds."""


def verdicts_of(critiques: Sequence[Contribution]) -> list[CriticVerdict]:
    """Return what critics said of whether they agree; who did not say it has no verdict."""
    return [
        CriticVerdict(critic_agent_id=made.agent, target_agent_id=made.target, agrees=made.critique.agrees)
        for made in critiques
        if made.critique is not None and made.critique.HasField("agrees")
    ]


async def agreement_ends_rounds(
    debate: Debate,
    number: int,
    work: Sequence[Contribution],
    before: Sequence[Contribution],
    threshold: int,
    critiques: Sequence[Contribution] = (),
    asked: AgentSpec | None = None,
) -> RoundsEnded | None:
    """Return why the rounds end, since the agents agree or no longer move; None where they go on. The threshold is in percent.

    Where it cannot be told, the rounds go on, and the debate says so.
    """
    assessed = await assess_agreement(debate, number, work, before, threshold, critiques, asked)
    return None if assessed is None else ended_by_agreement(debate, number, assessed, threshold)


async def assess_agreement(
    debate: Debate,
    number: int,
    work: Sequence[Contribution],
    before: Sequence[Contribution],
    threshold: int,
    critiques: Sequence[Contribution] = (),
    asked: AgentSpec | None = None,
) -> AssessResponse | None:
    """Return what is said of a round's agreement; None, with a warning, where it cannot be told.

    What the critics of the round say of their agreement counts as much as the positions. `asked` is asked about positions of
    which it depends whether the agents agree and cannot be told; without one nobody is.
    """
    key = assessment_key(number)
    if len(work) < 2:
        _warn(debate, key, number, "fewer than two agents have a proposal")
        return None
    request = AssessRequest(
        question=truncate_text(debate.spec.question),
        positions=stands_of(work),
        previous=stands_of(before),
        critics=verdicts_of(critiques),
        agreement_threshold_percent=threshold,
    )
    assessed = await _assess(debate, key, number, request)
    if asked is not None and _is_open(assessed):
        settled = await settle_agreement(debate, number, asked, work, assessed.unsure, request.critics)
        if settled:
            request.settled.extend(settled)
            assessed = await _assess(debate, f"{key}/settled", number, request)
    if isinstance(assessed, StepFailed):
        _warn(debate, key, number, assessed.message)
        return None
    return assessed


def ended_by_agreement(
    debate: Debate, number: int, assessed: AssessResponse, threshold: int
) -> RoundsEnded | None:
    """Record what an assessment says of a round, and return why the rounds end, if they do."""
    reason, finding = _ENDING.get(assessed.verdict), _finding(assessed, threshold)
    found = RoundAssessed(round=number, ends_rounds=reason is not None, finding=finding)
    debate.record_event(f"{assessment_key(number)}/finding", found)
    return None if reason is None else RoundsEnded(reason=reason, explanation=finding)


def assessment_key(number: int) -> str:
    """Return the key of the step that assesses a round."""
    return f"round/{number}/convergence"


async def _assess(
    debate: Debate, key: str, number: int, request: AssessRequest
) -> AssessResponse | StepFailed:
    work, asked = CONVERGENCE.create_work(round_number=number), AssessRequest()
    asked.CopyFrom(request)
    return await debate.call_service(key, work, asked, lambda: debate.services.convergence.assess(asked))


def _is_open(assessed: AssessResponse | StepFailed) -> TypeGuard[AssessResponse]:
    return isinstance(assessed, AssessResponse) and assessed.verdict == CONVERGENCE_VERDICT_UNDETERMINED


def _finding(assessed: AssessResponse, threshold: int) -> str:
    percent = f"{assessed.agreement_percent:.0f} %, threshold {threshold} %{_critics(assessed)}"
    if assessed.verdict == CONVERGENCE_VERDICT_CONVERGED:
        return f"the agents agree ({percent})"
    if assessed.verdict == CONVERGENCE_VERDICT_STABLE_DISAGREEMENT:
        return f"the agents disagree and no longer move (agreement {percent})"
    if assessed.verdict == CONVERGENCE_VERDICT_UNDETERMINED:
        return f"whether the agents agree cannot be told ({percent})"
    return f"the agents do not agree yet ({percent})"


def _critics(assessed: AssessResponse) -> str:
    if not assessed.HasField("critic_agreement_percent"):
        return ""
    return f"; of the critics {assessed.critic_agreement_percent:.0f} % agree"


def _warn(debate: Debate, key: str, number: int, why: str) -> None:
    message = (
        f"agreement after round {number} could not be told, and the rounds go on: {' '.join(why.split())}"
    )
    debate.record_event(f"{key}/warning", Warned(message=message))
