"""What the answer of a judge of version 1 comes to."""

from collections.abc import Sequence

from parley.orchestrator.formats.panel.v1.synthesize import JudgeAnswer
from parley.v1.debate_pb2 import AgentScore, Outcome
from parley.v1.panel_pb2 import PanelOutcome, UnfulfilledRequirement

__all__ = ["outcome_of"]

_MAX_CONFIDENCE = 40
"""The most confidence an answer may have while a stated hard requirement is unmet."""


def outcome_of(answer: JudgeAnswer, judge: str, letters: Sequence[tuple[str, str]]) -> Outcome:
    """Return the outcome that a judge's answer makes; `letters` are the agents it was to score, each with its letter."""
    unmet = [
        UnfulfilledRequirement(text=each.text, hard=each.hard) for each in answer.unfulfilled_requirements
    ]
    cap = _MAX_CONFIDENCE if any(each.hard for each in unmet) else 100
    scores = [
        AgentScore(agent_id=agent, score=answer.scores[letter])
        for agent, letter in sorted(letters)
        if letter in answer.scores
    ]
    panel = PanelOutcome(
        implementation=answer.implementation,
        tradeoffs=answer.tradeoffs,
        recommendations=answer.recommendations,
        unfulfilled_requirements=unmet,
        open_questions=answer.open_questions,
        confidence=None if answer.confidence is None else min(answer.confidence, cap),
        synthesized_by=judge,
    )
    return Outcome(description=answer.description, scores=scores, panel=panel)
