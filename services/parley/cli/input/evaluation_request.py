"""What `parley eval` is asked to do, from its options and the files they name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from parley.cli.input.agents import participant, select_evaluators
from parley.cli.input.config_file import DEFAULT_FILES, find_config
from parley.cli.input.debate_request import DebateOptions, DebateRequest
from parley.cli.input.output_path import check_output_path
from parley.cli.input.refusals import check_without_system
from parley.cli.input.spec import WAITING_SECONDS
from parley.client import DebateSpec
from parley.config import Agent, ConfigFile, DebateEntry
from parley.config.messages import debate_message

__all__ = ["EvaluationFormat", "EvaluationOptions", "debate_options", "evaluation_request", "output_format"]

EvaluationFormat = Literal["markdown", "json", "csv"]

_FORMAT: Final = "evaluation"
_BY_SUFFIX: Final[dict[str, EvaluationFormat]] = {".json": "json", ".csv": "csv"}


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """The command line of `parley eval`."""

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


def evaluation_request(options: EvaluationOptions) -> DebateRequest:
    """Return what the options ask for; the debate's id stands there as it was written. Raise CommandError or ConfigError."""
    if options.output is not None:
        check_output_path("--output", options.output)
    found = find_config(options.config, evaluators=True)
    evaluators = select_evaluators(found, options.agents)
    if options.server is None:
        check_without_system(found, evaluators, evaluating=True)
    path = Path(found.places.name) if found is not None else None
    return DebateRequest(_spec(options, found, evaluators), found, path, tuple(_notices(options, found)))


def output_format(options: EvaluationOptions) -> EvaluationFormat:
    """Return the format that was asked for, else the one that the output's name says, else Markdown."""
    if options.format is not None:
        return options.format
    return _BY_SUFFIX.get(options.output.suffix.lower(), "markdown") if options.output else "markdown"


def debate_options(options: EvaluationOptions) -> DebateOptions:
    """Return the options of the debate that an evaluation is."""
    return DebateOptions(
        question=None,
        problem_description=None,
        agents=options.agents,
        format=_FORMAT,
        clarify=False,
        model=options.model,
        rounds=None,
        protocol=None,
        sequential=None,
        topology=None,
        voting=None,
        team=None,
        trickster=None,
        observer=None,
        perspectives=None,
        max_rounds=None,
        checkpoints=None,
        config=options.config,
        context=None,
        max_output_tokens=options.max_output_tokens,
        labels=(),
        output=options.output,
        report=None,
        resume=None,
        list_debates=False,
        verbose=options.verbose,
        quiet=False,
        progress=None,
        server=options.server,
    )


def _spec(
    options: EvaluationOptions, found: ConfigFile | None, evaluators: Sequence[Agent | str] | None
) -> DebateSpec:
    spec = debate_message(found.debate if found is not None else DebateEntry(), _FORMAT)
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


def _notices(options: EvaluationOptions, found: ConfigFile | None) -> list[str]:
    if found is None:
        chosen = options.agents is not None
        return [] if chosen else [f"No {' or '.join(DEFAULT_FILES)} here: the default team evaluates."]
    told = [each for each in found.notices if each not in found.gaps.values()]
    return [*told, *(f"warning: {each}" for each in found.warnings)]
