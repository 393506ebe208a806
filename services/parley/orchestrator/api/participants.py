"""The participants of a new debate, checked on arrival: agents that are known by name, and those that a request describes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.model.spec import resolve_agent
from parley.orchestrator.peers.roster import Roster
from parley.orchestrator.roles.catalogue import Roles, UnknownRoleError
from parley.role_file import Role
from parley.runtime.contract_settings import check_settings
from parley.runtime.validation import AGENT_ID, CONTROL_CHARACTER, MAX_PATH_CHARACTERS, Violations
from parley.v1 import agent_pb2, debate_pb2
from parley.v1.agent_pb2 import Agent

if TYPE_CHECKING:  # imported on use: most orchestrators read no page
    from parley.orchestrator.research.sources import WebSources

_MAX_AGENTS = 32
_MAX_PROMPT_BYTES = 64 * 1024
_MAX_SECTIONS = 32
_SYSTEM = "system"
_FALLBACK_ROLES = ("generalist", "judge")
"""The roles whose prompts a caller's own role gets for sections that it lacks: first a debater's, then the judge's."""


class ValidationContext(Struct, frozen=True):
    """What a request is checked against."""

    formats: Formats
    roles: Roles
    roster: Roster
    web: "WebSources | None" = None

    def role_sections(self) -> frozenset[str]:
        """Return the sections that a role may have, for any format."""
        duties = ((each.debater_sections, each.judge_sections) for each in self.formats.all())
        return frozenset().union(*(sections for duty in duties for sections in duty))


