"""The specification of a new debate."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.input.agents import participant
from parley.client import DebateSpec
from parley.config.file import Agent, ConfigFile
from parley.config.formats import FORMATS, find_format
from parley.config.messages import agent_message, debate_message

WAITING_SECONDS: Final = 90
"""Long enough for a model server to restart and for its circuit breaker to close; each wait is reported when it begins."""


def build_spec(
    question: str,
    found: ConfigFile | None,
    agents: Sequence[Agent | str] | None,
    format: str | None,  # noqa: A002 (the option's name)
    rounds: int | None,
    max_output_tokens: int | None,
    *,
    clarify: bool | None,
    of_format: Mapping[str, str],
) -> DebateSpec:
    """Return the specification; the orchestrator sets what neither the file nor an option contains.

    Unavailable providers are waited for up to 90 seconds, unless the file has another limit. Raise CommandError for rounds
    in a format that is not known here, and for an option that the format does not have.
    """
    debate = found.debate if found is not None else None
    if debate is not None and clarify is not None:
        debate = replace(debate, interactive_clarifications=clarify)
    chosen = format or (debate.format if debate is not None else None)
    spec = debate_message(debate, chosen)
    if debate is None and clarify:
        spec.clarifications.SetInParent()
    spec.question = question
    spec.agents.extend(participant(agent) for agent in agents or ())
    if found is not None and found.judge_given:
        spec.judge.agent.CopyFrom(agent_message(found.judge))
    spec.format = chosen or ""
    if rounds is not None:
        _set_rounds(spec, chosen, rounds)
    for name, value in of_format.items():
        _set_option(spec, chosen, name, value)
    if max_output_tokens is not None:
        spec.max_output_tokens = max_output_tokens
    if not spec.limits.HasField("waiting"):
        spec.limits.waiting.FromSeconds(WAITING_SECONDS)
    return spec


def _set_rounds(spec: DebateSpec, format: str | None, rounds: int) -> None:  # noqa: A002 (the option's name)
    chosen = find_format(format)
    if chosen is None:
        raise CommandError(
            f"--rounds: the settings of format {format!r} are not known here", INVALID_ARGUMENTS
        )
    if rounds > chosen.max_rounds:
        message = f"--rounds: must be at most {chosen.max_rounds} in the format {chosen.name}"
        raise CommandError(message, INVALID_ARGUMENTS)
    chosen.set_rounds(spec, rounds)


def _set_option(spec: DebateSpec, format: str | None, name: str, value: str) -> None:  # noqa: A002 (the option's name)
    chosen = find_format(format)
    if chosen is None or name not in chosen.options:
        having = ", ".join(each.name for each in FORMATS if name in each.options)
        raise CommandError(f"{option_name(name, value)}: only for --format {having}", INVALID_ARGUMENTS)
    chosen.set_option(spec, name, value)


def option_name(name: str, value: str) -> str:
    """Return the option as it was typed: `--team`, or `--no-trickster` for a switch that is `off`."""
    return f"--no-{name}" if value == "off" else f"--{name}"
