"""Requests checked once, whole, at the edge: what comes out is a specification that can be run, or every bad field."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from parley.orchestrator.api.labels import check_labels
from parley.orchestrator.engine.format import Format, Formats, Settings, UnknownFormatError
from parley.orchestrator.model.conversion import (
    agent_from_proto,
    clarifications_from_proto,
    format_settings,
    limits_from_proto,
)
from parley.orchestrator.model.spec import (
    DEFAULT_DOMAIN,
    DEFAULT_HISTORY_LIMIT,
    AgentSpec,
    ContextDocument,
    DebateSpec,
)
from parley.orchestrator.peers.roster import Roster
from parley.orchestrator.roles.catalogue import Roles, UnknownRoleError
from parley.role_file import Role
from parley.runtime.errors import FieldViolation, invalid_argument
from parley.runtime.validation import AGENT_ID, CONTROL_CHARACTER, DEBATE_ID, REQUEST_ID, Violations
from parley.v1 import agent_pb2, debate_pb2, orchestrator_pb2

__all__ = ["Known", "check_id", "check_request_id", "spec_of"]

_MAX_AGENTS = 32
_MAX_QUESTION_BYTES = 256 * 1024
_MAX_DOCUMENTS = 2000
_MAX_CONTEXT_BYTES = 4 * 1024 * 1024
_MAX_PROMPT_BYTES = 64 * 1024
_MAX_TOOL_CALLS = 100
_MAX_SECTIONS = 32
_SYSTEM = "system"
_LENDERS = ("generalist", "judge")
"""Whose words a role of one's own has where it says none itself: first those of an agent that debates, then the judge's."""
_MAX_PATH_CHARACTERS = 1024
_MAX_CONCURRENCY = 1024


@dataclass(frozen=True, slots=True)
class Known:
    """What a request is checked against."""

    formats: Formats
    roles: Roles
    roster: Roster

    def sections(self) -> frozenset[str]:
        """Return what roles may be told, by any format."""
        duties = ((each.debater_sections, each.judge_sections) for each in self.formats.all())
        return frozenset().union(*(sections for duty in duties for sections in duty))


def check_id(field: str, debate_id: str) -> str:
    """Return a well-formed debate id. Raises ParleyError for any other."""
    if not DEBATE_ID.fullmatch(debate_id):
        raise invalid_argument([FieldViolation(field, f"{debate_id[:80]!r} is not a debate id")])
    return debate_id


def check_request_id(violations: Violations, request_id: str) -> None:
    """Note a request id that is missing or has the wrong form."""
    violations.check(
        that=bool(REQUEST_ID.fullmatch(request_id)),
        field="request_id",
        otherwise="must be 1 to 128 characters of A-Z a-z 0-9 . _ -",
    )


def spec_of(request: orchestrator_pb2.CreateDebateRequest, known: Known) -> DebateSpec:
    """Return the specification that a request asks for, agents resolved and defaults filled in.

    Raises:
        ParleyError: INVALID_ARGUMENT with every bad field.
    """
    spec, violations = request.spec, Violations()
    check_request_id(violations, request.request_id)
    debate_format = _format(violations, spec, known.formats)
    _check_question(violations, spec.question, debate_format)
    _check_texts(violations, spec)
    check_labels(violations, "spec.labels", spec.labels)
    _check_numbers(violations, spec)
    count = len(spec.agents or known.roster.default_team)
    _check_settings(violations, spec, known.formats, count)
    kind = _kind_of_settings(violations, spec, debate_format) if debate_format else None
    _check_concurrency(violations, spec.concurrency, debate_format)
    agents = _Agents(known, violations, debate_format)
    team = agents.team(spec.agents)
    judge = agents.judge(spec.judge if spec.HasField("judge") else None, team)
    given = format_settings(spec)
    if kind is not None and given is not None and len(team) == count:
        kind.check_names(violations, given, [each.id for each in team])
    violations.refuse()
    assert debate_format is not None
    assert judge is not None
    demonstration = any(map(known.roster.demonstrates, (*team, judge)))
    return DebateSpec(
        question=spec.question,
        format=debate_format.id,
        agents=team,
        judge=judge,
        context=tuple(ContextDocument(each.path, each.text) for each in spec.context),
        limits=limits_from_proto(spec.limits, debate_format.limits),
        concurrency=dict(spec.concurrency),
        max_output_tokens=spec.max_output_tokens,
        history_limit=spec.history_limit if spec.HasField("history_limit") else DEFAULT_HISTORY_LIMIT,
        domain=spec.domain or DEFAULT_DOMAIN,
        labels=dict(spec.labels),
        settings=kind.completed(format_settings(spec), is_demonstration=demonstration) if kind else None,
        clarifications=clarifications_from_proto(spec),
        demonstration=demonstration,
    )


def _format(violations: Violations, spec: debate_pb2.DebateSpec, formats: Formats) -> Format | None:
    name = spec.format or spec.WhichOneof("format_settings") or formats.default()
    try:
        return formats.get(name)
    except UnknownFormatError as unknown:
        violations.add("spec.format", str(unknown))
        return None


def _check_settings(
    violations: Violations, spec: debate_pb2.DebateSpec, formats: Formats, agents: int
) -> None:
    """Check the settings by their own format: the debate's may be another one, or not known."""
    given = format_settings(spec)
    kind = formats.settings(spec.WhichOneof("format_settings") or "")
    if given is not None and kind is not None:
        kind.check(violations, given, agents)


