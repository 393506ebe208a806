"""The answer of a debate that has voted: the judge writes it from the vote, around the proposal that came first."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Task, user_part
from parley.orchestrator.phases.failing import failed_for_want_of
from parley.orchestrator.phases.prompting import guidance_of, quotation
from parley.orchestrator.phases.situation import bench, present_work, start
from parley.orchestrator.phases.synthesize import KEY, SYNTHESIS
from parley.orchestrator.phases.vote_words import strength_word
from parley.v1.event_pb2 import StepFailed
from parley.v1.voting_pb2 import VOTE_BALLOTS_LAST_VOTE, Decision, PositionSupport, Vote

__all__ = ["decision_account", "vote_account", "write_from_vote"]

_TOLD: Final = (
    "Write the answer to the question from what was decided.{first} Take over from the other proposals what the reasons of the voters or"
    " the judgement hold to be better, where it fits. Mend what was held against it and is right. Where the decision was not clear,"
    " say what the difference hangs on, and what speaks for the other side. Add nothing that none of the proposals argues. Write"
    " the answer itself, complete in itself, in the language of the question, for readers who know nothing of agents or votes:"
    " no letters of agents, and nothing about how it was made."
)
_FIRST: Final = " The proposal of agent {letter} is its core."
_DRAFT: Final = " Its core is the first proposal of agent {letter}: its position was decided for, and no final proposal is known to take it."


def decision_account(debate: Debate, decision: Decision) -> str:
    """Return what was decided from which ballots, for whoever writes the answer."""
    count, judge = decision.count, decision.judge_agent_id
    own = next((each for each in count.ballots if each.agent_id == judge), None)
    own_choice = f"; you chose that of agent {debate.letter(own.choice_agent_id)}" if own else ""
    if decision.ballots == VOTE_BALLOTS_LAST_VOTE:
        has_won = _has_won(debate, count, "The proposal of agent {letter} has won", "No proposal has won")
        return f"{has_won} Counted are the ballots of the vote{own_choice}."
    has_won = _has_won(debate, count, "The first position of agent {letter} has won", "No position has won")
    counted = "the positions of the first proposals, which agents took before they had read each other"
    lines = [
        f"{has_won} Counted are {counted}{own_choice}.",
        *(_position_line(debate, each) for each in decision.positions),
    ]
    return "\n".join(lines)


def _position_line(debate: Debate, held: PositionSupport) -> str:
    return (
        f"- {held.share:.0%} of what counts: {' '.join(held.position.split())}"
        f" At first: {_agents(debate, held.first_agent_ids)};"
        f" in the final proposals: {_agents(debate, held.last_agent_ids)}."
    )


def _has_won(debate: Debate, vote: Vote, winner: str, without: str) -> str:
    won = winner.format(letter=debate.letter(vote.winner_agent_id)) if vote.winner_agent_id else without
    return f"{won} ({strength_word(vote)})."


def _agents(debate: Debate, agents: Sequence[str]) -> str:
    letters = ", ".join(debate.letter(each) for each in agents)
    return f"agent{'s' if len(agents) > 1 else ''} {letters}" if letters else "none"


def vote_account(debate: Debate, vote: Vote) -> str:
    """Return how a vote went, for whoever writes the answer."""
    lines = [_has_won(debate, vote, "The proposal of agent {letter} has won", "No proposal has won")]
    lines += [
        f"- agent {debate.letter(each.agent_id)}: {each.votes} of {len(vote.ballots)} votes, {each.share:.0%} of what counts"
        for each in vote.options
    ]
    lines += [
        f"- agent {debate.letter(each.agent_id)} chose agent {debate.letter(each.choice_agent_id)},"
        f" {each.confidence:.0%} sure: {' '.join(each.reason.split())}"
        for each in vote.ballots
    ]
    return "\n".join(lines)


async def write_from_vote(
    debate: Debate,
    writer: AgentSpec,
    work: Sequence[Contribution],
    core: Contribution,
    accounts: Sequence[tuple[str, str]],
    guidance: Sequence[str],
    requirements: str,
    *,
    core_is_first_draft: bool,
) -> str:
    """Return the answer. `core`: what it is written around; `accounts`: what is told of the debate, each with its title.

    Raises:
        DebateFailedError: the writer gave none. Where that may pass, it is waited for.
    """
    letter, is_shown = debate.letter(core.agent), core in work and not core_is_first_draft
    first = _DRAFT if core_is_first_draft else _FIRST
    told = first.format(letter=letter) if not is_shown or len(work) > 1 else ""
    title = (
        f"First proposal of agent {letter}" if core_is_first_draft else f"Final proposal of agent {letter}"
    )
    core_alone = [] if is_shown else [quotation(title, core.text)]
    prompt = (
        *start(debate, writer, requirements),
        user_part(bench(debate)),
        *(quotation(title, text) for title, text in accounts if text),
        *present_work(debate, work, "Final proposal"),
        *core_alone,
        *guidance_of(guidance),
        user_part(_TOLD.format(first=told)),
    )
    reply = await debate.ask(KEY, writer, Task(SYNTHESIS.create_work(writer.id), prompt, is_answer=True))
    if isinstance(reply, StepFailed):
        raise failed_for_want_of({KEY: reply}, SYNTHESIS.name)
    return reply.text
