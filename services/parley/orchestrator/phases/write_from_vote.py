"""The answer of a debate that has voted: the judge writes it from the vote, around the proposal that came first."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import PromptPart, Task
from parley.orchestrator.phases.failing import failed_for_want_of
from parley.orchestrator.phases.prompting import guidance_of, quotation
from parley.orchestrator.phases.situation import bench, present_work, start
from parley.orchestrator.phases.synthesize import KEY, SYNTHESIS
from parley.orchestrator.phases.vote_words import strength_word
from parley.v1.event_pb2 import StepFailed
from parley.v1.voting_pb2 import Vote

__all__ = ["vote_account", "write_from_vote"]

_TOLD: Final = (
    "Write the answer to the question from the vote.{first} Take over from the other proposals what the reasons of the voters or"
    " the judgement hold to be better, where it fits. Mend what was held against it and is right. Where the vote was not clear,"
    " say what the difference hangs on, and what speaks for the other side. Add nothing that none of the proposals argues. Write"
    " the answer itself, complete in itself, in the language of the question, for readers who know nothing of agents or votes:"
    " no letters of agents, and nothing about how it was made."
)
_FIRST: Final = " The proposal of agent {letter} is its core."


def vote_account(debate: Debate, vote: Vote) -> str:
    """Return how a vote went, for whoever writes the answer."""
    strength = strength_word(vote)
    if vote.winner_agent_id:
        lines = [f"The proposal of agent {debate.letter(vote.winner_agent_id)} has won ({strength})."]
    else:
        lines = [f"No proposal has won ({strength})."]
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
    first: str,
    accounts: Sequence[tuple[str, str]],
    guidance: Sequence[str],
    requirements: str,
) -> str:
    """Return the answer. `first`: whose proposal came first; `accounts`: what is told of the debate, each with its title.

    Raises:
        DebateFailedError: the writer gave none. Where that may pass, it is waited for.
    """
    core = _FIRST.format(letter=debate.letter(first)) if len(work) > 1 else ""
    prompt = (
        *start(debate, writer, requirements),
        PromptPart("user", bench(debate)),
        *(quotation(title, text) for title, text in accounts if text),
        *present_work(debate, work, "Final proposal"),
        *guidance_of(guidance),
        PromptPart("user", _TOLD.format(first=core)),
    )
    reply = await debate.ask(KEY, writer, Task(SYNTHESIS.work(writer.id), prompt, is_answer=True))
    if isinstance(reply, StepFailed):
        raise failed_for_want_of({KEY: reply}, SYNTHESIS.name)
    return reply.text
