"""The request that `parley eval` sends, from its options and the files they name."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from parley.cli.input.agents import participant, select_evaluators
from parley.cli.input.config_file import DEFAULT_FILES
from parley.cli.input.refusals import check_without_system
from parley.cli.input.spec import WAITING_SECONDS
from parley.client import DebateSpec
from parley.config.file import Agent, ConfigFile
from parley.config.messages import debate_message
from parley.v1.orchestrator_pb2 import CreateDebateRequest

EvaluationFormat = Literal["markdown", "json", "csv"]

_FORMAT: Final = "evaluation"
_BY_SUFFIX: Final[dict[str, EvaluationFormat]] = {".json": "json", ".csv": "csv"}


class EvaluationOptions(Struct, frozen=True):
    """The argument and the options of `parley eval`."""

    debate_id: str
    agents: str | None
    model: str | None
    config: Path | None
    proposals: bool
    max_output_tokens: int | None
    format: EvaluationFormat | None
    output: Path | None
    verbose: bool
    server: str | None


def build_evaluation_request(options: EvaluationOptions, found: ConfigFile | None) -> CreateDebateRequest:
    """Return the request for the evaluation, with the debate's id as it was typed. Raise CommandError or ConfigError."""
    evaluators = select_evaluators(found, options.agents)
    if options.server is None:
        check_without_system(found, evaluators, evaluating=True)
    return CreateDebateRequest(request_id=os.urandom(16).hex(), spec=_build_spec(options, found, evaluators))


def output_format(options: EvaluationOptions) -> EvaluationFormat:
    """Return the format of the option, else the one that the output's name ends with, else Markdown."""
    if options.format is not None:
        return options.format
    return _BY_SUFFIX.get(options.output.suffix.lower(), "markdown") if options.output else "markdown"


def _build_spec(
    options: EvaluationOptions, found: ConfigFile | None, evaluators: Sequence[Agent | str] | None
) -> DebateSpec:
    spec = debate_message(found.debate if found is not None else None, _FORMAT)
    spec.evaluation.debate_id = options.debate_id
    spec.evaluation.include_proposals = options.proposals
    for each in evaluators or ():
        spec.agents.append(participant(each))
        if isinstance(each, Agent) and each.timeout_seconds is not None:
            spec.evaluation.timeouts[each.id].FromNanoseconds(round(each.timeout_seconds * 1e9))
    if options.max_output_tokens is not None:
        spec.max_output_tokens = options.max_output_tokens
    if not spec.limits.HasField("waiting"):
        spec.limits.waiting.FromSeconds(WAITING_SECONDS)
    return spec


def evaluation_notices(options: EvaluationOptions, found: ConfigFile | None) -> list[str]:
    """Return what applies by default, and which settings of the file have no effect."""
    if found is None:
        chosen = options.agents is not None
        return [] if chosen else [f"No {' or '.join(DEFAULT_FILES)} here: the default team evaluates."]
    kept = [each for each in found.notices if each not in found.gaps.values()]
    return [*kept, *(f"warning: {each}" for each in found.warnings)]