def _kind_of_settings(
    violations: Violations, spec: debate_pb2.DebateSpec, debate_format: Format
) -> Settings | None:
    """Return the settings that the debate's format has, if any; note where those of another one are given."""
    given, kind = format_settings(spec), debate_format.settings
    if given is not None and (kind is None or spec.WhichOneof("format_settings") != kind.name):
        name = spec.WhichOneof("format_settings")
        violations.add(f"spec.{name}", f"are settings of another format than {debate_format.name}")
        return None
    return kind


def _check_concurrency(
    violations: Violations, concurrency: Mapping[str, int], debate_format: Format | None
) -> None:
    for label, count in sorted(concurrency.items()):
        field = f"spec.concurrency.{label[:80]}"
        violations.check_range(field, count, 1, _MAX_CONCURRENCY)
        if debate_format is not None and label not in debate_format.concurrency:
            known = ", ".join(sorted(debate_format.concurrency)) or "none"
            violations.add(field, f"is no label of the format {debate_format.name}; known labels: {known}")


def _check_question(violations: Violations, question: str, debate_format: Format | None) -> None:
    field = "spec.question"
    if debate_format is not None and debate_format.subject is not None:
        otherwise = "must be empty: what is debated is another debate"
        violations.check(that=not question, field=field, otherwise=otherwise)
        return
    violations.check(that=bool(question.strip()), field=field, otherwise="must not be blank")
    violations.check(that="\0" not in question, field=field, otherwise="must not hold a NUL character")
    violations.check(
        that=len(question.encode()) <= _MAX_QUESTION_BYTES, field=field, otherwise="must be at most 256 KiB"
    )


def _check_texts(violations: Violations, spec: debate_pb2.DebateSpec) -> None:
    violations.check_label("spec.domain", spec.domain)
    size = sum(len(each.text.encode()) for each in spec.context)
    violations.check(
        that=size <= _MAX_CONTEXT_BYTES, field="spec.context", otherwise="must be at most 4 MiB together"
    )
    if len(spec.context) > _MAX_DOCUMENTS:
        violations.add(
            "spec.context", f"has {len(spec.context)} documents, at most {_MAX_DOCUMENTS} are allowed"
        )
        return
    seen: set[str] = set()
    for place, document in enumerate(spec.context):
        path, field = PurePosixPath(document.path), f"spec.context[{place}].path"
        fine = (
            document.path and not path.is_absolute() and ".." not in path.parts and document.path not in seen
        )
        violations.check(
            that=bool(fine),
            field=field,
            otherwise="must be a relative path without '..', unique in the debate",
        )
        violations.check(
            that=len(document.path) <= _MAX_PATH_CHARACTERS and not CONTROL_CHARACTER.search(document.path),
            field=field,
            otherwise=f"must be at most {_MAX_PATH_CHARACTERS} characters, none of them a control character",
        )
        seen.add(document.path)


