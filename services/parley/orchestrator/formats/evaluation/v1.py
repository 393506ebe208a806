"""The evaluation, version 1: all evaluators judge at the same time, and none sees what another says."""

import asyncio
from collections.abc import Iterator

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats.evaluation.dimensions import MAX_SCORE, MIN_SCORE, scale
from parley.orchestrator.formats.evaluation.judgement import SHAPE, Judgement
from parley.orchestrator.formats.evaluation.outcome import answer_parts, outcome_of
from parley.orchestrator.formats.evaluation.settings import SETTINGS, SUBJECT
from parley.orchestrator.model.tasks import Activity, Task, system_part, user_part
from parley.orchestrator.phases.failing import debate_failure
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.prompting import SYSTEM_SECTION, environment_of, quotation
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Outcome
from parley.v1.evaluation_pb2 import EvaluationSettings, FailedEvaluator
from parley.v1.event_pb2 import StepFailed
from parley.v1.gateway_pb2 import PromptPart

EVALUATION = Activity("evaluation", "judges the answer", "Evaluations")
SECTION = "evaluate"
ROLE = "evaluator"
_PROPOSALS_PRIORITY, _DOCUMENTS_PRIORITY, _ANSWER_PRIORITY = 3, 2, 1
"""What is shortened first if a route's context is too small; question, clarifications and requirements never are."""
_QUOTED_PLACEHOLDERS = {
    "{problem}": "(the question, quoted above)",
    "{clarifications}": "(the clarifications, quoted above)",
    "{final_solution}": "(the answer, quoted above)",
}
"""What stands in place of what prompts of one's own may refer to: what others wrote is quoted, and nothing else."""
_TASK = (
    f"Give each dimension a score from {MIN_SCORE} to {MAX_SCORE} by the scale below, and the reason in a sentence or two."
    " Score each by itself. Where the material does not let you judge a dimension, or it does not apply, its score is null;"
    " do not guess. Then name strengths and weaknesses, at most five of each, the most important first."
)


async def _run(debate: Debate) -> Outcome:
    """Let every evaluator judge, and return what their scores come to."""
    evaluators = debate.agents
    marks = PhaseMarks(debate, 0, EVALUATION, len(evaluators))
    judged = await asyncio.gather(*(_evaluate(debate, each, marks) for each in evaluators))
    by_id = {agent.id: each for agent, each in zip(evaluators, judged, strict=True)}
    judgements = {agent: each for agent, each in by_id.items() if isinstance(each, Judgement)}
    failures = {agent: each for agent, each in by_id.items() if isinstance(each, StepFailed)}
    if not judgements:
        raise debate_failure({_key(agent): each for agent, each in failures.items()}, EVALUATION.name)
    failed = [
        FailedEvaluator(agent_id=agent, reason=each.reason, message=each.message)
        for agent, each in failures.items()
    ]
    for each in failed:
        message = f"evaluator {each.agent_id} gave no score: {each.reason}: {each.message}"
        debate.warn(_key(each.agent_id), message)
    return outcome_of(_settings(debate).debate_id, judgements, failed)


async def _evaluate(debate: Debate, agent: Agent, marks: PhaseMarks) -> Judgement | StepFailed:
    timeouts = _settings(debate).timeouts
    seconds = timeouts[agent.id].ToMilliseconds() / 1000 if agent.id in timeouts else None
    task = Task(
        EVALUATION.create_work(agent.id),
        tuple(_prompt(debate, agent)),
        max_output_tokens=debate.spec.max_output_tokens,
        seconds=seconds,
    )
    marks.mark_start()
    judgement = await debate.ask_structured(_key(agent.id), agent, task, SHAPE)
    marks.mark_end()
    return judgement


def _prompt(debate: Debate, agent: Agent) -> Iterator[PromptPart]:
    evaluated = _settings(debate).evaluated
    system_prompt = agent.system_prompt.text or debate.instructions(agent)[SYSTEM_SECTION]
    yield system_part(system_prompt)
    yield quotation("The question", evaluated.question, give=0)
    yield from environment_of(debate.spec)
    yield from debate.documents.parts(_DOCUMENTS_PRIORITY)
    if evaluated.clarifications:
        yield quotation("Clarifications", evaluated.clarifications, give=0)
    if evaluated.requirements:
        yield quotation("Requirements", "\n".join(evaluated.requirements), give=0)
    for number, each in enumerate(evaluated.proposals, start=1):
        yield quotation(f"Final proposal {number}", each.text, _PROPOSALS_PRIORITY)
    yield quotation("The answer that you judge", evaluated.answer, _ANSWER_PRIORITY)
    yield user_part(f"{_instructions(debate, agent)}\n\n{_TASK}\n\n{scale()}")


def _instructions(debate: Debate, agent: Agent) -> str:
    """Return how to judge: the words of the agent's role, or a prompt of its own."""
    if not agent.HasField("evaluation_prompt"):
        return debate.instructions(agent)[SECTION]
    text = agent.evaluation_prompt.text
    for placeholder, quoted in _QUOTED_PLACEHOLDERS.items():
        text = text.replace(placeholder, quoted)
    return text


def _key(agent: str) -> str:
    return f"evaluation/{agent}"


def _settings(debate: Debate) -> EvaluationSettings:
    assert isinstance(debate.settings, EvaluationSettings)
    return debate.settings


V1 = Format(
    name="evaluation",
    version=1,
    run=_run,
    settings=SETTINGS,
    debater_sections=frozenset({SYSTEM_SECTION, SECTION}),
    activities=(EVALUATION,),
    answer=answer_parts,
    subject=SUBJECT,
    fallback_role=ROLE,
    is_judged=False,
    is_recorded=False,
)
