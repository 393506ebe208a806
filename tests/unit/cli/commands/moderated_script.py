"""A moderated debate by script: after each round a person is asked, and then whether they approve the decision."""

import time
from typing import Final

from parley.runtime.errors import ParleyError, failed_precondition
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_PAUSED,
    DEBATE_STATUS_RUNNING,
    DEBATE_STATUS_WAITING,
    Approval,
    Direction,
    Intervention,
    Outcome,
)
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Closed,
    Concluded,
    Paused,
    RoundStarted,
)
from parley.v1.moderated_pb2 import ModeratedOutcome
from parley.v1.orchestrator_pb2 import GetDecisionResponse, InterveneRequest
from tests.support.scripted_orchestrator import ScriptedDebate, ScriptedOrchestrator

DOCUMENT: Final = "# Decision: Caching\n\n## Recommendation\n\nUse Redis.\n"
FILE_NAME: Final = "2026-01-02-caching.md"
APPROVAL: Final = "approval/1"
ROUNDS: Final = 3


def direction_key(number: int) -> str:
    return f"round/{number}/direction"


class Moderator:
    """Takes an orchestrator's debates through their rounds, as a person says."""

    def __init__(self, orchestrator: ScriptedOrchestrator) -> None:
        self._orchestrator = orchestrator
        self.seconds = 1800
        self.recommendation = "Use Redis."
        orchestrator.script = self._begin
        orchestrator.intervention_refusal = self._intervened
        orchestrator.decision = GetDecisionResponse(markdown=DOCUMENT, file_name=FILE_NAME)

    @property
    def debate(self) -> ScriptedDebate:
        assert self._orchestrator.debate is not None
        return self._orchestrator.debate

    @property
    def said(self) -> list[Intervention]:
        """What closed checkpoints, in order."""
        asked = [each.intervention for each in self._orchestrator.interventions]
        return [each for each in asked if each.checkpoint]

    def close(self, intervention: Intervention) -> None:
        """Somebody closes the open checkpoint."""
        key = self.debate.state.waiting.checkpoint
        self.debate.state.ClearField("waiting")
        self.debate.state.status = DEBATE_STATUS_RUNNING
        self.debate.add(CheckpointClosed(intervention=intervention), key=key)
        number = self.debate.state.current_round
        if key == APPROVAL:
            self._conclude(intervention.approve.approved)
        elif intervention.HasField("end") or number == ROUNDS:
            self._open(
                APPROVAL, CheckpointOpened(approval=Approval(text="Use **Redis**.\n\nNot approved: again."))
            )
        else:
            self._round(number + 1)

    def expire(self) -> None:
        """Nobody comes to the open checkpoint; it is opened again once the debate is resumed."""
        waiting = self.debate.state.waiting
        key, opened = waiting.checkpoint, CheckpointOpened(direction=waiting.direction)
        self._orchestrator.after_resume = lambda _: self._open(key, opened)
        self.debate.state.ClearField("waiting")
        self.debate.state.status = DEBATE_STATUS_PAUSED
        self.debate.add(CheckpointExpired(), key=key)
        self.debate.add(Paused())

    def _begin(self, debate: ScriptedDebate) -> None:
        if (
            debate.state.spec.moderated.HasField("checkpoints")
            and not debate.state.spec.moderated.checkpoints
        ):
            self._conclude(approved=False)
        else:
            self._round(1)

    def _round(self, number: int) -> None:
        self.debate.state.current_round = number
        self.debate.add(RoundStarted(number=number, total=ROUNDS))
        text = f"## Round {number} is complete\n\nThey differ on *cost*."
        self._open(direction_key(number), CheckpointOpened(direction=Direction(text=text)))

    def _open(self, key: str, opened: CheckpointOpened) -> None:
        opened.until.FromSeconds(int(time.time()) + self.seconds)
        waiting = self.debate.state.waiting
        waiting.checkpoint = key
        waiting.until.CopyFrom(opened.until)
        asked = opened.WhichOneof("request")
        assert asked is not None
        getattr(waiting, asked).CopyFrom(getattr(opened, asked))
        self.debate.state.status = DEBATE_STATUS_WAITING
        self.debate.add(opened, key=key)

    def _conclude(self, approved: bool) -> None:
        moderated = ModeratedOutcome(topic="Caching", approved=approved)
        outcome = Outcome(description=self.recommendation, moderated=moderated)
        self.debate.state.outcome.CopyFrom(outcome)
        self.debate.state.answer = f"{self.recommendation}\n"
        self.debate.state.status = DEBATE_STATUS_COMPLETED
        self.debate.add(Concluded(outcome=outcome))
        self.debate.close(Closed())

    def _intervened(self, request: InterveneRequest) -> ParleyError | None:
        intervention = request.intervention
        waits_at = self.debate.state.waiting.checkpoint
        if intervention.HasField("resume"):
            return failed_precondition("NOT_RESTING", "it runs") if waits_at else None
        if intervention.checkpoint and intervention.checkpoint != waits_at:
            return failed_precondition(
                "CHECKPOINT_CLOSED", f"checkpoint {intervention.checkpoint} is not open"
            )
        if waits_at and intervention.WhichOneof("act") in {"continue_debate", "guide", "end", "approve"}:
            self.close(intervention)
        return None
