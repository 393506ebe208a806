"""Refusals of a new debate: found before a system starts, or located at the option or the line of the file they come from."""

import os
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.input.agents import JUDGE
from parley.client import DebateSpec, ParleyError
from parley.config.errors import ConfigError
from parley.config.file import Agent, ConfigFile
from parley.config.formats import find_format
from parley.config.messages import keys_of_field
from parley.runtime.errors import FieldViolation


def check_without_system(
    found: ConfigFile | None,
    agents: Sequence[Agent | str] | None,
    format: str | None = None,  # noqa: A002 (the option's name)
    *,
    evaluating: bool = False,
) -> None:
    """Check what a system in this process would refuse, before it starts. Raise CommandError or ConfigError.

    `evaluating` says that the agents judge a debate, in any role and without a judge.
    """
    from parley.local import running_system

    if running_system() is not None:  # its keys and roles count
        return
    if found is not None:
        described = [each for each in (agents or found.agents) if isinstance(each, Agent)]
        missing = found.find_missing_key(os.environ, described if evaluating else (*described, found.judge))
        if missing is not None:
            raise missing
    # A system that finds its file of agents by itself checks the names.
    known = found is not None or not os.environ.get("PARLEY_AGENTS_FILE")
    _check_names(found, agents if known else None, format, evaluating=evaluating)


def _check_names(
    found: ConfigFile | None,
    agents: Sequence[Agent | str] | None,
    format: str | None,  # noqa: A002 (the option's name)
    *,
    evaluating: bool,
) -> None:
    """Check formats and roles without starting a system. Raise CommandError or ConfigError."""
    from parley.local import has_format

    roles = _Roles(
        frozenset(each.name for each in found.roles) if found is not None else frozenset(), evaluating
    )
    wrong: list[str] = []
    if format is not None and not has_format(format):
        wrong.append(f"--format: {_unknown_format(format)}")
    unknown = [name for name in agents or () if isinstance(name, str) and not roles.has(name)]
    if unknown:
        wrong.append(f"--agents: {_describe_unknown('role', unknown, roles.list_all())}")
    if wrong:
        raise CommandError(wrong[0], INVALID_ARGUMENTS, tuple(wrong[1:]))
    if found is not None:
        written = None if evaluating or format is not None else found.format
        _check_names_in_file(found, found.agents if agents is None else agents, written, roles)


class _Roles(Struct, frozen=True):
    """The roles that a debate may have, or an evaluation: `own` are those of the file."""

    own: frozenset[str]
    evaluating: bool

    def has(self, role: str) -> bool:
        """Return whether a role may be named."""
        from parley.local import has_role

        return role in self.own or has_role(role, evaluating=self.evaluating)

    def list_all(self) -> list[str]:
        """Return all of them, which takes an import of every format."""
        from parley.local import list_roles

        return sorted({*list_roles(evaluating=self.evaluating), *self.own})


def _check_names_in_file(
    found: ConfigFile,
    agents: Sequence[Agent | str],
    written_format: str | None,
    roles: _Roles,
) -> None:
    """Raise ConfigError if the file names a format or a role that is not known, of its agents or its judge."""
    from parley.local import has_format

    wrong: list[str] = []
    if written_format is not None and not has_format(written_format):
        wrong.append(f"{found.places.of('debate.format')}: {_unknown_format(written_format)}")
    wrong += [
        f"{found.places.of(f'{agent.path}.role')}: {_unusable_role(agent.role, roles.list_all())}"
        for agent in agents
        if isinstance(agent, Agent) and not roles.has(agent.role)
    ]
    judge = found.judge.role
    if not roles.evaluating and found.judge_given and judge != JUDGE and not roles.has(judge):
        wrong.append(
            f"{found.places.of('judge.role')}: {_describe_unknown('role', [judge], [*roles.list_all(), JUDGE])}"
        )
    if wrong:
        raise ConfigError(*wrong)


def check_format_keys(found: ConfigFile | None, format: str | None) -> None:  # noqa: A002 (the option's name)
    """Raise ConfigError for keys of the file's `debate` section that the chosen format does not use."""
    chosen = find_format(format or (found.format if found is not None else None))
    if found is None or chosen is None:
        return
    places = found.places
    unused = chosen.find_unused_keys(lambda key: places.is_written(f"debate.{key}"))
    if unused:
        raise ConfigError(
            *(
                f"{places.of(f'debate.{key}')}: the format {chosen.name} does not use it; {advice}"
                for key, advice in sorted(unused, key=lambda each: places.line(f"debate.{each[0]}"))
            )
        )


def _describe_unknown(kind: str, unknown: Sequence[str], known: Sequence[str]) -> str:
    """Return `unknown role 'securty'; did you mean security? Known roles: …`; no suggestion if none is like a name."""
    from parley.config.reading import find_nearest  # heavy, and needed for mistakes alone

    near = dict.fromkeys(filter(None, (find_nearest(each, known) for each in unknown)))
    what = f"unknown {kind}{'s' if len(unknown) > 1 else ''} {', '.join(map(repr, unknown))}"
    listed = f"{kind}s: {', '.join(known)}"
    return f"{what}; did you mean {', '.join(near)}? Known {listed}" if near else f"{what}; known {listed}"


def _unknown_format(name: str) -> str:
    from parley.local import list_formats

    return _describe_unknown("format", [name], list_formats())


def _unusable_role(role: str, known: Sequence[str]) -> str:
    if role == JUDGE:
        return f"role {JUDGE!r} judges and cannot debate; known roles: {', '.join(known)}"
    return _describe_unknown("role", [role], known)


