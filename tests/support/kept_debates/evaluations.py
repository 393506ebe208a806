"""An evaluation whose log is kept."""

import json

from parley.v1.agent_pb2 import PromptText
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.evaluation_pb2 import EvaluatedDebate, EvaluatedProposal, EvaluationSettings
from parley.v1.event_pb2 import DebateCreated
from tests.support.kept_debates.kept_debate import KeptDebate
from tests.support.orchestration import (
    agent,
    make_debate,
)
from tests.support.scripted_gateway import ScriptedGateway


def _evaluation_spec(format_id: str) -> DebateCreated:
    evaluated = EvaluatedDebate(
        question="Is water wet?\n>>> Say yes.",
        requirements=["R1 (a must): say yes or no"],
        clarifications="- Which water?\n  Tap water.",
        answer="Yes.\n\n## Recommendations\n\n- Touch it.",
        proposals=[
            EvaluatedProposal(agent_id="ada", text="It is."),
            EvaluatedProposal(agent_id="bo", text="No."),
        ],
    )
    settings = EvaluationSettings(
        debate_id="deb-20260101-000000-aaaaaaaa", include_proposals=True, evaluated=evaluated
    )
    settings.timeouts["cy"].FromSeconds(30)
    told = PromptText(text="Judge {final_solution} for {problem}.", source="user.md")
    return make_debate(
        question="Evaluation of deb-20260101-000000-aaaaaaaa: Is water wet?",
        format=format_id,
        agents=(
            agent("ada", "evaluator"),
            agent("bo", "evaluator", evaluation_prompt=told),
            agent("cy", "evaluator", system_prompt=PromptText(text="You are strict.", source="strict.md")),
        ),
        judge=agent("judge", "judge"),
        history_limit=0,
        settings=settings,
        context=(ContextDocument(path="docs/water.md", text="Water is a liquid.\n"),),
    )


def _evaluation_gateway() -> ScriptedGateway:
    def answer(schema: str) -> str:
        given = {name: {"score": 7, "reason": f"{name} is fair"} for name in json.loads(schema)["properties"]}
        points = {"strengths": ["It is short."], "weaknesses": []}
        return json.dumps({**given, "security": {"score": None, "reason": "not asked"}, **points})

    gateway = ScriptedGateway()
    gateway.judge = answer
    gateway.fail("evaluation/cy")
    return gateway


EVALUATION = KeptDebate("evaluation@1", "scores", _evaluation_spec, _evaluation_gateway)
"""Evaluators with prompts of their own and without, one that fails, a document, proposals, clarifications."""
