"""Between the specification of a debate and the contract's messages. Nothing is decided here but what unset means."""

from collections.abc import Mapping
from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.model.spec import (
    AgentSpec,
    Clarifications,
    ContextDocument,
    DebateSpec,
    Limits,
    OwnRole,
    Price,
    Prompt,
    SummarySettings,
)
from parley.orchestrator.model.times import duration
from parley.v1 import agent_pb2, debate_pb2

__all__ = [
    "agent_from_proto",
    "agent_to_proto",
    "clarifications_from_proto",
    "format_settings",
    "limits_from_proto",
    "spec_from_proto",
    "spec_to_proto",
    "summaries_from_proto",
    "summaries_to_proto",
]

_TOOL: Final = "TOOL_"
_TOOLS: Final[Mapping[int, str]] = {
    number: name.removeprefix(_TOOL).lower() for name, number in agent_pb2.Tool.items() if number
}
_SETTINGS: Final = {
    field.message_type.full_name: field.name
    for field in debate_pb2.DebateSpec.DESCRIPTOR.oneofs_by_name["format_settings"].fields
    if field.message_type
}
"""The field of a specification that holds the settings of each kind."""


def agent_from_proto(agent: agent_pb2.Agent, instructions: Mapping[str, str] | None = None) -> AgentSpec:
    """Return an agent; one without a name is called by its id, and numbers that name no tool are passed over."""
    return AgentSpec(
        id=agent.id,
        name=agent.name or agent.id,
        role=agent.role,
        routes=tuple(agent.routes),
        temperature=agent.temperature if agent.HasField("temperature") else None,
        system_prompt=_prompt(agent.system_prompt) if agent.HasField("system_prompt") else None,
        summary_prompt=_prompt(agent.summary_prompt) if agent.HasField("summary_prompt") else None,
        clarification_prompt=(
            _prompt(agent.clarification_prompt) if agent.HasField("clarification_prompt") else None
        ),
        evaluation_prompt=_prompt(agent.evaluation_prompt) if agent.HasField("evaluation_prompt") else None,
        summaries=summaries_from_proto(agent.summaries) if agent.HasField("summaries") else None,
        instructions=dict(instructions or {}),
        tools=tuple(_TOOLS[each] for each in agent.tools if each in _TOOLS),
        tool_call_limit=agent.tool_call_limit,
        context_tokens=agent.context_tokens,
        own_role=(
            OwnRole(dict(agent.own_role.sections), agent.own_role.source)
            if agent.HasField("own_role")
            else None
        ),
        price=(
            Price(agent.input_price_micros, agent.output_price_micros)
            if agent.HasField("input_price_micros")
            else None
        ),
    )


def agent_to_proto(agent: AgentSpec) -> agent_pb2.Agent:
    """Return an agent without its role's instructions; what it leaves to others stays unset."""
    return agent_pb2.Agent(
        id=agent.id,
        name=agent.name,
        role=agent.role,
        routes=agent.routes,
        temperature=agent.temperature,
        system_prompt=_prompt_to_proto(agent.system_prompt),
        summary_prompt=_prompt_to_proto(agent.summary_prompt),
        clarification_prompt=_prompt_to_proto(agent.clarification_prompt),
        evaluation_prompt=_prompt_to_proto(agent.evaluation_prompt),
        summaries=summaries_to_proto(agent.summaries) if agent.summaries else None,
        tools=[agent_pb2.Tool.Value(_TOOL + each.upper()) for each in agent.tools],
        tool_call_limit=agent.tool_call_limit,
        context_tokens=agent.context_tokens,
        own_role=agent_pb2.OwnRole(source=agent.own_role.source) if agent.own_role else None,
        input_price_micros=agent.price.read if agent.price else None,
        output_price_micros=agent.price.written if agent.price else None,
    )


def summaries_from_proto(settings: agent_pb2.SummarySettings) -> SummarySettings:
    """Return settings; summaries are made unless it is said that they are not."""
    return SummarySettings(
        enabled=settings.enabled if settings.HasField("enabled") else True,
        threshold=settings.threshold,
        max_length=settings.max_length,
    )


def summaries_to_proto(settings: SummarySettings) -> agent_pb2.SummarySettings:
    """Return settings with every field set."""
    return agent_pb2.SummarySettings(
        enabled=settings.enabled, threshold=settings.threshold, max_length=settings.max_length
    )