class ParticipantResolver(Struct, frozen=True):
    """Resolves the participants of a request, and notes what is wrong with them.

    Attributes:
        instructions: The prompts of each role, by section, by the role's name.
    """

    known: ValidationContext
    violations: Violations
    debate_format: Format | None
    instructions: dict[str, Mapping[str, str]] = msgspec.field(default_factory=dict)

    def resolve_team(self, asked: Sequence[debate_pb2.Participant]) -> tuple[Agent, ...]:
        """Return the agents that debate: those asked for, or else the gateway's default team."""
        self.violations.check(
            that=len(asked) <= _MAX_AGENTS, field="spec.agents", otherwise=f"must be at most {_MAX_AGENTS}"
        )
        if asked:
            fields = [f"spec.agents[{place}]" for place in range(len(asked))]
            found = [self._resolve_agent(field, each) for field, each in zip(fields, asked, strict=True)]
        else:
            found = [
                self._resolve_known_agent("spec.agents", each) for each in self.known.roster.default_team
            ]
            fields = ["spec.agents"] * len(found)
        team = [(field, each) for field, each in zip(fields, found, strict=True) if each is not None]
        self.violations.check(
            that=len({each.id for _, each in team}) == len(team),
            field="spec.agents",
            otherwise="ids must be unique in the debate",
        )
        for field, each in team:
            self._check_debater(field, each)
        for _, each in team:
            self._instruct(each, self._debater_role(each))
        return tuple(each for _, each in team)

    def resolve_judge(self, asked: debate_pb2.Participant | None, team: Sequence[Agent]) -> Agent | None:
        """Return the agent that judges: in the judge's role, whatever its own elsewhere, or in one of the caller's own."""
        if asked is None:
            judge = self._resolve_known_agent("spec.judge", self.known.roster.default_judge)
        else:
            judge = self._resolve_agent("spec.judge", asked)
        if judge is None:
            return None
        if not judge.HasField("own_role"):
            role = self.known.roles.find(judge.role)
            if role is None:
                return None
            sections = self.debate_format.judge_sections if self.debate_format else ()
            judge.role = role.name if role.serves(sections) else "judge"
        self._check_same_prompts(team, judge)
        debates = any(each.role == judge.role for each in team)
        self._instruct(judge, self._role_of(judge, _FALLBACK_ROLES if debates else _FALLBACK_ROLES[::-1]))
        return judge

    def _check_same_prompts(self, team: Sequence[Agent], judge: Agent) -> None:
        """Note different roles of the same name: a debate's roles are recorded by their names."""
        prompts: dict[str, Mapping[str, str] | None] = {}
        for agent in (*team, judge):
            sections = dict(agent.own_role.sections) if agent.HasField("own_role") else None
            if prompts.setdefault(agent.role, sections) != sections:
                message = f"agent {agent.id}: role {agent.role!r} has other prompts than with another agent of this debate"
                self.violations.add("spec.judge" if agent is judge else "spec.agents", message)

    def _check_debater(self, field: str, agent: Agent) -> None:
        role = self._debater_role(agent)
        if role is None or self.debate_format is None or role.serves(self.debate_format.debater_sections):
            return
        message = f"agent {agent.id}: role {role.name!r}"
        if role.serves(self.debate_format.judge_sections):
            self.violations.add(field, f"{message} judges and cannot debate")
        else:
            missing = sorted(self.debate_format.debater_sections - role.prompts.keys())
            name = self.debate_format.name
            self.violations.add(field, f"{message} lacks {', '.join(missing)} for the format {name}")

    def _resolve_agent(self, field: str, asked: debate_pb2.Participant) -> Agent | None:
        match asked.WhichOneof("who"):
            case "agent_id":
                return self._resolve_known_agent(f"{field}.agent_id", asked.agent_id)
            case "agent":
                return self._resolve_described_agent(f"{field}.agent", asked.agent)
            case _:
                self.violations.add(field, "must name or describe an agent")
                return None

    def _resolve_known_agent(self, field: str, agent_id: str) -> Agent | None:
        """Return an agent that the gateway knows; the gateway may give it a role that is unknown here."""
        agents = self.known.roster.agents
        agent = agents.get(agent_id)
        if agent is None:
            known = ", ".join(sorted(agents))
            self.violations.add(field, f"unknown agent {agent_id[:80]!r}; known agents: {known}")
            return None
        if agent.HasField("own_role"):
            return resolve_agent(agent)
        return self._with_role(agent, self._resolve_role_name(field, agent.role, f"agent {agent.id}: "))

    def _resolve_described_agent(self, field: str, agent: agent_pb2.Agent) -> Agent:
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
            role = self._resolve_role_name(f"{field}.role", agent.role)
        for place, route in enumerate(agent.routes):
            check(
                that=roster.has_route(route),
                field=f"{field}.routes[{place}]",
                otherwise=f"unknown route {route[:80]!r}; {roster.describe_routes()}",
            )
        for name in ("system_prompt", "summary_prompt", "clarification_prompt", "evaluation_prompt"):
            if agent.HasField(name):
                text = getattr(agent, name).text
                fine = bool(text.strip()) and len(text.encode()) <= _MAX_PROMPT_BYTES
                check(that=fine, field=f"{field}.{name}.text", otherwise="must not be blank, at most 64 KiB")
        self._check_tools(field, agent)
        check_settings(self.violations, field, agent)
        return self._with_role(agent, role)

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
            that=len(source) <= MAX_PATH_CHARACTERS and not CONTROL_CHARACTER.search(source),
            field=f"{field}.source",
            otherwise=f"must be at most {MAX_PATH_CHARACTERS} characters, none of them a control character",
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
        self._check_sections(field, agent.role, sections)

    def _check_sections(self, field: str, role: str, sections: Mapping[str, str]) -> None:
        known = self.known.role_sections()
        unknown = sorted(sections.keys() - known)
        if unknown:
            names = ", ".join(each[:80] for each in unknown)
            message = f"role {role!r} has sections that nothing reads: {names}; known sections: {', '.join(sorted(known))}"
            self.violations.add(field, message)
        for name, text in sorted(sections.items()):
            fine = bool(text.strip()) and len(text.encode()) <= _MAX_PROMPT_BYTES and "\0" not in text
            otherwise = f"section {name[:80]} of role {role!r} must not be blank, at most 64 KiB, without NUL"
            self.violations.check(that=fine, field=field, otherwise=otherwise)

    def _check_tools(self, field: str, agent: agent_pb2.Agent) -> None:
        check, seen = self.violations.check, set[int]()
        for place, tool in enumerate(agent.tools):
            named = tool in agent_pb2.Tool.values() and tool != agent_pb2.TOOL_UNSPECIFIED
            check(that=named, field=f"{field}.tools[{place}]", otherwise="is not a known tool")
            check(that=tool not in seen, field=f"{field}.tools[{place}]", otherwise="is there twice")
            seen.add(tool)

    def _resolve_role_name(self, field: str, name: str, whose: str = "") -> str:
        """Return the role's own name if `name` is an alias; the name itself if the role is unknown."""
        try:
            return self.known.roles.get(name).name
        except UnknownRoleError as unknown:
            self.violations.add(field, f"{whose}{unknown}")
            return name

    def _with_role(self, agent: Agent, role: str) -> Agent:
        resolved = resolve_agent(agent)
        resolved.role = role
        return resolved

    def _instruct(self, agent: Agent, role: Role | None) -> None:
        """Keep the prompts of an agent's role; of two agents in one role, the latter's count."""
        self.instructions[agent.role] = role.prompts if role is not None else {}

    def _debater_role(self, agent: Agent) -> Role | None:
        """Return the role of an agent that debates; the format's fallback role adds the prompts that it lacks."""
        role = self._role_of(agent, _FALLBACK_ROLES)
        name = self.debate_format.fallback_role if self.debate_format else ""
        fallback = self.known.roles.find(name) if name else None
        if role is None or fallback is None:
            return role
        return Role(role.name, (), {**fallback.prompts, **role.prompts})

    def _role_of(self, agent: Agent, lenders: Sequence[str]) -> Role | None:
        """Return an agent's role; a caller's own role gets the prompts that it lacks for the format from `lenders`, in turn."""
        if not agent.HasField("own_role"):
            return self.known.roles.find(agent.role)
        prompts = dict(agent.own_role.sections)
        needed = (
            self.debate_format.debater_sections | self.debate_format.judge_sections
            if self.debate_format
            else ()
        )
        for lender in filter(None, map(self.known.roles.find, lenders)):
            prompts |= {
                name: lender.prompts[name]
                for name in needed
                if name in lender.prompts and name not in prompts
            }
        return Role(agent.role, (), prompts)