def _check_numbers(violations: Violations, spec: debate_pb2.DebateSpec) -> None:
    ranges: Iterable[tuple[str, int, int]] = (
        ("spec.max_output_tokens", spec.max_output_tokens, 1_000_000),
        ("spec.history_limit", spec.history_limit, 20),
        ("spec.clarifications.max_per_agent", spec.clarifications.max_per_agent, 5),
        ("spec.clarifications.max_times", spec.clarifications.max_times, 3),
        ("spec.limits.max_tokens", spec.limits.max_tokens, 1_000_000_000_000),
        ("spec.limits.max_cost_micros", spec.limits.max_cost_micros, 1_000_000_000_000),
    )
    for field, value, maximum in ranges:
        violations.check_range(field, value, 0, maximum)
    times: Iterable[tuple[str, int, int, str]] = (
        ("call", 1, 3600, "1 second to 1 hour"),
        ("round", 1, 24 * 3600, "1 second to 24 hours"),
        ("total", 1, 7 * 24 * 3600, "1 second to 7 days"),
        ("checkpoint", 1, 7 * 24 * 3600, "1 second to 7 days"),
        ("waiting", 0, 24 * 3600, "0 to 24 hours"),
    )
    for name, shortest, longest, words in times:
        if spec.limits.HasField(name):  # type: ignore[arg-type]
            seconds = getattr(spec.limits, name).ToMilliseconds() / 1000
            fine = shortest <= seconds <= longest
            violations.check(that=fine, field=f"spec.limits.{name}", otherwise=f"must be {words}")


