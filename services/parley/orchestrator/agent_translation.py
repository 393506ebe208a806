"""Between agents, with what belongs to them, and protobuf. A number that names no tool is passed over."""

from collections.abc import Mapping
from typing import Final

from parley.orchestrator.events import ToolCall
from parley.orchestrator.spec import AgentSpec, Prompt, SummarySettings
from parley.v1 import agent_pb2

__all__ = [
    "agent_from_proto",
    "agent_to_proto",
    "summaries_from_proto",
    "summaries_to_proto",
    "tool_call_from_proto",
    "tool_call_to_proto",
]

_TOOL: Final = "TOOL_"
_MOST_ARGUMENT_CHARACTERS: Final = 500
_TOOLS: Final[Mapping[int, str]] = {
    number: name.removeprefix(_TOOL).lower() for name, number in agent_pb2.Tool.items() if number
}


def tool_call_from_proto(call: agent_pb2.ToolCall) -> ToolCall:
    """Return a use of a tool as it is recorded."""
    return ToolCall(call.name, call.arguments[:_MOST_ARGUMENT_CHARACTERS], call.failed, call.characters)


def tool_call_to_proto(call: ToolCall) -> agent_pb2.ToolCall:
    """Return a use of a tool."""
    return agent_pb2.ToolCall(
        name=call.name, arguments=call.arguments, failed=call.failed, characters=call.characters
    )


def agent_from_proto(agent: agent_pb2.Agent) -> AgentSpec:
    """Return an agent; one without a name is called by its id, and numbers that name no tool are passed over."""
    return AgentSpec(
        id=agent.id,
        name=agent.name or agent.id,
        role=agent.role,
        routes=tuple(agent.routes),
        temperature=agent.temperature if agent.HasField("temperature") else None,
        system_prompt=_prompt(agent.system_prompt) if agent.HasField("system_prompt") else None,
        summary_prompt=_prompt(agent.summary_prompt) if agent.HasField("summary_prompt") else None,
        summaries=summaries_from_proto(agent.summaries) if agent.HasField("summaries") else None,
        tools=tuple(_TOOLS[each] for each in agent.tools if each in _TOOLS),
        tool_call_limit=agent.tool_call_limit,
    )


def agent_to_proto(agent: AgentSpec) -> agent_pb2.Agent:
    """Return an agent; what it leaves to others stays unset."""
    return agent_pb2.Agent(
        id=agent.id,
        name=agent.name,
        role=agent.role,
        routes=agent.routes,
        temperature=agent.temperature,
        system_prompt=_prompt_to_proto(agent.system_prompt),
        summary_prompt=_prompt_to_proto(agent.summary_prompt),
        summaries=summaries_to_proto(agent.summaries) if agent.summaries else None,
        tools=[agent_pb2.Tool.Value(_TOOL + each.upper()) for each in agent.tools],
        tool_call_limit=agent.tool_call_limit,
    )


def summaries_from_proto(settings: agent_pb2.SummarySettings) -> SummarySettings:
    """Return settings with the defaults in place of what is unset."""
    default = SummarySettings()
    return SummarySettings(
        enabled=settings.enabled if settings.HasField("enabled") else default.enabled,
        threshold=settings.threshold or default.threshold,
        max_length=settings.max_length or default.max_length,
    )


def summaries_to_proto(settings: SummarySettings) -> agent_pb2.SummarySettings:
    """Return settings with every field set."""
    return agent_pb2.SummarySettings(
        enabled=settings.enabled, threshold=settings.threshold, max_length=settings.max_length
    )


def _prompt(prompt: agent_pb2.PromptText) -> Prompt:
    return Prompt(text=prompt.text, source=prompt.source)


def _prompt_to_proto(prompt: Prompt | None) -> agent_pb2.PromptText | None:
    return agent_pb2.PromptText(text=prompt.text, source=prompt.source) if prompt else None
