"""Requests checked once, whole, at the edge: what comes out is a specification that can be run, or every bad field."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from parley.orchestrator import formats, roles
from parley.orchestrator.agent_translation import agent_from_proto, summaries_from_proto
from parley.orchestrator.ids import AGENT_ID, DEBATE_ID, REQUEST_ID
from parley.orchestrator.roster import Roster
from parley.orchestrator.spec import AgentSpec, ContextDocument, DebateSpec
from parley.orchestrator.translation import (
    concurrency_from_proto,
    limits_from_proto,
    seconds_of,
    termination_from_proto,
)
from parley.runtime.errors import FieldViolation, invalid_argument
from parley.v1 import agent_pb2, orchestrator_pb2

__all__ = ["Violations", "check_id", "spec_of"]

_MOST_QUESTION_BYTES = 256 * 1024
_MOST_CONTEXT_BYTES = 4 * 1024 * 1024
_MOST_PROMPT_BYTES = 64 * 1024
_MOST_TOOL_CALLS = 100
_MOST_PATH_CHARACTERS = 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Violations:
    """The bad fields of one request."""

    def __init__(self) -> None:
        """Start with none."""
        self._found: list[FieldViolation] = []

    def add(self, field: str, description: str) -> None:
        """Note a bad field."""
        self._found.append(FieldViolation(field, description))

    def check(self, *, that: bool, field: str, otherwise: str) -> None:
        """Note a bad field unless something holds."""
        if not that:
            self.add(field, otherwise)

    def refuse(self) -> None:
        """Refuse the request if any field is bad. Raises ParleyError."""
        if self._found:
            raise invalid_argument(self._found)


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


def spec_of(request: orchestrator_pb2.CreateDebateRequest, roster: Roster) -> DebateSpec:
    """Return the specification that a request asks for, agents resolved and defaults filled in.

    Raises:
        ParleyError: INVALID_ARGUMENT with every bad field.
    """
    spec, violations = request.spec, Violations()
    check_request_id(violations, request.request_id)
    _check_texts(violations, spec)
    _check_numbers(violations, spec)
    agents = _Agents(roster, violations)
    team = agents.team(spec.agents)
    judge = agents.judge(spec.judge if spec.HasField("judge") else None)
    resolved = _format(violations, spec.format)
    alone = len(spec.agents or roster.default_team) < 2
    violations.check(
        that=not (alone and spec.termination.rule == orchestrator_pb2.TERMINATION_RULE_CONVERGENCE),
        field="spec.termination.rule",
        otherwise="convergence needs at least two agents",
    )
    violations.refuse()
    return DebateSpec(
        question=spec.question,
        format=resolved,
        agents=team,
        judge=judge,
        rounds=spec.rounds or 3,
        context=tuple(ContextDocument(each.path, each.text) for each in spec.context),
        include_full_history=spec.include_full_history if spec.HasField("include_full_history") else True,
        carry_forward=spec.carry_forward,
        summaries=summaries_from_proto(spec.summaries),
        call_seconds=seconds_of(spec.limits, "call", 90.0),
        limits=limits_from_proto(spec.limits),
        concurrency=concurrency_from_proto(spec),
        max_output_tokens=spec.max_output_tokens,
        termination=termination_from_proto(spec.termination),
        history_limit=spec.history_limit if spec.HasField("history_limit") else 5,
        domain=spec.domain or "general",
    )


def _check_texts(violations: Violations, spec: orchestrator_pb2.DebateSpec) -> None:
    violations.check(that=bool(spec.question.strip()), field="spec.question", otherwise="must not be blank")
    violations.check(
        that="\0" not in spec.question, field="spec.question", otherwise="must not hold a NUL character"
    )
    violations.check(
        that=len(spec.question.encode()) <= _MOST_QUESTION_BYTES,
        field="spec.question",
        otherwise="must be at most 256 KiB",
    )
    violations.check(
        that=len(spec.domain) <= 64, field="spec.domain", otherwise="must be at most 64 characters"
    )
    size = sum(len(each.text.encode()) for each in spec.context)
    violations.check(
        that=size <= _MOST_CONTEXT_BYTES, field="spec.context", otherwise="must be at most 4 MiB together"
    )
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
            that=len(document.path) <= _MOST_PATH_CHARACTERS and not _CONTROL.search(document.path),
            field=field,
            otherwise=f"must be at most {_MOST_PATH_CHARACTERS} characters, none of them a control character",
        )
        seen.add(document.path)


def _check_numbers(violations: Violations, spec: orchestrator_pb2.DebateSpec) -> None:
    limits: Iterable[tuple[str, int, int, int]] = (
        ("spec.rounds", spec.rounds, 0, 100),
        ("spec.max_output_tokens", spec.max_output_tokens, 0, 1_000_000),
        ("spec.summaries.threshold", spec.summaries.threshold, 0, 10_000_000),
        ("spec.summaries.max_length", spec.summaries.max_length, 0, 1_000_000),
        ("spec.termination.threshold_percent", spec.termination.threshold_percent, 0, 100),
        ("spec.history_limit", spec.history_limit, 0, 20),
        ("spec.limits.max_tokens", spec.limits.max_tokens, 0, 1_000_000_000_000),
        ("spec.limits.max_cost_micros", spec.limits.max_cost_micros, 0, 1_000_000_000_000),
        ("spec.max_concurrent_proposals", spec.max_concurrent_proposals, 0, 1024),
        ("spec.max_concurrent_critiques", spec.max_concurrent_critiques, 0, 1024),
        ("spec.max_concurrent_revisions", spec.max_concurrent_revisions, 0, 1024),
    )
    for field, value, least, most in limits:
        violations.check(that=least <= value <= most, field=field, otherwise=f"must be {least} to {most}")
    violations.check(
        that=spec.termination.rule in orchestrator_pb2.TerminationRule.values(),
        field="spec.termination.rule",
        otherwise="is not a known rule",
    )
    violations.check(
        that=spec.synthesis_method in orchestrator_pb2.SynthesisMethod.values(),
        field="spec.synthesis_method",
        otherwise="is not a known method",
    )
    times: Iterable[tuple[str, int, int, str]] = (
        ("call", 1, 3600, "1 second to 1 hour"),
        ("round", 1, 24 * 3600, "1 second to 24 hours"),
        ("total", 1, 7 * 24 * 3600, "1 second to 7 days"),
        ("checkpoint", 1, 7 * 24 * 3600, "1 second to 7 days"),
        ("waiting", 0, 24 * 3600, "0 to 24 hours"),
    )
    for name, shortest, longest, words in times:
        fine = shortest <= seconds_of(spec.limits, name, shortest) <= longest
        violations.check(that=fine, field=f"spec.limits.{name}", otherwise=f"must be {words}")


def _format(violations: Violations, name: str) -> str:
    try:
        return formats.resolve(name or "panel")
    except formats.UnknownFormatError as unknown:
        violations.add("spec.format", str(unknown))
        return ""


@dataclass(frozen=True, slots=True)
class _Agents:
    """Participants checked against what the gateway knows."""

    roster: Roster
    violations: Violations

    def team(self, asked: Sequence[orchestrator_pb2.Participant]) -> tuple[AgentSpec, ...]:
        """Return the agents that debate."""
        if not asked:
            return tuple(_instructed(self.roster.agents[each]) for each in self.roster.default_team)
        self.violations.check(that=len(asked) <= 32, field="spec.agents", otherwise="must be at most 32")
        team = [self._agent(f"spec.agents[{place}]", each) for place, each in enumerate(asked)]
        ids = [each.id for each in team if each is not None]
        self.violations.check(
            that=len(set(ids)) == len(ids), field="spec.agents", otherwise="ids must be unique in the debate"
        )
        for place, each in enumerate(team):
            if each is not None and not roles.get(each.role).can_debate:
                self.violations.add(f"spec.agents[{place}]", f"role {each.role!r} judges and cannot debate")
        return tuple(_instructed(each) for each in team if each is not None)

    def judge(self, asked: orchestrator_pb2.Participant | None) -> AgentSpec:
        """Return the agent that judges. Whatever its role elsewhere, here it is the judge's."""
        default = self.roster.agents[self.roster.default_judge]
        judge = (default if asked is None else self._agent("spec.judge", asked)) or default
        role = judge.role if roles.get(judge.role).can_judge else "judge"
        return _instructed(replace(judge, role=role))

    def _agent(self, field: str, asked: orchestrator_pb2.Participant) -> AgentSpec | None:
        match asked.WhichOneof("who"):
            case "agent_id":
                known = self.roster.agents.get(asked.agent_id)
                ids = ", ".join(sorted(self.roster.agents))
                self.violations.check(
                    that=known is not None,
                    field=f"{field}.agent_id",
                    otherwise=f"unknown agent {asked.agent_id[:80]!r}; known agents: {ids}",
                )
                return known
            case "agent":
                return self._described(f"{field}.agent", asked.agent)
            case _:
                self.violations.add(field, "must name or describe an agent")
                return None

    def _described(self, field: str, agent: agent_pb2.Agent) -> AgentSpec:
        check = self.violations.check
        check(
            that=bool(AGENT_ID.fullmatch(agent.id)),
            field=f"{field}.id",
            otherwise=f"{agent.id[:80]!r} must match [a-z0-9][a-z0-9-]{{0,31}}",
        )
        check(that=len(agent.name) <= 128, field=f"{field}.name", otherwise="must be at most 128 characters")
        role = self._role(f"{field}.role", agent.role)
        for place, route in enumerate(agent.routes):
            check(
                that=self.roster.has_route(route),
                field=f"{field}.routes[{place}]",
                otherwise=f"unknown route {route[:80]!r}; {self.roster.routes_in_words()}",
            )
        if agent.HasField("temperature"):
            check(that=0 <= agent.temperature <= 2, field=f"{field}.temperature", otherwise="must be 0 to 2")
        for name in ("system_prompt", "summary_prompt"):
            if agent.HasField(name):
                text = getattr(agent, name).text
                fine = bool(text.strip()) and len(text.encode()) <= _MOST_PROMPT_BYTES
                check(that=fine, field=f"{field}.{name}.text", otherwise="must not be blank, at most 64 KiB")
        self._check_tools(field, agent)
        found = agent_from_proto(agent)
        return replace(found, name=found.name or found.id, role=role)

    def _check_tools(self, field: str, agent: agent_pb2.Agent) -> None:
        check, seen = self.violations.check, set[int]()
        for place, tool in enumerate(agent.tools):
            named = tool in agent_pb2.Tool.values() and tool != agent_pb2.TOOL_UNSPECIFIED
            check(that=named, field=f"{field}.tools[{place}]", otherwise="is not a known tool")
            check(that=tool not in seen, field=f"{field}.tools[{place}]", otherwise="is there twice")
            seen.add(tool)
        check(
            that=0 <= agent.tool_call_limit <= _MOST_TOOL_CALLS,
            field=f"{field}.tool_call_limit",
            otherwise=f"must be 0 to {_MOST_TOOL_CALLS}",
        )

    def _role(self, field: str, name: str) -> str:
        try:
            return roles.get(name).name
        except roles.UnknownRoleError as unknown:
            self.violations.add(field, str(unknown))
            return "generalist"


def _instructed(agent: AgentSpec) -> AgentSpec:
    return replace(agent, instructions=dict(roles.get(agent.role).prompts))
