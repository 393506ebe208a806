"""Moderated debates whose logs are kept."""

from collections.abc import Sequence

from parley.v1 import debate_pb2
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    AgentStability,
    AssessRequest,
    AssessResponse,
    Contradiction,
)
from parley.v1.debate_pb2 import ContextDocument, Intervention
from parley.v1.event_pb2 import DebateCreated
from parley.v1.memory_pb2 import PastDebate, RecallResponse
from parley.v1.moderated_pb2 import Perspective
from tests.support.kept_debates.kept_debate import KeptDebate, Person
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import (
    with_spec,
)
from tests.support.scripted_gateway import ScriptedGateway

_OWN = Perspective(
    name="Compliance First",
    priorities=["audit trails"],
    trade_offs="Will accept development slowdown for compliance",
)


def _steered_spec(version: str) -> DebateCreated:
    spec = moderated_spec(checkpoints=True, max_rounds=4, spec={"history_limit": 2})
    return with_spec(
        spec, format=version, context=(ContextDocument(path="docs/load.md", text="Ten logins a second.\n"),)
    )


def _steered_gateway() -> ScriptedGateway:
    """Let one be absent, one be asked, one leave the question twice, and one be left out of summaries."""
    script = ModeratedScript(
        debaters=4,
        questions=("How many users?",),
        decisions=("clarify", "go_on", "go_on", "stagnation"),
        agent="B",
        off_topic={1: "C", 2: "C"},
        summary="A.1, B.2 and C.1 are strong.",
        arguments={
            ("security-advocate", each): ["Sessions leak credentials widely. " * 4] for each in (1, 2)
        },
        answers={"simplicity-advocate": ["B.1", "Z.9"]},
        confidence="medium",
    )
    gateway = script.gateway()
    gateway.fail("round/2/argue/security-advocate")
    gateway.fail("round/2/evaluate/missing")
    gateway.assess = _assess_moderated
    gateway.past = (
        RecallResponse(
            debate=PastDebate(
                debate_id="deb-20260101-000000-aaaaaaaa", question="Is ice wet?", conclusion="No."
            )
        ),
    )
    return gateway


def _assess_moderated(request: AssessRequest) -> AssessResponse:
    one, other, *_ = sorted(each.agent_id for each in request.positions)
    return AssessResponse(
        verdict=CONVERGENCE_VERDICT_CONTINUING,
        agreement_percent=40,
        stability=[AgentStability(agent_id=one, kept=False)],
        novelty_percent=35 if request.previous else None,
        contradictions=[Contradiction(agent_id=one, other_agent_id=other)],
    )


async def _steer_moderated(person: Person) -> None:
    answers = [debate_pb2.QuestionAnswer(question_id="question-1", text="some thousand")]
    acts = {
        "analysis/1/questions": Intervention(answer=debate_pb2.Answer(answers=answers)),
        "round/1/checkpoint": Intervention(guide=debate_pb2.Guide(text="Mind the cost.")),
        "round/2/checkpoint": Intervention(continue_debate=debate_pb2.Continue()),
        "round/3/checkpoint": Intervention(continue_debate=debate_pb2.Continue()),
        "round/4/checkpoint": Intervention(continue_debate=debate_pb2.Continue()),
        "synthesis/approval": Intervention(approve=debate_pb2.Approve(text="Name the cost.")),
        "synthesis/2/approval": Intervention(approve=debate_pb2.Approve(approved=True)),
    }
    for place, (key, act) in enumerate(acts.items(), start=1):
        await person.sees("checkpoint_opened", place)
        act.checkpoint = key
        await person.does(key.replace("/", "-"), act)


def _unsteered_spec(version: str) -> DebateCreated:
    return with_spec(moderated_spec(custom_perspectives=[_OWN], token_budget_per_round=0), format=version)


def _unsteered_gateway() -> ScriptedGateway:
    gateway = ModeratedScript(debaters=2, decisions=("go_on", "go_on", "clear_winner"), agent="A").gateway()
    gateway.fail("round/1/evaluate")
    gateway.fail("round/1/rebut/compliance-first")
    return gateway


def moderated(version: str) -> Sequence[KeptDebate]:
    """Return the debates that are kept of a version of the moderated format.

    - `steered`: questions, checkpoints, guidance, a refusal, an absent and a muted debater, one who is asked, flags, figures of
      convergence, summaries that leave one out, past debates, a document;
    - `unsteered`: two debaters, one of the debate's own, a round without evaluation, and a clear winner.
    """
    return (
        KeptDebate(version, "steered", _steered_spec, _steered_gateway, _steer_moderated),
        KeptDebate(version, "unsteered", _unsteered_spec, _unsteered_gateway),
    )
