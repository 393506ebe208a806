"""A configuration as messages of the contract, and the keys that their fields come from."""

from typing import TYPE_CHECKING

from parley.config.contract_keys import find_key, set_keys
from parley.config.file import Agent
from parley.config.formats import CONCURRENCY_KEYS, FORMAT_SETTINGS, find_format
from parley.config.prompts import Prompt
from parley.v1 import agent_pb2
from parley.v1.debate_pb2 import Clarifications, DebateSpec

if TYPE_CHECKING:  # heavy: what reads a file brings it along
    from parley.config.entries import DebateEntry


def agent_message(agent: Agent) -> agent_pb2.Agent:
    """Return the agent as it travels."""
    message = agent_pb2.Agent(
        id=agent.id,
        name=agent.name,
        role=agent.role,
        routes=agent.routes,
        temperature=agent.temperature,
        tools=[agent_pb2.Tool.Value(f"TOOL_{each.upper()}") for each in agent.tools],
        tool_call_limit=agent.tool_call_limit,
        stronger=agent.stronger,
    )
    if agent.own_role is not None:
        message.own_role.sections.update(agent.own_role.sections)
        message.own_role.source = agent.own_role.source
    _copy_prompt(message.system_prompt, agent.system_prompt)
    _copy_prompt(message.summary_prompt, agent.summary_prompt)
    _copy_prompt(message.clarification_prompt, agent.clarification_prompt)
    _copy_prompt(message.evaluation_prompt, agent.evaluation_prompt)
    if agent.summarization is not None:
        message.summaries.SetInParent()
        set_keys(message.summaries, agent.summarization)
    return message


def keys_of_field(field: str) -> tuple[str, ...]:
    """Return the keys that may set a field of a specification, such as `debate.rounds`; none for what is no setting."""
    below, _, label = field.removeprefix("spec.").rpartition(".")
    key: str | None
    if below == "concurrency":
        key = CONCURRENCY_KEYS.get(label)
    elif below == "clarifications":
        key = find_key(Clarifications.DESCRIPTOR, label)
    elif label == "clarifications":
        key = "interactive_clarifications"
    else:
        key = find_key(DebateSpec.DESCRIPTOR, field.removeprefix("spec."))
    also = ("debate.timeout_per_round",) if key == "round_timeout_seconds" else ()
    return () if key is None else (f"debate.{key}", *also)


def debate_message(debate: "DebateEntry | None", format_name: str | None = None) -> DebateSpec:
    """Return the settings of a debate, without question and agents; what is not said stays unset. None: no file says anything.

    The format is the one named, or else the file's.
    """
    spec = DebateSpec()
    if debate is None:
        return spec
    chosen = find_format(format_name or debate.format)
    name = chosen.name if chosen is not None else ""
    set_keys(spec, debate, but={each.name for each in FORMAT_SETTINGS.fields} - {name})
    if chosen is not None and chosen.has_concurrency:
        for label, key in CONCURRENCY_KEYS.items():
            if limit := getattr(debate, key):
                spec.concurrency[label] = limit
    if debate.interactive_clarifications:
        spec.clarifications.SetInParent()
        set_keys(spec.clarifications, debate)
    if debate.timeout_per_round is not None:
        spec.limits.round.FromMilliseconds(debate.timeout_per_round)
    return spec


def _copy_prompt(target: agent_pb2.PromptText, prompt: Prompt | None) -> None:
    if prompt is not None:
        target.text, target.source = prompt.text, prompt.source
