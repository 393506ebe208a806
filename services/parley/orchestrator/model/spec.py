"""A debate's specification: functions over the contract's messages, which are read-only once it is accepted.

The defaults of unset fields are filled in here, when a debate is accepted: its first event has every setting.
"""

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import Message
from msgspec import Struct

from parley.runtime.contract_settings import defaults_of, with_defaults
from parley.v1.agent_pb2 import TOOL_UNSPECIFIED, Agent, OwnRole, Tool
from parley.v1.debate_pb2 import Debate, DebateLimits, DebateSpec

DEFAULT_LIMITS: Final = defaults_of(DebateLimits)
"""What a debate may take, as the contract says; what is unset, or 0, has no limit."""

_KNOWN_TOOLS: Final = frozenset(Tool.values()) - {TOOL_UNSPECIFIED}
_SETTINGS: Final = {
    field.message_type.full_name: field.name
    for field in DebateSpec.DESCRIPTOR.oneofs_by_name["format_settings"].fields
    if field.message_type
}
"""The field of a specification that holds the settings of each kind."""


class Price(Struct, frozen=True):
    """What a million tokens cost, in millionths of a US dollar."""

    read: int
    written: int


def agents_of(spec: DebateSpec) -> tuple[Agent, ...]:
    """Return the agents of an accepted specification, without the judge."""
    return tuple(each.agent for each in spec.agents)


def participants_of(debate: Debate) -> tuple[Agent, ...]:
    """Return the agents that debate: the specification's or the team chosen of them, then those that joined while it ran."""
    if debate.only_joined_debate:
        return tuple(debate.joined)
    team = debate.team_agent_ids
    return (*(each for each in agents_of(debate.spec) if not team or each.id in team), *debate.joined)


def price_of(agent: Agent) -> Price | None:
    """Return what tokens cost on the dearest of an agent's routes; None: not known."""
    if not agent.HasField("input_price_micros"):
        return None
    return Price(agent.input_price_micros, agent.output_price_micros)


def dearest(prices: Iterable[Price | None]) -> Price | None:
    """Return the highest prices of those that are known; None if none is."""
    known = [each for each in prices if each is not None]
    return Price(max(each.read for each in known), max(each.written for each in known)) if known else None


def resolve_agent(agent: Agent) -> Agent:
    """Return a copy of an agent with its defaults: its id is its name, and unknown numbers of tools are left out."""
    resolved = Agent()
    resolved.CopyFrom(agent)
    resolved.name = agent.name or agent.id
    resolved.tools[:] = [each for each in agent.tools if each in _KNOWN_TOOLS]
    if agent.HasField("summaries"):
        resolved.summaries.enabled = with_defaults(agent.summaries).enabled
    return resolved


def without_sections(agent: Agent) -> Agent:
    """Return a copy of an agent without the prompts of its own role, which are stored outside of the specification."""
    bare = Agent()
    bare.CopyFrom(agent)
    if bare.HasField("own_role"):
        bare.own_role.CopyFrom(OwnRole(source=agent.own_role.source))
    return bare


def with_default_limits(given: DebateLimits, default: DebateLimits) -> DebateLimits:
    """Return the limits of a debate, with the defaults of its format if they are unset, or 0 for tokens and money."""
    limits = DebateLimits()
    limits.CopyFrom(default)
    for field, value in given.ListFields():
        if field.message_type is None:
            setattr(limits, field.name, value)
        else:  # a span of time as a whole: merging would keep the default's fraction of a second
            span = getattr(limits, field.name)
            span.CopyFrom(value)
            span.SetInParent()  # 0 s is set, too
    return limits


def format_settings(spec: DebateSpec) -> Message | None:
    """Return the settings of its format that a specification holds; None if it holds none."""
    name = spec.WhichOneof("format_settings")
    if name is None:
        return None
    settings: Message = getattr(spec, name)
    return settings


def set_format_settings(spec: DebateSpec, settings: Message) -> None:
    """Set the settings of its format in a specification that is being made."""
    getattr(spec, _SETTINGS[settings.DESCRIPTOR.full_name]).CopyFrom(settings)
