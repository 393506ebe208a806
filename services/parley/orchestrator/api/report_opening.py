"""The beginning of a report, before the rounds: the debate's status, its question, and what people contributed."""

from collections.abc import Iterator
from typing import Final

from parley.orchestrator.api.answer import DEMONSTRATION
from parley.orchestrator.api.report_agents import agents_section, name_of
from parley.orchestrator.api.state import DebateState
from parley.orchestrator.engine.format import Format
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET, TOTAL_TIMEOUT
from parley.orchestrator.model.markdown import inline, list_item, moment, quote
from parley.orchestrator.model.times import time_of
from parley.v1.debate_pb2 import Intervention, Waiting

__all__ = ["opening_blocks"]

_ENDINGS: Final = {
    TOTAL_TIMEOUT: "its time limit was reached",
    TOKEN_BUDGET: "its budget of tokens was reached",
    COST_BUDGET: "its budget of money was reached",
}


def opening_blocks(state: DebateState, debate_format: Format | None) -> Iterator[str]:
    """Yield all sections before the agents' contributions."""
    yield _overview(state)
    yield "## Question"
    yield quote(state.spec.question)
    yield from _context(state)
    yield from agents_section(state, debate_format)
    yield from _interventions(state)
    yield from _clarifications(state)
    yield from _requirements(state)


def _overview(state: DebateState) -> str:
    lines = [f"Status: {state.status.lower()}"]
    if not state.has_ended and state.phase:
        lines.append(f"Phase: {inline(state.phase)}")
    if state.waiting:
        lines.append(inline(_describe_wait(state.waiting)))
    if state.ended_by:
        lines.append(f"Ended early: {_ENDINGS.get(state.ended_by, inline(state.ended_by))}")
    if state.rounds_ended.explanation:
        lines.append(f"Rounds ended: {inline(state.rounds_ended.explanation)}")
    elif state.rounds_ended_by:
        lines.append(f"Ended after round {state.current_round}: {inline(state.rounds_ended_by)}")
    if state.failure:
        failure = state.failure
        places = ", ".join(
            each for each in (failure.phase, failure.agent_id and f"agent {failure.agent_id}") if each
        )
        happened = f"{failure.reason}: {failure.message}"
        lines.append(f"Failed{' in ' if places else ''}{inline(places)}: {inline(happened)}")
    if state.is_demonstration:
        lines.append(f"Demonstration: {DEMONSTRATION}")
    lines.append(f"Format: {inline(state.spec.format)}")
    if state.max_rounds:
        lines.append(f"Rounds: {state.current_round} of {state.max_rounds}")
    lines.append(f"Accepted: {moment(state.created_at)}")
    lines.append(f"Last event: {moment(state.updated_at)}")
    return "\n".join(f"- {line}" for line in lines)


def _describe_wait(waiting: Waiting) -> str:
    until = moment(time_of(waiting.until))
    if waiting.checkpoint:
        return f"Waits for a person until {until}: {waiting.message}"
    return (
        f"Waits for {waiting.agent_id} in {waiting.phase} until {until}: {waiting.reason}: {waiting.message}"
    )


def _context(state: DebateState) -> Iterator[str]:
    documents = state.spec.context
    if documents:
        yield "## Context"
        yield "\n".join(f"- {inline(each.path)} ({len(each.text):,} characters)" for each in documents)
    if state.recalled:
        yield "## Past debates shown to the agents"
        yield "\n".join(f"- {inline(debate)}" for debate in state.recalled)


def _requirements(state: DebateState) -> Iterator[str]:
    if state.requirements:
        yield "## Requirements"
        yield "\n".join(
            list_item(f"R{number}{' (a must)' if each.hard else ''}: {each.text}")
            for number, each in enumerate(state.requirements, start=1)
        )


def _interventions(state: DebateState) -> Iterator[str]:
    if state.interventions:
        yield "## Interventions"
        yield "\n".join(list_item(_describe_intervention(each.intervention)) for each in state.interventions)


def _describe_intervention(intervention: Intervention) -> str:
    """Return what a person did, such as `guide: mind the cost`."""
    name = intervention.WhichOneof("act")
    if name is None:
        return "something that this version does not know"
    act = getattr(intervention, name)
    about = f" {inline(act.agent_id)}" if name in ("mute", "unmute") else ""
    texts = [getattr(act, field) for field in ("text", "reason") if field in act.DESCRIPTOR.fields_by_name]
    texts += [f"{each.question_id}: {each.text}" for each in intervention.answer.answers]
    if name == "approve":
        texts.insert(0, "yes" if act.approved else "no")
    text = "\n".join(each for each in texts if each)
    return f"{name.removesuffix('_debate')}{about}{': ' if text else ''}{text}"


def _clarifications(state: DebateState) -> Iterator[str]:
    if state.clarifications:
        yield "## Clarifications"
    for each in state.clarifications:
        answer = each.answer
        answers = {each.question_id: each.text for each in answer.answers}
        for asked in each.questions.questions:
            yield f"{name_of(state, asked.agent_id)} asked: {inline(asked.text)}"
            yield quote(answers[asked.id]) if asked.id in answers else "It was not answered by itself."
        if answer.text.strip():
            yield "To all questions, the person said:"
            yield quote(answer.text)
        elif not answers:
            yield "The person had the debate go on without an answer."
