"""The answer of a debate that has voted: the judge writes it around the proposal that won, and participants accept it or not.

What a participant cannot live with is dissent.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Struct
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, AnswerShape, Task, user_part
from parley.orchestrator.phases.answer_questions import AnswerQuestions
from parley.orchestrator.phases.count_votes import strength_name, tied_option
from parley.orchestrator.phases.prompting import FOR_READERS, guidance_of, preamble, quotation
from parley.orchestrator.phases.requirements import Requirements
from parley.orchestrator.phases.schemas import StrippedText, prompt_schema, schema_text
from parley.orchestrator.phases.situation import call_by_letters, common_preamble, describe_agents, quote_work
from parley.orchestrator.phases.synthesize import JudgeAnswer, ask_answer, ask_of_requirements
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import StepFailed
from parley.v1.panel_pb2 import Objection
from parley.v1.voting_pb2 import VOTE_BALLOTS_LAST_VOTE, Decision, PositionSupport, Vote

_ANSWER_PROMPT: Final = (
    "Write the answer to the question from what was decided.{first} Take over from the other proposals what the reasons of the voters or"
    " the judgement hold to be better, where it fits. Mend what was held against it and is right. Where the decision was not clear,"
    " say what the difference hangs on, and what speaks for the other side. Add nothing that none of the proposals argues. Write"
    f" the answer itself, complete in itself. {FOR_READERS}{{met}}"
)
_CORE_IS_FINAL: Final = " The proposal of agent {letter} is its core."
_CORE_IS_FIRST: Final = " Its core is the first proposal of agent {letter}: its position was decided for, and no final proposal is known to take it."


def describe_decision(debate: Debate, decision: Decision) -> str:
    """Return what was decided from which ballots, for the agent that writes the answer."""
    count, chosen = decision.count, decision.judge_ballot.choice_agent_id
    own_choice = f"; you chose that of agent {debate.letter(chosen)}" if chosen else ""
    if tied_option(count, chosen):
        own_choice += ", which broke the tie"
    if decision.ballots == VOTE_BALLOTS_LAST_VOTE:
        has_won = _describe_result(
            debate, count, "The proposal of agent {letter} has won", "No proposal has won"
        )
        return f"{has_won} Counted are the ballots of the vote{own_choice}."
    has_won = _describe_result(
        debate, count, "The first position of agent {letter} has won", "No position has won"
    )
    counted = "the positions of the first proposals, which agents took before they had read each other"
    lines = [
        f"{has_won} Counted are {counted}{own_choice}.",
        *(_describe_position(debate, each) for each in decision.positions),
    ]
    return "\n".join(lines)


def _describe_position(debate: Debate, support: PositionSupport) -> str:
    return (
        f"- {support.share:.0%} of what counts: {' '.join(support.position.split())}"
        f" At first: {_name_agents(debate, support.first_agent_ids)};"
        f" in the final proposals: {_name_agents(debate, support.last_agent_ids)}."
    )


def _describe_result(debate: Debate, vote: Vote, winner: str, without: str) -> str:
    won = winner.format(letter=debate.letter(vote.winner_agent_id)) if vote.winner_agent_id else without
    return f"{won} ({strength_name(vote)})."


def _name_agents(debate: Debate, agents: Sequence[str]) -> str:
    return call_by_letters([debate.letter(each) for each in agents]) if agents else "none"


def describe_vote(debate: Debate, vote: Vote) -> str:
    """Return how a vote went, for the agent that writes the answer."""
    lines = [_describe_result(debate, vote, "The proposal of agent {letter} has won", "No proposal has won")]
    lines += [
        f"- agent {debate.letter(each.agent_id)}: {each.votes} of {len(vote.ballots)} votes, {each.share:.0%} of what counts"
        for each in vote.options
    ]
    lines += [
        f"- {_name_agents(debate, each.agent_ids)} say the same and count as one:"
        f" {each.votes} of {len(vote.ballots)} votes, {each.share:.0%} of what counts"
        for each in vote.groups
    ]
    lines += [
        f"- agent {debate.letter(each.agent_id)} chose agent {debate.letter(each.choice_agent_id)},"
        f" {each.confidence:.0%} sure: {' '.join(each.reason.split())}"
        for each in vote.ballots
    ]
    return "\n".join(lines)


class Core(Struct, frozen=True):
    """What an answer is written around; a final proposal, or its author's first one."""

    text: Contribution
    is_first_draft: bool = False


