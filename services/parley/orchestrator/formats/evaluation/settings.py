"""The settings of evaluations, and what is taken of the debate that is judged when an evaluation is accepted."""

from collections.abc import Iterator
from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings, Subject
from parley.runtime.contract_settings import with_defaults
from parley.runtime.errors import failed_precondition
from parley.runtime.validation import AGENT_ID, DEBATE_ID, Violations
from parley.v1.debate_pb2 import Debate, DebateSpec
from parley.v1.evaluation_pb2 import EvaluatedDebate, EvaluatedProposal, EvaluationSettings


def _check_rules(violations: Violations, settings: Message, _agents: int) -> None:
    assert isinstance(settings, EvaluationSettings)
    violations.check(
        that=bool(DEBATE_ID.fullmatch(settings.debate_id)),
        field="spec.evaluation.debate_id",
        otherwise=f"{settings.debate_id[:80]!r} is not a debate id",
    )
    violations.check(
        that=not settings.HasField("evaluated"),
        field="spec.evaluation.evaluated",
        otherwise="must not be set: it is read from the debate",
    )
    for agent in sorted(settings.timeouts):
        field = f"spec.evaluation.timeouts.{agent[:80]}"
        violations.check(that=bool(AGENT_ID.fullmatch(agent)), field=field, otherwise="is not an agent's id")


SETTINGS: Final = Settings(
    name="evaluation", defaults=with_defaults(EvaluationSettings()), check_rules=_check_rules
)


_MAX_SHOWN_QUESTION: Final = 160
_WORK: Final = frozenset({"proposal", "refinement"})
"""Activities whose last contribution is an agent's final proposal."""


def _apply(spec: DebateSpec, debate: Debate) -> None:
    """Set in a specification what its evaluators are to judge, and a question.

    Raise ParleyError if the debate is an evaluation itself.
    """
    if debate.spec.WhichOneof("format_settings") == "evaluation":
        message = f"debate {debate.id} is an evaluation itself; evaluate the debate that it judges"
        raise failed_precondition("DEBATE_IS_EVALUATION", message)
    spec.evaluation.evaluated.CopyFrom(
        EvaluatedDebate(
            question=debate.spec.question,
            clarifications="\n".join(_clarifications(debate)),
            requirements=_requirements(debate),
            answer=debate.answer,
            proposals=_final_proposals(debate) if spec.evaluation.include_proposals else (),
        )
    )
    spec.question = _title(debate)
    if not spec.context:
        spec.context.extend(debate.spec.context)
    if not spec.environment:
        spec.environment.update(debate.spec.environment)


def _title(debate: Debate) -> str:
    question = " ".join(debate.spec.question.split())
    shown = (
        question if len(question) <= _MAX_SHOWN_QUESTION else f"{question[:_MAX_SHOWN_QUESTION].rstrip()}…"
    )
    return f"Evaluation of {debate.id}: {shown}"


def _requirements(debate: Debate) -> list[str]:
    return [
        f"R{number}{' (a must)' if each.hard else ''}: {' '.join(each.text.split())}"
        for number, each in enumerate(debate.requirements, start=1)
    ]


def _clarifications(debate: Debate) -> Iterator[str]:
    """Yield each question that was answered with its answer, as items of a list."""
    for clarification in debate.clarifications:
        if not clarification.HasField("answer"):
            continue
        answers = {each.question_id: each.text for each in clarification.answer.answers}
        for question in clarification.questions.questions:
            if question.id in answers:
                yield _item(question.text, answers[question.id])
        if clarification.answer.text.strip():
            asked = (each.text for each in clarification.questions.questions if each.id not in answers)
            yield _item(" ".join(asked), clarification.answer.text)


def _item(question: str, answer: str) -> str:
    question_text, answer_text = " ".join(question.split()), "\n  ".join(answer.strip().splitlines())
    return f"- {question_text}\n  {answer_text}" if question_text else f"- {answer_text}"


def _final_proposals(debate: Debate) -> list[EvaluatedProposal]:
    last = {
        each.work.agent_id: each.reply.text for each in debate.contributions if each.work.activity in _WORK
    }
    return [EvaluatedProposal(agent_id=agent, text=text) for agent, text in last.items()]


SUBJECT: Final = Subject(debate_id=lambda spec: spec.evaluation.debate_id, apply=_apply)
"""How an evaluation refers to the debate that it judges."""
