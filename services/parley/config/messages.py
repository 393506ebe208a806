"""A configuration as messages of the contract."""

from parley.config.entries import DebateEntry, SummarizationEntry
from parley.config.file import Agent
from parley.config.prompts import Prompt
from parley.v1 import agent_pb2, orchestrator_pb2

__all__ = ["agent_message", "debate_message"]

_RULES = {
    "fixed": orchestrator_pb2.TERMINATION_RULE_FIXED,
    "convergence": orchestrator_pb2.TERMINATION_RULE_CONVERGENCE,
    "quality": orchestrator_pb2.TERMINATION_RULE_QUALITY,
}


def agent_message(agent: Agent) -> agent_pb2.Agent:
    """The agent as it travels."""
    message = agent_pb2.Agent(
        id=agent.id,
        name=agent.name,
        role=agent.role,
        routes=agent.routes,
        temperature=agent.temperature,
    )
    _copy_prompt(message.system_prompt, agent.system_prompt)
    _copy_prompt(message.summary_prompt, agent.summary_prompt)
    if agent.summarization is not None:
        message.summaries.CopyFrom(_summaries(agent.summarization))
    return message


def debate_message(debate: DebateEntry) -> orchestrator_pb2.DebateSpec:
    """The settings of a debate, without question and agents; what is not said stays unset."""
    spec = orchestrator_pb2.DebateSpec(
        rounds=debate.rounds or 0,
        include_full_history=debate.include_full_history,
        carry_forward=debate.carry_forward,
        max_output_tokens=debate.max_output_tokens or 0,
        history_limit=debate.history_limit,
        domain=debate.domain or "",
    )
    if debate.summarization is not None:
        spec.summaries.CopyFrom(_summaries(debate.summarization))
    if debate.call_timeout_seconds is not None:
        spec.limits.call.FromNanoseconds(round(debate.call_timeout_seconds * 1e9))
    if debate.termination is not None:
        spec.termination.rule = _RULES[debate.termination.rule]
        spec.termination.threshold_percent = debate.termination.threshold or 0
    if debate.synthesis_method is not None:
        spec.synthesis_method = orchestrator_pb2.SYNTHESIS_METHOD_JUDGE
    return spec


def _copy_prompt(target: agent_pb2.PromptText, prompt: Prompt | None) -> None:
    if prompt is not None:
        target.text, target.source = prompt.text, prompt.source


def _summaries(entry: SummarizationEntry) -> agent_pb2.SummarySettings:
    return agent_pb2.SummarySettings(
        enabled=entry.enabled, threshold=entry.threshold or 0, max_length=entry.max_length or 0
    )