async def write_from_vote(
    debate: Debate,
    writer: Agent,
    work: Sequence[Contribution],
    core: Core,
    accounts: Sequence[tuple[str, str]],
    guidance: Sequence[str],
    requirements: Requirements,
    asked: AnswerQuestions,
) -> JudgeAnswer:
    """Return the answer, with what else is asked.

    `core`: what it is written around; `accounts`: what the prompt says of the debate, each with its title.

    Raises:
        DebateFailedError: the writer gave none, as `ask_for_answer` does.
    """
    letter, is_shown = debate.letter(core.text.agent), core.text in work and not core.is_first_draft
    first = _CORE_IS_FIRST if core.is_first_draft else _CORE_IS_FINAL
    core_task = first.format(letter=letter) if not is_shown or len(work) > 1 else ""
    title = (
        f"First proposal of agent {letter}" if core.is_first_draft else f"Final proposal of agent {letter}"
    )
    core_alone = [] if is_shown else [quotation(title, core.text.text)]
    prompt = (
        *common_preamble(debate, writer, requirements.to_prompt_text()),
        user_part(describe_agents(debate, are_named=False)),
        *(quotation(title, text) for title, text in accounts if text),
        *quote_work(debate, work, "Final proposal"),
        *core_alone,
        *asked.to_prompt(),
        *guidance_of(guidance),
        user_part(
            _ANSWER_PROMPT.format(first=core_task, met=ask_of_requirements(requirements)) + asked.to_task()
        ),
    )
    works = [core.text.text, *(each.text for each in work)]
    return await ask_answer(debate, writer, prompt, (), requirements, asked, works)


VERIFICATION = Activity("verification", "says whether it can live with the answer", "Verification")
_VERIFICATION_PROMPT: Final = (
    "This is the answer of the debate, written from its vote. Can you live with it? You can unless it is wrong, would do harm,"
    " misses a stated requirement, or leaves out what the question cannot do without. That you would have said it otherwise, or"
    " that another proposal won, is no reason. Where you cannot, say in a sentence or two what would go wrong."
)


class _VerdictSchema(BaseModel):
    model_config = ConfigDict(extra="forbid")

    can_live_with_it: bool
    objection: Annotated[
        str,
        Field(
            description="What you cannot live with, and what would go wrong; empty if you can live with it."
        ),
    ]


_STAND_SCHEMA: Final = schema_text(prompt_schema(_VerdictSchema))


class ParsedVerdict(BaseModel):
    """A participant's word as it is read: without a plain yes or no it says nothing."""

    can_live_with_it: Annotated[
        bool, Field(strict=True, validation_alias=AliasChoices("can_live_with_it", "accepts"))
    ]
    objection: StrippedText = ""


class VerificationResult(Struct, frozen=True):
    """What participants said, each part ordered by agent id. Who said nothing is in neither."""

    dissent: tuple[Objection, ...]
    consenting: tuple[str, ...]


async def verify(
    debate: Debate,
    participants: Sequence[Agent],
    work: Sequence[Contribution],
    answer: str,
    requirements: str = "",
) -> VerificationResult:
    """Ask every agent at once whether it can live with the answer. Who fails, or is not asked any more, says nothing."""
    own = {each.agent: each.text for each in work}
    asked = await asyncio.gather(
        *(_ask_verdict(debate, each, own.get(each.id, ""), answer, requirements) for each in participants)
    )
    by_agent = sorted(zip((each.id for each in participants), asked, strict=True), key=lambda each: each[0])
    verdicts = [(agent, verdict) for agent, verdict in by_agent if isinstance(verdict, ParsedVerdict)]
    return VerificationResult(
        dissent=tuple(
            Objection(agent_id=agent, text=verdict.objection or "It gave no reason.")
            for agent, verdict in verdicts
            if not verdict.can_live_with_it
        ),
        consenting=tuple(agent for agent, verdict in verdicts if verdict.can_live_with_it),
    )


async def _ask_verdict(
    debate: Debate, agent: Agent, own: str, answer: str, requirements: str
) -> ParsedVerdict | StepFailed:
    prompt = (
        *preamble(debate, agent, requirements=requirements),
        *([quotation("Your final proposal", own)] if own else []),
        quotation("The answer", answer),
        user_part(_VERIFICATION_PROMPT),
    )
    task = Task(VERIFICATION.create_work(agent.id), prompt)
    shape = AnswerShape("stand", ParsedVerdict, _STAND_SCHEMA, _render_verdict)
    return await debate.ask_structured(f"verification/{agent.id}", agent, task, shape)


def _render_verdict(verdict: ParsedVerdict) -> str:
    return "Can live with it." if verdict.can_live_with_it else f"Cannot live with it: {verdict.objection}"
