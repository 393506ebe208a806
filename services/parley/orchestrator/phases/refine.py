"""Refinements: an agent revises its proposal by the critiques it received, or by its own where nobody criticizes it."""

from collections.abc import Sequence
from functools import partial

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.issue_answers import RaisedIssue, answer_instructions, parse_answers
from parley.orchestrator.model.open_issues import list_raised_issues
from parley.orchestrator.model.positions import POSITION_FORM
from parley.orchestrator.model.readiness import (
    READINESS_FORM,
    Readiness,
    parse_readiness,
    without_readiness,
)
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity, Task, user_part
from parley.orchestrator.phases.cite import note_claims
from parley.orchestrator.phases.prompting import in_words, instruction, quotation
from parley.orchestrator.phases.situation import Situation, opening
from parley.v1.debate_pb2 import Reply
from parley.v1.event_pb2 import StepFailed
from parley.v1.gateway_pb2 import PromptPart

__all__ = ["CONCURRENCY", "REFINEMENT", "SECTION", "refine"]

REFINEMENT = Activity("refinement", "refines", "Refinements")
SECTION = "refine"
CONCURRENCY = "refinements"
_CHANGES = ", with a short list at its end of what you changed and why"
_ALONE = (
    "Nobody else has examined your proposal. Examine it yourself, as a strict critic would: what is wrong, missing, unproven, or"
    " cannot be done?"
)


async def refine(
    debate: Debate,
    agent: AgentSpec,
    proposal: Contribution,
    critiques: Sequence[Contribution],
    situation: Situation,
) -> Contribution | StepFailed:
    """Ask an agent for its revised proposal, and for an answer to each issue that was raised."""
    spec = debate.spec
    raised = list_raised_issues(debate.letter, critiques)
    prompt = (
        *opening(debate, agent, situation),
        quotation(f"Your proposal of round {proposal.round}", proposal.text),
        *(quotation(f"Critique by agent {debate.letter(each.agent)}", each.text) for each in critiques),
        _told(agent, spec.max_output_tokens, raised, situation, is_alone=not critiques),
    )
    work = REFINEMENT.create_work(agent.id, situation.number)
    annotate = partial(_annotate, raised, situation)
    task = Task(
        work,
        prompt,
        spec.max_output_tokens,
        concurrency=CONCURRENCY,
        annotate=annotate,
        retry_once=True,
    )
    reply = await debate.ask(f"round/{situation.number}/refine/{agent.id}", agent, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(
        agent.id,
        REFINEMENT.name,
        situation.number,
        reply.rendered or reply.text,
        reply.position,
        answers=tuple(reply.issue_answers),
        readiness=parse_readiness(reply.text) if situation.asks_readiness else Readiness(),
        claims=tuple(reply.claims_to_cite),
    )


def _annotate(raised: Sequence[RaisedIssue], situation: Situation, reply: Reply) -> None:
    """Keep the answers to issues as data, and what others read as the proposal without them."""
    text = without_readiness(reply.text) if situation.asks_readiness else reply.text
    proposal, answers = parse_answers(text, raised)
    reply.rendered = proposal if proposal != reply.text else ""
    reply.issue_answers.extend(answers)
    if situation.cites:
        note_claims(reply)


def _told(
    agent: AgentSpec,
    max_tokens: int,
    raised: Sequence[RaisedIssue],
    situation: Situation,
    *,
    is_alone: bool,
) -> PromptPart:
    forms = [
        f"Your revised proposal, complete in itself{_CHANGES if is_alone else ''}.{in_words(max_tokens)}",
        POSITION_FORM,
        *([answer_instructions([each.name for each in raised])] if raised else []),
        *([READINESS_FORM] if situation.asks_readiness else []),
    ]
    listed = "\n".join(f"{number}. {form}" for number, form in enumerate(forms, start=1))
    told = situation.told(SECTION, f"Write, in this order:\n{listed}")
    if is_alone:
        return user_part(f"{_ALONE}\n\n{told}")
    return instruction(agent, SECTION, told)
