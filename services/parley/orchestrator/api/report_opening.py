"""The beginning of a report, before the rounds: the debate's status, its question, and what people contributed."""

from collections.abc import Iterator
from typing import Final

from parley.orchestrator.api.answer import DEMONSTRATION
from parley.orchestrator.api.conversion import status_word
from parley.orchestrator.api.report_agents import agents_section, name_of
from parley.orchestrator.engine.format import Format
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET, TOTAL_TIMEOUT
from parley.orchestrator.model.times import time_of
from parley.runtime.safe_markdown import inline, list_item, moment, quote
from parley.v1.debate_pb2 import Debate, Intervention, Waiting

_ENDINGS: Final = {
    TOTAL_TIMEOUT: "its time limit was reached",
    TOKEN_BUDGET: "its budget of tokens was reached",
    COST_BUDGET: "its budget of money was reached",
}


def opening_blocks(debate: Debate, debate_format: Format | None) -> Iterator[str]:
    """Yield all sections before the agents' contributions."""
    yield _overview(debate)
    yield "## Question"
    yield quote(debate.spec.question)
    yield from _context(debate)
    yield from agents_section(debate, debate_format)
    yield from _interventions(debate)
    yield from _clarifications(debate)
    yield from _requirements(debate)


def _overview(debate: Debate) -> str:
    lines = [f"Status: {status_word(debate)}"]
    if debate.phase and not debate.HasField("end_time"):
        lines.append(f"Phase: {inline(debate.phase)}")
    if debate.HasField("waiting"):
        lines.append(inline(_describe_wait(debate.waiting)))
    if debate.ended_by:
        lines.append(f"Ended early: {_ENDINGS.get(debate.ended_by, inline(debate.ended_by))}")
    if debate.stop_explanation:
        lines.append(f"Rounds ended: {inline(debate.stop_explanation)}")
    elif debate.rounds_ended_by:
        lines.append(f"Ended after round {debate.current_round}: {inline(debate.rounds_ended_by)}")
    if debate.HasField("failure"):
        failure = debate.failure
        places = ", ".join(
            each for each in (failure.phase, failure.agent_id and f"agent {failure.agent_id}") if each
        )
        happened = f"{failure.reason}: {failure.message}"
        lines.append(f"Failed{' in ' if places else ''}{inline(places)}: {inline(happened)}")
    if debate.demonstration:
        lines.append(f"Demonstration: {DEMONSTRATION}")
    lines.append(f"Format: {inline(debate.spec.format)}")
    if debate.max_rounds:
        lines.append(f"Rounds: {debate.current_round} of {debate.max_rounds}")
    lines.append(f"Accepted: {moment(time_of(debate.create_time))}")
    lines.append(f"Last event: {moment(time_of(debate.update_time))}")
    return "\n".join(f"- {line}" for line in lines)


def _describe_wait(waiting: Waiting) -> str:
    until = moment(time_of(waiting.until))
    if waiting.checkpoint:
        return f"Waits for a person until {until}: {waiting.message}"
    return (
        f"Waits for {waiting.agent_id} in {waiting.phase} until {until}: {waiting.reason}: {waiting.message}"
    )


def _context(debate: Debate) -> Iterator[str]:
    documents = debate.spec.context
    if documents:
        yield "## Context"
        yield "\n".join(f"- {inline(each.path)} ({len(each.text):,} characters)" for each in documents)
    if debate.recalled_debate_ids:
        yield "## Past debates shown to the agents"
        yield "\n".join(f"- {inline(debate)}" for debate in debate.recalled_debate_ids)


def _requirements(debate: Debate) -> Iterator[str]:
    if debate.requirements:
        yield "## Requirements"
        yield "\n".join(
            list_item(f"R{number}{' (a must)' if each.hard else ''}: {each.text}")
            for number, each in enumerate(debate.requirements, start=1)
        )


def _interventions(debate: Debate) -> Iterator[str]:
    if debate.interventions:
        yield "## Interventions"
        yield "\n".join(list_item(_describe_intervention(each)) for each in debate.interventions)


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


def _clarifications(debate: Debate) -> Iterator[str]:
    if debate.clarifications:
        yield "## Clarifications"
    for each in debate.clarifications:
        answer = each.answer
        answers = {each.question_id: each.text for each in answer.answers}
        for asked in each.questions.questions:
            yield f"{name_of(debate, asked.agent_id)} asked: {inline(asked.text)}"
            yield quote(answers[asked.id]) if asked.id in answers else "It was not answered by itself."
        if answer.text.strip():
            yield "To all questions, the person said:"
            yield quote(answer.text)
        elif not answers:
            yield "The person had the debate go on without an answer."
