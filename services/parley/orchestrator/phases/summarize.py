"""Summaries: what of the history is left out is replaced by a summary. One that fails is a warning, and costs nothing else."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, Task, user_part
from parley.orchestrator.model.tokens import CHARACTERS_A_TOKEN, upper_tokens
from parley.orchestrator.phases.history import (
    EMPTY_HISTORY,
    AgentHistory,
    available_tokens,
    count_prompt_tokens,
    count_rendered,
    render_history,
    split_into_parts,
    split_to_fit,
    summary_length,
)
from parley.orchestrator.phases.prompting import instructions_for, quotation
from parley.orchestrator.phases.situation import common_preamble, describe_agents, describe_identity
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.agent_pb2 import Agent, SummarySettings
from parley.v1.event_pb2 import StepFailed
from parley.v1.gateway_pb2 import PromptPart

SUMMARY = Activity("summary", "summarizes", "Summaries")
SECTION = "summarize"
_METHOD = "length-based"
_MAX_PARTS = 4
"""Calls for one summary at most: if that is not enough, the longest contributions lose their middle."""
_CRITIQUES = "Keep the critiques that matter: who raised them, against what, and whether they were answered."


class _Reader(Struct, frozen=True):
    """A reader of the history.

    Attributes:
        key: Of the step that summarizes.
        number: The round; 0 for the judge.
        room: Tokens for all that it reads.
        settings: The agent's own, or else the debate's.
    """

    debate: Debate
    key: str
    agent: Agent
    number: int
    room: int
    settings: SummarySettings

    @property
    def summary_characters(self) -> int:
        """What a summary may have at most."""
        settings, context = self.settings, self.agent.context_tokens
        return summary_length(settings.max_length, settings.threshold, context, self.room)

    def is_long(self, characters: int) -> bool:
        """Whether a line of work is to be summarized for its length alone."""
        return self.settings.enabled and characters >= self.settings.threshold > 0


def _settings_of(agent: Agent, settings: SummarySettings) -> SummarySettings:
    """Return an agent's own settings, or else the debate's."""
    return agent.summaries if agent.HasField("summaries") else settings


async def summarize_own(
    debate: Debate,
    number: int,
    agent: Agent,
    contributions: Sequence[Contribution],
    before: AgentHistory,
    room: int,
    settings: SummarySettings,
) -> AgentHistory:
    """Return what an agent reads of the history before a round: what is left out is summarized by itself.

    If a threshold is set, its own line of work is left out once it is that long; else only what does not fit.

    Args:
        debate: The debate.
        number: The round.
        agent: The reader.
        contributions: What it may read, oldest first, but for what it left out before.
        before: What it read before the last round.
        room: Tokens for all of it.
        settings: The debate's; the agent's own go before them.
    """
    key = f"round/{number}/summarize/{agent.id}"
    reader = _Reader(debate, key, agent, number, room, _settings_of(agent, settings))
    line = [
        each
        for each in contributions
        if each.target == agent.id or (each.agent == agent.id and not each.target)
    ]
    is_long = bool(line) and reader.is_long(len(before.summary) + _characters(line))
    return await _fit_history(reader, contributions, before, line if is_long else ())


async def summarize_for_judge(
    debate: Debate, judge: Agent, contributions: Sequence[Contribution], room: int, settings: SummarySettings
) -> AgentHistory:
    """Return what the judge reads of the history besides the final proposals, as above."""
    reader = _Reader(debate, "synthesis/summarize", judge, 0, room, _settings_of(judge, settings))
    return await _fit_history(
        reader,
        contributions,
        EMPTY_HISTORY,
        contributions if reader.is_long(_characters(contributions)) else (),
    )


async def _fit_history(
    reader: _Reader,
    contributions: Sequence[Contribution],
    before: AgentHistory,
    first: Sequence[Contribution],
) -> AgentHistory:
    """Leave out what must be, those in `first` in any case, and have it summarized together with the summary before."""
    names = {each.name for each in first}
    size, room = _characters(contributions), reader.room - upper_tokens(before.summary)
    whole, gone = await in_thread_if_large(size, partial(split_to_fit, contributions, room, names))
    if not gone:
        return AgentHistory(before.summary, before.omitted, whole)
    if not reader.settings.enabled:
        return AgentHistory("", before.omitted | {each.name for each in gone}, whole)
    taken = -(-reader.summary_characters // CHARACTERS_A_TOKEN)
    whole, gone = await in_thread_if_large(
        size, partial(split_to_fit, contributions, reader.room - taken, names)
    )
    summary = await _summarize(reader, before.summary, gone)
    if summary is None:
        return AgentHistory(before.summary, before.omitted, tuple(contributions))
    return AgentHistory(summary, before.omitted | {each.name for each in gone}, whole)


async def _summarize(reader: _Reader, before: str, gone: Sequence[Contribution]) -> str | None:
    """Return a summary of an earlier one and of what is left out; None if there is none, which is said in a warning.

    What does not fit one prompt is read in parts, each together with the summary of those before it.
    """
    debate, agent, most = reader.debate, reader.agent, reader.summary_characters
    text = instructions_for(debate, agent, SECTION, agent.summary_prompt.text)
    who = describe_agents(debate) if agent is debate.judge else describe_identity(debate, agent)
    opening = (*common_preamble(debate, agent, ""), user_part(who))
    task_text = user_part(f"{text}\n\n{_CRITIQUES} Use at most {most} characters.")
    other_tokens = (
        count_prompt_tokens((*opening, task_text), agent.context_tokens) + most // CHARACTERS_A_TOKEN
    )
    room = available_tokens(agent.context_tokens, 0, other_tokens)
    summary = before
    parts = await in_thread_if_large(_characters(gone), partial(_quote_parts, reader, gone, room))
    for number, (quoted, characters) in enumerate(parts, start=1):
        earlier = (quotation("Your summary of what came before", summary),) if summary else ()
        prompt = (*opening, *earlier, quoted, task_text)
        summarized = len(summary) + characters
        work = SUMMARY.create_work(agent.id, reader.number, summarized=summarized, summary_method=_METHOD)
        key = reader.key if number == 1 else f"{reader.key}/{number}"
        reply = await debate.ask(key, agent, Task(work, prompt, max_characters=most))
        if isinstance(reply, StepFailed):
            why = reply.message
            debate.warn(
                reader.key, f"{agent.name} could not summarize its history and goes on with all of it: {why}"
            )
            return None
        summary = reply.text
    return summary


def _quote_parts(reader: _Reader, gone: Sequence[Contribution], room: int) -> list[tuple[PromptPart, int]]:
    """Return the parts in which contributions are summarized, each with the characters that it stands for."""
    letter, reads = reader.debate.letter, reader.agent.id
    title = "The part of the debate to be summarized"
    return [
        (
            quotation(title, render_history(letter, part.shown, reads)),
            count_rendered(letter, part.whole, reads),
        )
        for part in split_into_parts(gone, room, _MAX_PARTS)
    ]


def _characters(contributions: Sequence[Contribution]) -> int:
    return sum(len(each.text) for each in contributions)