@dataclass(frozen=True, slots=True)
class _Agents:
    """Participants checked against what is known."""

    known: Known
    violations: Violations
    debate_format: Format | None

    def team(self, asked: Sequence[debate_pb2.Participant]) -> tuple[AgentSpec, ...]:
        """Return the agents that debate: those asked for, or else the gateway's default team."""
        self.violations.check(
            that=len(asked) <= _MAX_AGENTS, field="spec.agents", otherwise=f"must be at most {_MAX_AGENTS}"
        )
        if asked:
            fields = [f"spec.agents[{place}]" for place in range(len(asked))]
            found = [self._agent(field, each) for field, each in zip(fields, asked, strict=True)]
        else:
            found = [self._named("spec.agents", each) for each in self.known.roster.default_team]
            fields = ["spec.agents"] * len(found)
        team = [(field, each) for field, each in zip(fields, found, strict=True) if each is not None]
        self.violations.check(
            that=len({each.id for _, each in team}) == len(team),
            field="spec.agents",
            otherwise="ids must be unique in the debate",
        )
        for field, each in team:
            self._check_debater(field, each)
        return tuple(self._instructed_debater(each) for _, each in team)

    def judge(self, asked: debate_pb2.Participant | None, team: Sequence[AgentSpec]) -> AgentSpec | None:
        """Return the agent that judges: in the judge's role, whatever its own elsewhere, or in one of the caller's own."""
        if asked is None:
            judge = self._named("spec.judge", self.known.roster.default_judge)
        else:
            judge = self._agent("spec.judge", asked)
        if judge is None:
            return None
        if judge.own_role is None:
            role = self.known.roles.known(judge.role)
            if role is None:
                return None
            sections = self.debate_format.judge_sections if self.debate_format else ()
            judge = replace(judge, role=role.name if role.serves(sections) else "judge")
        self._check_same_words(team, judge)
        debates = any(each.role == judge.role for each in team)
        return self._instructed(judge, _LENDERS if debates else _LENDERS[::-1])

    def _check_same_words(self, team: Sequence[AgentSpec], judge: AgentSpec) -> None:
        """Refuse two roles of one name: what is recorded of a debate's roles goes by their names."""
        words: dict[str, Mapping[str, str] | None] = {}
        for agent in (*team, judge):
            told = agent.own_role.sections if agent.own_role is not None else None
            if words.setdefault(agent.role, told) != told:
                said = f"agent {agent.id}: role {agent.role!r} has other prompts than with another agent of this debate"
                self.violations.add("spec.judge" if agent is judge else "spec.agents", said)

    def _check_debater(self, field: str, agent: AgentSpec) -> None:
        role = self._debater_role(agent)
        if role is None or self.debate_format is None or role.serves(self.debate_format.debater_sections):
            return
        said = f"agent {agent.id}: role {role.name!r}"
        if role.serves(self.debate_format.judge_sections):
            self.violations.add(field, f"{said} judges and cannot debate")
        else:
            missing = sorted(self.debate_format.debater_sections - role.prompts.keys())
            name = self.debate_format.name
            self.violations.add(field, f"{said} lacks {', '.join(missing)} for the format {name}")

    def _agent(self, field: str, asked: debate_pb2.Participant) -> AgentSpec | None:
        match asked.WhichOneof("who"):
            case "agent_id":
                return self._named(f"{field}.agent_id", asked.agent_id)
            case "agent":
                return self._described(f"{field}.agent", asked.agent)
            case _:
                self.violations.add(field, "must name or describe an agent")
                return None

    def _named(self, field: str, agent_id: str) -> AgentSpec | None:
        """Return an agent that the gateway knows; it may give one a role that is not known here."""
        agents = self.known.roster.agents
        agent = agents.get(agent_id)
        if agent is None:
            known = ", ".join(sorted(agents))
            self.violations.add(field, f"unknown agent {agent_id[:80]!r}; known agents: {known}")
            return None
        if agent.own_role is not None:
            return agent
        return replace(agent, role=self._role(field, agent.role, f"agent {agent.id}: "))

    def _described(self, field: str, agent: agent_pb2.Agent) -> AgentSpec:
        check, roster = self.violations.check, self.known.roster
        check(
            that=bool(AGENT_ID.fullmatch(agent.id)),
            field=f"{field}.id",
            otherwise=f"{agent.id[:80]!r} must match {AGENT_ID.pattern}",
        )
        check(that=len(agent.name) <= 128, field=f"{field}.name", otherwise="must be at most 128 characters")
        role = agent.role
        if agent.HasField("own_role"):
            self._check_own_role(field, agent)
        else:
            role = self._role(f"{field}.role", agent.role)
        for place, route in enumerate(agent.routes):
            check(
                that=roster.has_route(route),
                field=f"{field}.routes[{place}]",
                otherwise=f"unknown route {route[:80]!r}; {roster.routes_in_words()}",
            )
        if agent.HasField("temperature"):
            check(that=0 <= agent.temperature <= 2, field=f"{field}.temperature", otherwise="must be 0 to 2")
        for name in ("system_prompt", "summary_prompt", "clarification_prompt", "evaluation_prompt"):
            if agent.HasField(name):
                text = getattr(agent, name).text
                fine = bool(text.strip()) and len(text.encode()) <= _MAX_PROMPT_BYTES
                check(that=fine, field=f"{field}.{name}.text", otherwise="must not be blank, at most 64 KiB")
        self._check_tools(field, agent)
        return replace(agent_from_proto(agent), role=role)

    def _check_own_role(self, field: str, agent: agent_pb2.Agent) -> None:
        check, sections = self.violations.check, agent.own_role.sections
        check(
            that=bool(AGENT_ID.fullmatch(agent.role)),
            field=f"{field}.role",
            otherwise=f"{agent.role[:80]!r} must match {AGENT_ID.pattern}",
        )
        field = f"{field}.own_role"
        source = agent.own_role.source
        check(
            that=len(source) <= _MAX_PATH_CHARACTERS and not CONTROL_CHARACTER.search(source),
            field=f"{field}.source",
            otherwise=f"must be at most {_MAX_PATH_CHARACTERS} characters, none of them a control character",
        )
        check(
            that=len(sections) <= _MAX_SECTIONS,
            field=field,
            otherwise=f"must have at most {_MAX_SECTIONS} sections",
        )
        check(
            that=_SYSTEM in sections,
            field=field,
            otherwise=f"role {agent.role!r} lacks the section {_SYSTEM}",
        )
        unknown = sorted(sections.keys() - self.known.sections())
        if unknown:
            names, known = ", ".join(each[:80] for each in unknown), ", ".join(sorted(self.known.sections()))
            said = f"role {agent.role!r} has sections that nothing reads: {names}; known sections: {known}"
            self.violations.add(field, said)
        for name, text in sorted(sections.items()):
            fine = bool(text.strip()) and len(text.encode()) <= _MAX_PROMPT_BYTES and "\0" not in text
            otherwise = (
                f"section {name[:80]} of role {agent.role!r} must not be blank, at most 64 KiB, without NUL"
            )
            check(that=fine, field=field, otherwise=otherwise)

    def _check_tools(self, field: str, agent: agent_pb2.Agent) -> None:
        check, seen = self.violations.check, set[int]()
        for place, tool in enumerate(agent.tools):
            named = tool in agent_pb2.Tool.values() and tool != agent_pb2.TOOL_UNSPECIFIED
            check(that=named, field=f"{field}.tools[{place}]", otherwise="is not a known tool")
            check(that=tool not in seen, field=f"{field}.tools[{place}]", otherwise="is there twice")
            seen.add(tool)
        self.violations.check_range(f"{field}.tool_call_limit", agent.tool_call_limit, 0, _MAX_TOOL_CALLS)

    def _role(self, field: str, name: str, whose: str = "") -> str:
        """Return the role's own name where this one is an alias, and the name as it is where the role is not known."""
        try:
            return self.known.roles.get(name).name
        except UnknownRoleError as unknown:
            self.violations.add(field, f"{whose}{unknown}")
            return name

    def _instructed_debater(self, agent: AgentSpec) -> AgentSpec:
        role = self._debater_role(agent)
        return replace(agent, instructions=dict(role.prompts) if role is not None else {})

    def _debater_role(self, agent: AgentSpec) -> Role | None:
        """Return the role of an agent that debates; what it lacks, the format's stand-in may lend."""
        role = self._role_of(agent, _LENDERS)
        name = self.debate_format.stand_in_role if self.debate_format else ""
        stand_in = self.known.roles.known(name) if name else None
        if role is None or stand_in is None:
            return role
        return Role(role.name, (), {**stand_in.prompts, **role.prompts})

    def _instructed(self, agent: AgentSpec, lenders: Sequence[str]) -> AgentSpec:
        role = self._role_of(agent, lenders)
        return replace(agent, instructions=dict(role.prompts) if role is not None else {})

    def _role_of(self, agent: AgentSpec, lenders: Sequence[str]) -> Role | None:
        """Return an agent's role; one of the caller's own with what it lacks for the format from these others, in turn."""
        if agent.own_role is None:
            return self.known.roles.known(agent.role)
        prompts = dict(agent.own_role.sections)
        needed = (
            self.debate_format.debater_sections | self.debate_format.judge_sections
            if self.debate_format
            else ()
        )
        for lender in filter(None, map(self.known.roles.known, lenders)):
            prompts |= {
                name: lender.prompts[name]
                for name in needed
                if name in lender.prompts and name not in prompts
            }
        return Role(agent.role, (), prompts)
