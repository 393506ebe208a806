"""Summaries: a long history of one's own is replaced by a short one. One that fails is a warning, and costs nothing else."""

from collections.abc import Sequence

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.panel.v1.prompting import preamble, quotation
from parley.orchestrator.formats.panel.v1.quoting import length, quoted
from parley.orchestrator.formats.panel.v1.settings import MAX_SUMMARY_LENGTH, SUMMARY_THRESHOLD
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.spec import AgentSpec, SummarySettings
from parley.orchestrator.model.tasks import Activity, Task, user_part
from parley.v1.event_pb2 import StepFailed, Warned

__all__ = ["SECTION", "SUMMARY", "summarize_last_round", "summarize_own"]

SUMMARY = Activity("summary", "summarizes", "Summaries")
SECTION = "summarize"


async def summarize_own(
    debate: Debate, number: int, agent: AgentSpec, own: Sequence[Contribution], settings: SummarySettings
) -> str | None:
    """Return a summary of an agent's own part before a round, or None where it is short enough or the summary failed.

    `settings` are the debate's; the agent's own go before them.
    """
    key = f"round/{number}/summarize/{agent.id}"
    text = quoted(debate.letter, own, agent.id)
    return await _summary(debate, key, agent, number, "Your part of the debate so far", text, own, settings)


async def summarize_last_round(
    debate: Debate, judge: AgentSpec, work: Sequence[Contribution], settings: SummarySettings
) -> str | None:
    """Return the judge's summary of the last round's work, or None as above."""
    text = quoted(debate.letter, work)
    return await _summary(debate, "synthesis/summarize", judge, 0, "The last round", text, work, settings)


async def _summary(
    debate: Debate,
    key: str,
    agent: AgentSpec,
    number: int,
    title: str,
    text: str,
    read: Sequence[Contribution],
    settings: SummarySettings,
) -> str | None:
    settings = agent.summaries or settings
    threshold = settings.threshold or SUMMARY_THRESHOLD
    max_length = settings.max_length or MAX_SUMMARY_LENGTH
    if not settings.enabled or length(read) < threshold:
        return None
    told = agent.summary_prompt.text if agent.summary_prompt else agent.instructions[SECTION]
    prompt = (
        *preamble(debate, agent),
        quotation(title, text),
        user_part(f"{told}\n\nUse at most {max_length} characters."),
    )
    task = Task(SUMMARY.create_work(agent.id, number, summarized=length(read)), prompt)
    reply = await debate.ask(key, agent, task)
    if isinstance(reply, StepFailed):
        warning = f"{agent.name} could not summarize its history and goes on with all of it: {reply.message}"
        debate.record_event(f"{key}/warning", Warned(message=warning))
        return None
    return reply.text[:max_length]
