"""Debates of every format whose models answer oddly: every kind of answer that a format asks for is among them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from parley.v1.arena_pb2 import (
    JUDGE_CHOICE_VOTED,
    TOPOLOGY_KIND_ROUND_ROBIN,
    StoppingSettings,
    Topology,
    TricksterSettings,
)
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONVERGED,
    CONVERGENCE_VERDICT_UNDETERMINED,
    AssessRequest,
    AssessResponse,
    UnsurePair,
)
from parley.v1.debate_pb2 import Clarifications
from parley.v1.evaluation_pb2 import EvaluatedDebate, EvaluationSettings
from parley.v1.event_pb2 import DebateCreated
from parley.v1.panel_pb2 import (
    SYNTHESIS_METHOD_MERGE,
    SYNTHESIS_METHOD_VOTING,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_QUALITY,
    Termination,
)
from tests.support.arena_debates import arena_settings, arena_spec
from tests.support.moderated_debates import moderated_spec
from tests.support.orchestration import agent, make_debate, with_spec

SHAPES: Final[Mapping[str, frozenset[str]]] = {
    "panel": frozenset(
        {
            "text",
            "requirements",
            "critique",
            "synthesis",
            "assessment",
            "grouping",
            "ballot",
            "stand",
            "questions",
        }
    ),
    "arena": frozenset(
        {
            "text",
            "requirements",
            "critique",
            "discussion",
            "support",
            "ballot",
            "judge_ballot",
            "judgement",
            "stand",
        }
    ),
    "moderated": frozenset({"analysis", "argument", "rebuttal", "evaluation", "passages", "decision"}),
    "evaluation": frozenset({"evaluation"}),
}
"""The shapes of answers that each format asks for; `text` is one without a shape."""

Create = Callable[[], DebateCreated]


def _evaluation() -> DebateCreated:
    evaluated = EvaluatedDebate(question="Is water wet?", answer="Yes.")
    settings = EvaluationSettings(debate_id="deb-20260101-000000-aaaaaaaa", evaluated=evaluated)
    return make_debate(
        format="evaluation@1", agents=(agent("ada", "evaluator"), agent("bo", "evaluator")), settings=settings
    )


def _arena(count: int = 3, **settings: Any) -> Create:
    return lambda: arena_spec(count, arena_settings(**{"revision_rounds": 1, **settings}))


def _panel(rounds: int = 1, **fields: Any) -> Create:
    return lambda: make_debate(2, rounds, **fields)


SPECS: Final[Mapping[str, Sequence[Create]]] = {
    "panel": (
        _panel(),
        _panel(2, carry_forward=True, clarifications=Clarifications(max_times=1)),
        _panel(2, termination=Termination(rule=TERMINATION_RULE_QUALITY, threshold_percent=90)),
        _panel(2, termination=Termination(rule=TERMINATION_RULE_CONVERGENCE)),
        _panel(synthesis_method=SYNTHESIS_METHOD_VOTING),
        _panel(synthesis_method=SYNTHESIS_METHOD_MERGE),
    ),
    "arena": (
        _arena(),
        _arena(2, judge_choice=JUDGE_CHOICE_VOTED, observer=True),
        _arena(
            revision_rounds=2,
            stopping=StoppingSettings(judge_termination=True, unanimous_drafts=False, convergence=False),
            topology=Topology(kind=TOPOLOGY_KIND_ROUND_ROBIN),
        ),
        _arena(
            2,
            revision_rounds=2,
            trickster=TricksterSettings(asks=True, max_interventions=1),
            stopping=StoppingSettings(unanimous_drafts=False),
        ),
    ),
    "moderated": (
        lambda: moderated_spec(2, max_rounds=1),
        lambda: moderated_spec(3, perspectives=3, max_rounds=2),
        lambda: moderated_spec(2, max_rounds=2, checkpoints=True),
    ),
    "evaluation": (_evaluation,),
}
"""Debates of each format, with settings that have it ask for every shape."""


def make_odd_debate(format_name: str, case: int) -> DebateCreated:
    """Return the first event of the debate of a case, whose question names it."""
    specs = SPECS[format_name]
    question = f"Is water wet in case {case} of the {format_name}?"
    created = with_spec(specs[case % len(specs)](), question=question)
    if created.spec.HasField("evaluation"):
        created.spec.evaluation.evaluated.question = question
    return created


def assess(request: AssessRequest) -> AssessResponse:
    """Return that positions agree; of a panel's, once it is settled that the first two do."""
    if request.settled or len(request.positions) != 2 or "panel" not in request.question:
        return AssessResponse(verdict=CONVERGENCE_VERDICT_CONVERGED, agreement_percent=95)
    one, other = sorted(each.agent_id for each in request.positions)[:2]
    pair = UnsurePair(agent_id=one, other_agent_id=other, same_probability=0.5)
    return AssessResponse(verdict=CONVERGENCE_VERDICT_UNDETERMINED, unsure=[pair])
