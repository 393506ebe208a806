"""The request that `parley debate` sends, from its question, its options and the files they name."""

import os
import sys
from pathlib import Path

from msgspec import Struct

from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.input.agents import select_agents
from parley.cli.input.config_file import DEFAULT_FILES
from parley.cli.input.context_documents import Context
from parley.cli.input.refusals import check_format_keys, check_without_system
from parley.cli.input.spec import build_spec, option_name
from parley.cli.person import can_ask, is_terminal
from parley.cli.printing import Style
from parley.client import DebateSpec
from parley.config.file import ConfigFile
from parley.config.formats import find_format
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.orchestrator_pb2 import CreateDebateRequest


class DebateOptions(Struct, frozen=True):
    """The options of `parley debate`."""

    problem_description: Path | None
    agents: str | None
    format: str | None
    model: str | None
    rounds: int | None
    effort: str | None
    protocol: str | None
    topology: str | None
    voting: str | None
    sequential: bool | None
    team: int | None
    trickster: bool | None
    observer: bool | None
    perspectives: int | None
    max_rounds: int | None
    checkpoints: bool | None
    config: Path | None
    context: Path | None
    facts: tuple[tuple[str, str], ...]
    research: bool | None
    pages: tuple[str, ...]
    clarify: bool | None
    no_history: bool
    no_patterns: bool
    no_knowledge: bool
    max_output_tokens: int | None
    context_tokens: int | None
    labels: tuple[tuple[str, str], ...]
    hooks: tuple[str, ...]
    output: Path | None
    report: Path | None
    resume: str | None
    list_debates: bool
    verbose: bool
    quiet: bool
    progress: Style | None
    server: str | None

    @property
    def of_format(self) -> dict[str, str]:
        """The given options that are settings of a format."""
        named = {
            "effort": self.effort,
            "protocol": self.protocol,
            "topology": self.topology,
            "voting": self.voting,
            "sequential": _switch_value(self.sequential),
            "team": self.team,
            "trickster": _switch_value(self.trickster),
            "observer": _switch_value(self.observer),
            "perspectives": self.perspectives,
            "max-rounds": self.max_rounds,
            "checkpoints": _switch_value(self.checkpoints),
        }
        return {name: str(value) for name, value in named.items() if value is not None}

    @property
    def style(self) -> Style | None:
        """How progress is shown; None: as the terminal allows."""
        return "lines" if self.quiet else self.progress


def check_debate_options(question: str | None, options: DebateOptions) -> None:
    """Raise CommandError for options that contradict each other."""
    if options.rounds is not None and options.max_rounds is not None:
        raise CommandError(
            "--rounds and --max-rounds mean the same; leave one of them out", INVALID_ARGUMENTS
        )
    if options.rounds is not None and options.effort == "quick":
        raise CommandError(
            "--effort quick asks for drafts alone, without rounds; leave out --rounds or --effort",
            INVALID_ARGUMENTS,
        )
    if options.research is False and options.pages:
        raise CommandError(
            "--no-research reads no page; leave out --page or --no-research", INVALID_ARGUMENTS
        )
    unused = _new_debate_options(question, options) if options.resume is not None else []
    if unused:
        raise CommandError(
            f"--resume continues a debate with its own settings; leave out {unused[0]}", INVALID_ARGUMENTS
        )


def build_debate_request(
    question: str, context: Context, options: DebateOptions, found: ConfigFile | None
) -> CreateDebateRequest:
    """Return the request for a new debate. Raise CommandError or ConfigError if the options or the file do not allow it."""
    check_clarifications(found, options.clarify)
    agents = select_agents(found, options.agents)
    if options.server is None:
        check_without_system(found, agents, options.format)
    check_format_keys(found, options.format)
    spec = build_spec(
        question,
        found,
        agents,
        options.format,
        options.rounds,
        options.max_output_tokens,
        clarify=options.clarify,
        of_format=options.of_format,
    )
    spec.context.extend(ContextDocument(path=path, text=text) for path, text in context.documents)
    spec.environment.update(options.facts)
    _set_research(spec, options)
    if options.no_history:
        spec.history_limit = 0
    if options.no_patterns:
        spec.patterns = False
    if options.no_knowledge:
        spec.knowledge = False
    spec.labels.update(options.labels)
    spec.hook_ids.extend(options.hooks)
    return CreateDebateRequest(request_id=os.urandom(16).hex(), spec=spec)


