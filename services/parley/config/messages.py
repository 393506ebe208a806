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

_TOOLS = {
    "context_search": agent_pb2.TOOL_CONTEXT_SEARCH,
    "file_read": agent_pb2.TOOL_FILE_READ,
    "list_files": agent_pb2.TOOL_LIST_FILES,
}


def agent_message(agent: Agent) -> agent_pb2.Agent:
    """The agent as it travels."""
    message = agent_pb2.Agent(
        id=agent.id,
        name=agent.name,
        role=agent.role,
        routes=agent.routes,
        temperature=agent.temperature,
        tools=[_TOOLS[each] for each in agent.tools],
        tool_call_limit=agent.tool_call_limit,
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
        max_concurrent_proposals=debate.max_concurrent_proposals or 0,
        max_concurrent_critiques=debate.max_concurrent_critiques or 0,
        max_concurrent_revisions=debate.max_concurrent_revisions or 0,
    )
    if debate.summarization is not None:
        spec.summaries.CopyFrom(_summaries(debate.summarization))
    _set_limits(spec, debate)
    if debate.termination is not None:
        spec.termination.rule = _RULES[debate.termination.rule]
        spec.termination.threshold_percent = debate.termination.threshold or 0
    if debate.synthesis_method is not None:
        spec.synthesis_method = orchestrator_pb2.SYNTHESIS_METHOD_JUDGE
    return spec


def _set_limits(spec: orchestrator_pb2.DebateSpec, debate: DebateEntry) -> None:
    per_round = debate.timeout_per_round
    times = {
        "call": debate.call_timeout_seconds,
        "round": None if per_round is None else per_round / 1000,
        "total": debate.total_timeout_seconds,
        "checkpoint": debate.checkpoint_timeout_seconds,
        "waiting": debate.waiting_seconds,
    }
    for name, seconds in times.items():
        if seconds is not None:
            getattr(spec.limits, name).FromNanoseconds(round(seconds * 1e9))
    if debate.max_tokens is not None:
        spec.limits.max_tokens = debate.max_tokens
    if debate.max_cost is not None:
        spec.limits.max_cost_micros = max(round(debate.max_cost * 1e6), 1)


def _copy_prompt(target: agent_pb2.PromptText, prompt: Prompt | None) -> None:
    if prompt is not None:
        target.text, target.source = prompt.text, prompt.source


def _summaries(entry: SummarizationEntry) -> agent_pb2.SummarySettings:
    return agent_pb2.SummarySettings(
        enabled=entry.enabled, threshold=entry.threshold or 0, max_length=entry.max_length or 0
    )
