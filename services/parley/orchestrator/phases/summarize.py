"""Summaries: a long history of one's own is replaced by a short one. One that fails is a warning, and costs nothing else."""

from collections.abc import Sequence

from parley.orchestrator import prompts
from parley.orchestrator.contributions import Contribution, length
from parley.orchestrator.debate import Debate
from parley.orchestrator.events import StepFailed, Warned, Work
from parley.orchestrator.spec import AgentSpec, SummarySettings
from parley.orchestrator.tasks import Task

__all__ = ["settings_of", "summarize_last_round", "summarize_own"]


def settings_of(debate: Debate, agent: AgentSpec) -> SummarySettings:
    """Return an agent's own settings, or else the debate's."""
    return agent.summaries or debate.spec.summaries


async def summarize_own(
    debate: Debate, number: int, agent: AgentSpec, own: Sequence[Contribution]
) -> str | None:
    """Return a summary of an agent's own part before a round, or None where it is short enough or the summary failed."""
    settings = settings_of(debate, agent)
    if not settings.enabled or length(own) < settings.threshold:
        return None
    prompt = prompts.summarize(debate.spec, agent, own, settings.max_length)
    work = Work("summary", agent.id, number, summarized=length(own))
    return await _summary(debate, f"round/{number}/summarize/{agent.id}", agent, Task(work, prompt))


async def summarize_last_round(debate: Debate, judge: AgentSpec, work: Sequence[Contribution]) -> str | None:
    """Return the judge's summary of the last round's work, or None as above."""
    settings = settings_of(debate, judge)
    if not settings.enabled or length(work) < settings.threshold:
        return None
    prompt = prompts.summarize_last_round(debate.spec, judge, work, settings.max_length)
    task = Task(Work("summary", judge.id, summarized=length(work)), prompt)
    return await _summary(debate, "synthesis/summarize", judge, task)


async def _summary(debate: Debate, key: str, agent: AgentSpec, task: Task) -> str | None:
    reply = await debate.ask(key, agent, task)
    if isinstance(reply, StepFailed):
        text = f"{agent.name} could not summarize its history and goes on with all of it: {reply.message}"
        debate.note(f"{key}/warning", Warned(text))
        return None
    return reply.text[: settings_of(debate, agent).max_length]