def _set_research(spec: DebateSpec, options: DebateOptions) -> None:
    """Set what is read for the debate: what the options say counts before the file."""
    if options.research is not None:
        spec.research = options.research
    elif options.pages:
        spec.ClearField("research")  # who names a page wants it read
    if options.research is False:
        spec.ClearField("research_pages")
    spec.research_pages.extend(options.pages)


def check_list_options(question: str | None, options: DebateOptions) -> None:
    """Raise CommandError for options that `--list` does not use."""
    others = {"--resume": options.resume, "--config": options.config, "--output": options.output}
    given = [
        *(name for name in _new_debate_options(question, options) if name not in {"--format", "--label"}),
        *(name for name, value in {**others, "--report": options.report}.items() if value is not None),
    ]
    if given:
        raise CommandError(f"--list lists debates and starts none; leave out {given[0]}", INVALID_ARGUMENTS)


def config_notices(options: DebateOptions, found: ConfigFile | None) -> list[str]:
    """Return notices: what applies by default, and which settings of the file have no effect."""
    if found is None:
        chosen = options.agents is not None
        return [] if chosen else [f"No {' or '.join(DEFAULT_FILES)} here: the default team debates."]
    overridden = {"agents": options.agents, "debate": options.rounds or options.effort}
    moot = {found.gaps.get(section) for section, given in overridden.items() if given is not None}
    kept = [each for each in found.notices if each not in moot]
    return [*kept, *(f"warning: {each}" for each in found.warnings)]


def context_tokens_notice(options: DebateOptions) -> str | None:
    """Return a notice if the size of the context is given for models that a server asks."""
    if options.server is None or options.context_tokens is None:
        return None
    return "warning: --context-tokens is for models that are asked from here; set PARLEY_CONTEXT_TOKENS at the server"


def apply_unattended_defaults(spec: DebateSpec) -> str | None:
    """Apply the format's defaults for runs without a terminal, and return a notice about them."""
    chosen = find_format(spec.format)
    return chosen.go_unattended(spec) if chosen is not None and not can_ask() else None


def _switch_value(given: bool | None) -> str | None:  # noqa: FBT001 - None: not given
    return None if given is None else "on" if given else "off"


def _new_debate_options(question: str | None, options: DebateOptions) -> list[str]:
    """Return the names of the given options that only a new debate can have."""
    others = {
        "a question": question,
        "--problem-description": options.problem_description,
        "--agents": options.agents,
        "--format": options.format,
        "--model": options.model,
        "--rounds": options.rounds,
        **{option_name(name, value): value for name, value in options.of_format.items()},
        "--context": options.context,
        "--fact": options.facts or None,
        "--no-research" if options.research is False else "--research": options.research,
        "--page": options.pages or None,
        "--no-clarify" if options.clarify is False else "--clarify": options.clarify,
        "--no-history": options.no_history or None,
        "--no-patterns": options.no_patterns or None,
        "--no-knowledge": options.no_knowledge or None,
        "--max-output-tokens": options.max_output_tokens,
        "--label": options.labels or None,
        "--hook": options.hooks or None,
    }
    return [name for name, value in others.items() if value is not None]


def check_clarifications(found: ConfigFile | None, clarify: bool | None) -> None:  # noqa: FBT001 (the option)
    """Raise CommandError if the option or the file asks for clarifications and there is no terminal."""
    of_file = clarify is None and found is not None and found.wants_clarifications
    if not (clarify or of_file):
        return
    missing = [
        name for name, stream in (("stdin", sys.stdin), ("stderr", sys.stderr)) if not is_terminal(stream)
    ]
    if not missing:
        return
    why = f"the agents ask on a terminal, and {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} none"
    if found is not None and of_file:
        place = found.places.of("debate.interactive_clarifications")
        raise CommandError(f"{place}: {why}; --no-clarify begins without asking", INVALID_ARGUMENTS)
    raise CommandError(f"--clarify: {why}; leave it out to begin without asking", INVALID_ARGUMENTS)