_AGENT_FIELD: Final = re.compile(r"spec\.agents\[(\d+)\]")
_ROUTE_FIELD: Final = re.compile(r"spec\.(agents\[\d+\]|judge)\.agent\.routes\[\d+\]")
_DOCUMENT_FIELD: Final = re.compile(r"spec\.context(?:\[(\d+)\])?")
_PAGE_FIELD: Final = re.compile(r"spec\.research_pages\[(\d+)\]")
_HOOK_FIELD: Final = re.compile(r"spec\.hook_ids\[(\d+)\]")
_FACT_FIELD: Final = re.compile(r"spec\.environment\.(.+)")
_FORMAT_KEY: Final = "debate.format"
_AGENT_KEYS: Final = frozenset({"role", "routes", "name", "id"})


def locate_refusal(
    error: ParleyError, found: ConfigFile | None, spec: DebateSpec, model: str | None
) -> Exception:
    """Return the refusal of a new debate as an error at the option or the line of the file it comes from."""
    of_model = [each for each in error.violations if model is not None and _ROUTE_FIELD.fullmatch(each.field)]
    if of_model:
        return CommandError(f"--model: {of_model[0].description}", INVALID_ARGUMENTS)
    placed = [_locate(each, found, spec) for each in error.violations]
    return _join([each for each in placed if each is not None]) or error


def _join(placed: Sequence[CommandError | ConfigError]) -> Exception | None:
    """Return one error with all messages, each once; None if there are none."""
    if not placed:
        return None
    of_file = [each for each in placed if isinstance(each, ConfigError)]
    if len(of_file) == len(placed):
        return ConfigError(*dict.fromkeys(problem for each in of_file for problem in each.problems))
    lines = tuple(dict.fromkeys(str(each) for each in placed))
    return CommandError(lines[0], INVALID_ARGUMENTS, lines[1:])


def _locate(
    violation: FieldViolation, found: ConfigFile | None, spec: DebateSpec
) -> CommandError | ConfigError | None:
    field, description = violation.field, violation.description
    if field == "spec.format":
        if found is not None and found.format == spec.format and found.places.is_written(_FORMAT_KEY):
            return ConfigError(f"{found.places.of(_FORMAT_KEY)}: {description}")
        return CommandError(f"--format: {description}", INVALID_ARGUMENTS)
    option = (
        _find_context_option(field, spec)
        or _find_research_option(field, found, spec)
        or _find_plain_option(field, found, spec)
    )
    if option:
        return CommandError(f"{option}{description}", INVALID_ARGUMENTS)
    agent = _AGENT_FIELD.match(field)
    if agent is not None:
        path = _agent_path(int(agent[1]), found, spec)
        if path is None:
            return CommandError(f"--agents: {description}", INVALID_ARGUMENTS)
    else:
        path = "judge" if field.startswith("spec.judge") else _find_key(field, found)
    if found is None or path is None:
        return None
    key = field.rpartition(".")[2]
    if ".own_role" in field:
        key = "role"
    place = found.places.of(f"{path}.{key}" if key in _AGENT_KEYS else path)
    return ConfigError(f"{place}: {description}")


def _find_context_option(field: str, spec: DebateSpec) -> str:
    """Return how a message on documents begins; empty for another setting."""
    document = _DOCUMENT_FIELD.match(field)
    if document is None:
        return ""
    return f"--context: {spec.context[int(document[1])].path!r} " if document[1] else "--context: "


def _find_research_option(field: str, found: ConfigFile | None, spec: DebateSpec) -> str:
    """Return how a message on an option of research begins; empty for another setting, and for one of the file."""
    page = _PAGE_FIELD.fullmatch(field)
    if page is not None:
        written = found is not None and any(map(found.places.is_written, keys_of_field(field)))
        return "" if written else f"--page {spec.research_pages[int(page[1])]}: "
    options = {"spec.research": "--research: ", "spec.research_pages": "--page: "}
    return "" if field not in options or _find_key(field, found) is not None else options[field]


def _find_plain_option(field: str, found: ConfigFile | None, spec: DebateSpec) -> str:
    """Return how a message on the question, a label, a fact or a hook begins; empty for another setting, and for one of the file."""
    if _find_key(field, found) is not None:
        return ""
    if hook := _HOOK_FIELD.fullmatch(field):
        return f"--hook {spec.hook_ids[int(hook[1])]}: "
    if fact := _FACT_FIELD.fullmatch(field):
        return f"--fact {fact[1]}: "
    options = {
        "spec.question": "the question ",
        "spec.labels": "--label: ",
        "spec.environment": "--fact: ",
        "spec.hook_ids": "--hook: ",
    }
    return options.get(field, "")


def _find_key(field: str, found: ConfigFile | None) -> str | None:
    """Return the key of the file that a setting comes from; None if the file does not contain it."""
    if found is None:
        return None
    keys = keys_of_field(field)
    lists = tuple(key.partition("[")[0] for key in keys)
    return next((each for each in (*keys, *lists) if found.places.is_written(each)), None)


def _agent_path(number: int, found: ConfigFile | None, spec: DebateSpec) -> str | None:
    """Return the path in the file of an agent of the specification; None if it is not from a file."""
    if found is None or number >= len(spec.agents):
        return None
    paths = {each.id: each.path for each in found.agents if each.path}
    return paths.get(spec.agents[number].agent.id)
