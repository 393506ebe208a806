"""Refinements: an agent revises its proposal by the critiques it received, or by its own if no other agent criticizes it.

The last one before a vote is written with the work of the others in view.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.issue_answers import RaisedIssue, answer_instructions, parse_answers
from parley.orchestrator.model.open_issues import list_raised_issues
from parley.orchestrator.model.positions import POSITION_FORM, POSITION_INSTRUCTION
from parley.orchestrator.model.readiness import READINESS_FORM, parse_readiness, without_readiness
from parley.orchestrator.model.tasks import Activity, Prompt, Task, user_part
from parley.orchestrator.phases.prompting import add_claims_to_cite, instruction, length_limit, quotation
from parley.orchestrator.phases.protocols import with_manner
from parley.orchestrator.phases.situation import Situation, quote_work, round_preamble
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import StepFailed
from parley.v1.gateway_pb2 import PromptPart

REFINEMENT = Activity("refinement", "refines", "Refinements")
SECTION = "refine"
CONCURRENCY = "refinements"
_LIST_CHANGES = ", with a short list at its end of what you changed and why"
_ALONE_PROMPT = (
    "Nobody else has examined your proposal. Examine it yourself, as a strict critic would: what is wrong, missing, unproven, or"
    " cannot be done?"
)


async def refine(
    debate: Debate,
    agent: Agent,
    proposal: Contribution,
    critiques: Sequence[Contribution],
    situation: Situation,
) -> Contribution | StepFailed:
    """Ask an agent for its revised proposal, and for an answer to each issue that was raised."""
    raised = list_raised_issues(debate.letter, critiques)
    prompt = (
        *round_preamble(debate, agent, situation),
        quotation(f"Your proposal of round {proposal.round}", proposal.text),
        *(quotation(f"Critique by agent {debate.letter(each.agent)}", each.text) for each in critiques),
        _create_task(debate, agent, raised, situation, is_alone=not critiques),
    )
    work = REFINEMENT.create_work(agent.id, situation.number)
    annotate = partial(_annotate, debate, raised, situation)
    task = _create_call(debate, work, prompt, annotate)
    reply = await debate.ask(refine_key(situation.number, agent.id), agent, task)
    if isinstance(reply, StepFailed):
        return reply
    made = create_refinement(agent.id, situation.number, reply)
    return replace(made, readiness=parse_readiness(reply.text)) if situation.asks_readiness else made


def refine_key(number: int, agent: str) -> str:
    """Return the key of an agent's refinement in a round."""
    return f"round/{number}/refine/{agent}"


def create_refinement(agent: str, number: int, reply: Reply) -> Contribution:
    """Return an agent's refinement of a round as others read it, but for whether it is ready for the vote."""
    return Contribution(
        agent,
        REFINEMENT.name,
        number,
        reply.rendered or reply.text,
        reply.position,
        answers=tuple(reply.issue_answers),
        claims=tuple(reply.claims_to_cite),
    )


def _create_call(
    debate: Debate, work: Work, prompt: Prompt, annotate: Callable[[Reply], None] | None
) -> Task:
    """Return the call for a proposal, revised or final: it is repeated once, and waits for its label's limit."""
    return Task(
        work,
        prompt,
        debate.spec.max_output_tokens,
        concurrency=CONCURRENCY,
        annotate=annotate,
        retry_once=True,
    )


def _annotate(debate: Debate, raised: Sequence[RaisedIssue], situation: Situation, reply: Reply) -> None:
    """Keep the answers to issues as data, and what others read as the proposal without them."""
    text = without_readiness(reply.text) if situation.asks_readiness else reply.text
    proposal, answers = parse_answers(text, raised)
    reply.rendered = proposal if proposal != reply.text else ""
    reply.issue_answers.extend(answers)
    if situation.cites:
        add_claims_to_cite(debate, reply)


def _create_task(
    debate: Debate, agent: Agent, raised: Sequence[RaisedIssue], situation: Situation, *, is_alone: bool
) -> PromptPart:
    forms = [
        f"Your revised proposal, complete in itself{_LIST_CHANGES if is_alone else ''}.{length_limit(debate.spec.max_output_tokens)}",
        POSITION_FORM,
        *([answer_instructions([each.name for each in raised])] if raised else []),
        *([READINESS_FORM] if situation.asks_readiness else []),
    ]
    listed = "\n".join(f"{number}. {form}" for number, form in enumerate(forms, start=1))
    task_text = with_manner(debate, SECTION, f"Write, in this order:\n{listed}")
    if is_alone:
        return user_part(f"{_ALONE_PROMPT}\n\n{task_text}")
    return instruction(debate, agent, SECTION, task_text)


FINAL_REFINEMENT = Activity(
    "final-refinement", "writes its final proposal", "Final refinements", title="final refinement"
)
FINISH_SECTION: Final = "finish"
"""Names the phase in which the manner of a debate is said; the role's section is that of refinements."""
_FINISH_PROMPT: Final = (
    "This is the last time that you write before the vote. Write your final proposal, complete in itself: those who vote see it"
    " alone, without your name and without the debate, so name no agents in it. Take over from the others what is better than yours, answer in the text"
    " itself what is still held against it, and take nothing back that has stood up to the critiques. Where you have come to"
    f" agree with another agent, say the same thing and do not invent a difference. {POSITION_INSTRUCTION}"
)


async def finish(
    debate: Debate,
    agent: Agent,
    own: Contribution,
    others: Sequence[Contribution],
    issues: str,
    situation: Situation,
) -> Contribution | StepFailed:
    """Ask an agent for its final proposal. `issues`: what was criticized in its work, with what became of it."""
    prompt = (
        *round_preamble(debate, agent, situation),
        *quote_work(debate, others, "Present proposal"),
        quotation(f"Your proposal, your {own.activity} of round {own.round}", own.text),
        *([quotation("What was held against your work, and what became of it", issues)] if issues else []),
        instruction(
            debate,
            agent,
            SECTION,
            with_manner(debate, FINISH_SECTION, _FINISH_PROMPT),
            debate.spec.max_output_tokens,
        ),
    )
    work = FINAL_REFINEMENT.create_work(agent.id, situation.number)
    annotate = partial(add_claims_to_cite, debate) if situation.cites else None
    task = _create_call(debate, work, prompt, annotate)
    reply = await debate.ask(f"round/{situation.number}/finish/{agent.id}", agent, task)
    if isinstance(reply, StepFailed):
        return reply
    return Contribution(
        agent.id,
        FINAL_REFINEMENT.title,
        situation.number,
        reply.rendered or reply.text,
        reply.position,
        claims=tuple(reply.claims_to_cite),
    )
