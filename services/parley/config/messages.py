"""A configuration as messages of the contract, and the keys that their fields come from."""

from collections.abc import Mapping
from typing import Final

from parley.config.entries import DebateEntry
from parley.config.file import Agent
from parley.config.formats import FORMATS, format_named
from parley.config.prompts import Prompt
from parley.config.summarization import summaries_message
from parley.v1 import agent_pb2
from parley.v1.debate_pb2 import DebateSpec

__all__ = ["agent_message", "debate_message", "key_of_field"]

_KEYS: Final[Mapping[str, str]] = {
    "spec.limits.call": "call_timeout_seconds",
    "spec.limits.round": "timeout_per_round",
    "spec.limits.total": "total_timeout_seconds",
    "spec.limits.checkpoint": "checkpoint_timeout_seconds",
    "spec.limits.waiting": "waiting_seconds",
    "spec.limits.max_tokens": "max_tokens",
    "spec.limits.max_cost_micros": "max_cost",
    "spec.max_output_tokens": "max_output_tokens",
    "spec.history_limit": "history_limit",
    "spec.domain": "domain",
    "spec.clarifications": "interactive_clarifications",
    "spec.clarifications.max_per_agent": "clarifications_max_per_agent",
    "spec.clarifications.max_times": "clarifications_max_times",
}
"""Keys of the `debate:` section by the fields that they set, whatever the format."""

_TOOLS = {
    "context_search": agent_pb2.TOOL_CONTEXT_SEARCH,
    "file_read": agent_pb2.TOOL_FILE_READ,
    "list_files": agent_pb2.TOOL_LIST_FILES,
}


def agent_message(agent: Agent) -> agent_pb2.Agent:
    """Return the agent as it travels."""
    message = agent_pb2.Agent(
        id=agent.id,
        name=agent.name,
        role=agent.role,
        routes=agent.routes,
        temperature=agent.temperature,
        tools=[_TOOLS[each] for each in agent.tools],
        tool_call_limit=agent.tool_call_limit,
    )
    if agent.own_role is not None:
        message.own_role.sections.update(agent.own_role.sections)
        message.own_role.source = agent.own_role.source
    _copy_prompt(message.system_prompt, agent.system_prompt)
    _copy_prompt(message.summary_prompt, agent.summary_prompt)
    _copy_prompt(message.clarification_prompt, agent.clarification_prompt)
    _copy_prompt(message.evaluation_prompt, agent.evaluation_prompt)
    if agent.summarization is not None:
        message.summaries.CopyFrom(summaries_message(agent.summarization))
    return message


def key_of_field(field: str) -> str | None:
    """Return the key that a field of a specification comes from, such as `debate.rounds`; None for others."""
    keys = [_KEYS, *(each.key_of_field for each in FORMATS)]
    whole, bracket, inside = field.partition("[")
    known = next((each for each in keys if field in each), None)
    if known is None:  # of an element of a list, the list may be known
        known, field = next((each for each in keys if whole in each), None), whole
    else:
        bracket = inside = ""
    return f"debate.{known[field]}{bracket}{inside}" if known is not None else None


def debate_message(debate: DebateEntry, format_name: str | None = None) -> DebateSpec:
    """Return the settings of a debate, without question and agents; what is not said stays unset.

    The format is the one named, or else the file's.
    """
    spec = DebateSpec(
        max_output_tokens=debate.max_output_tokens or 0,
        history_limit=debate.history_limit,
        domain=debate.domain or "",
    )
    chosen = format_named(format_name or debate.format)
    if chosen is not None:
        chosen.set_settings(spec, debate)
    if debate.interactive_clarifications:
        spec.clarifications.SetInParent()
        spec.clarifications.max_per_agent = debate.clarifications_max_per_agent or 0
        spec.clarifications.max_times = debate.clarifications_max_times or 0
    _set_limits(spec, debate)
    return spec


def _set_limits(spec: DebateSpec, debate: DebateEntry) -> None:
    milliseconds = debate.timeout_per_round
    times = {
        "call": debate.call_timeout_seconds,
        "round": debate.round_timeout_seconds if milliseconds is None else milliseconds / 1000,
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