def limits_from_proto(limits: debate_pb2.DebateLimits, default: Limits) -> Limits:
    """Return the limits of a debate, with the defaults of its format in place of what is unset."""

    def seconds(name: str, otherwise: float) -> float:
        if not limits.HasField(name):  # type: ignore[arg-type]
            return otherwise
        return float(getattr(limits, name).ToMilliseconds() / 1000)

    return Limits(
        call_seconds=seconds("call", default.call_seconds),
        round_seconds=seconds("round", default.round_seconds),
        total_seconds=seconds("total", default.total_seconds),
        checkpoint_seconds=seconds("checkpoint", default.checkpoint_seconds),
        waiting_seconds=seconds("waiting", default.waiting_seconds),
        max_tokens=limits.max_tokens or default.max_tokens,
        max_cost_micros=limits.max_cost_micros or default.max_cost_micros,
    )


def clarifications_from_proto(spec: debate_pb2.DebateSpec) -> Clarifications | None:
    """Return what agents may ask before the debate, with the defaults in place of what is unset."""
    if not spec.HasField("clarifications"):
        return None
    default, given = Clarifications(), spec.clarifications
    return Clarifications(given.max_per_agent or default.max_per_agent, given.max_times or default.max_times)


def format_settings(spec: debate_pb2.DebateSpec) -> Message | None:
    """Return the settings of its format that a specification holds; None where it holds none."""
    name = spec.WhichOneof("format_settings")
    if name is None:
        return None
    held: Message = getattr(spec, name)
    return held


def spec_from_proto(spec: debate_pb2.DebateSpec, instructions: Mapping[str, Mapping[str, str]]) -> DebateSpec:
    """Return a specification that `spec_to_proto` made, with the instructions of each agent's role."""

    def agent(participant: debate_pb2.Participant) -> AgentSpec:
        return agent_from_proto(participant.agent, instructions.get(participant.agent.role, {}))

    return DebateSpec(
        question=spec.question,
        format=spec.format,
        agents=tuple(map(agent, spec.agents)),
        judge=agent(spec.judge),
        context=tuple(ContextDocument(each.path, each.text) for each in spec.context),
        limits=limits_from_proto(spec.limits, Limits()),
        concurrency=dict(spec.concurrency),
        max_output_tokens=spec.max_output_tokens,
        history_limit=spec.history_limit,
        domain=spec.domain,
        labels=dict(spec.labels),
        settings=format_settings(spec),
        clarifications=clarifications_from_proto(spec),
    )


def spec_to_proto(spec: DebateSpec) -> debate_pb2.DebateSpec:
    """Return a specification with its agents inline and every setting said."""
    message = debate_pb2.DebateSpec(
        question=spec.question,
        context=[debate_pb2.ContextDocument(path=each.path, text=each.text) for each in spec.context],
        format=spec.format,
        agents=[debate_pb2.Participant(agent=agent_to_proto(agent)) for agent in spec.agents],
        judge=debate_pb2.Participant(agent=agent_to_proto(spec.judge)),
        limits=_limits_to_proto(spec.limits),
        concurrency=spec.concurrency,
        max_output_tokens=spec.max_output_tokens,
        history_limit=spec.history_limit,
        domain=spec.domain,
        labels=spec.labels,
    )
    if spec.clarifications is not None:
        message.clarifications.max_per_agent = spec.clarifications.max_per_agent
        message.clarifications.max_times = spec.clarifications.max_times
    if spec.settings is not None:
        getattr(message, _SETTINGS[spec.settings.DESCRIPTOR.full_name]).CopyFrom(spec.settings)
    return message


def _limits_to_proto(limits: Limits) -> debate_pb2.DebateLimits:
    return debate_pb2.DebateLimits(
        call=duration(limits.call_seconds),
        round=duration(limits.round_seconds),
        total=duration(limits.total_seconds) if limits.total_seconds else None,
        checkpoint=duration(limits.checkpoint_seconds),
        waiting=duration(limits.waiting_seconds),
        max_tokens=limits.max_tokens,
        max_cost_micros=limits.max_cost_micros,
    )


def _prompt(prompt: agent_pb2.PromptText) -> Prompt:
    return Prompt(text=prompt.text, source=prompt.source)


def _prompt_to_proto(prompt: Prompt | None) -> agent_pb2.PromptText | None:
    return agent_pb2.PromptText(text=prompt.text, source=prompt.source) if prompt else None
