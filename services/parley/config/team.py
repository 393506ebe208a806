"""The agents, the judge and the evaluators of a file, with their roles, routes and prompts."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from parley.config.entries import AgentEntry, EvaluatorEntry, FileEntry, JudgeEntry, ModelEntry
from parley.config.file import DEFAULT_TEAM, Agent
from parley.config.findings import Findings
from parley.config.prompts import Prompt, is_outside, load_prompt
from parley.config.roles import OwnRole, canonical_role, find_own_role
from parley.config.routes import Routes


class Team:
    """Those whom a file names."""

    def __init__(
        self, file: FileEntry, folder: Path, routes: Routes, roles: Sequence[OwnRole], findings: Findings
    ) -> None:
        """Read prompts from `folder`; note in `findings` what is wrong."""
        self._file = file
        self._folder = folder
        self._routes = routes
        self._roles = roles
        self._findings = findings

    def build_agents(self) -> tuple[Agent, ...]:
        """Return the enabled agents, in order."""
        if self._file.agents is None:
            self._findings.add_gap("agents", f"{' and '.join(DEFAULT_TEAM)} debate")
            return tuple(Agent(role, role, role) for role in DEFAULT_TEAM)
        agents: list[Agent] = []
        for number, entry in enumerate(self._file.agents):
            if not entry.enabled:
                continue
            path = f"agents[{number}]"
            identity = entry.id or self._role_name(entry.role)
            if any(identity == other.id for other in agents):
                self._findings.add_problem(f"{path}.id", f"{identity} is the id of another agent too")
            agents.append(self._build_agent(entry, identity, path))
        if not agents:
            what = (
                "no agent is left; enable one"
                if self._file.agents
                else "there is none; name one, or leave `agents` out"
            )
            self._findings.add_problem("agents", what)
        return tuple(agents)

    def build_judge(self) -> Agent:
        """Return the judge."""
        entry = self._file.judge
        if entry is None:
            self._findings.add_gap("judge", "a generalist judges")
            return self._build_agent(JudgeEntry(), "judge", "")
        if not entry.enabled:
            self._findings.add_problem("judge.enabled", "the judge cannot be disabled")
        if entry.stronger and not (entry.model or entry.routes or entry.provider):
            self._findings.add_problem(
                "judge.stronger", "needs the judge's model or routes; say `stronger` of a route otherwise"
            )
        return structs.replace(self._build_agent(entry, entry.id, "judge"), stronger=entry.stronger)

    def build_evaluators(self) -> tuple[Agent, ...]:
        """Return the enabled evaluators, in order."""
        evaluators: list[Agent] = []
        for number, entry in enumerate(self._file.evaluators or ()):
            if not entry.enabled:
                continue
            path = f"evaluators[{number}]"
            identity = entry.id or canonical_role(entry.role)
            if any(identity == other.id for other in evaluators):
                self._findings.add_problem(f"{path}.id", f"{identity} is the id of another evaluator too")
            evaluators.append(self._build_evaluator(entry, identity, path))
        if self._file.evaluators is not None and not evaluators:
            self._findings.add_problem("evaluators", "no evaluator is left; enable one")
        return tuple(evaluators)

    def _build_evaluator(self, entry: EvaluatorEntry, identity: str, path: str) -> Agent:
        for key in ("summary_prompt_path", "clarification_prompt_path", "summarization"):
            if getattr(entry, key) is not None:
                self._findings.add_notice(f"{path}.{key}", "has no effect here and is passed over")
        judging = dataclasses.replace(
            entry, summary_prompt_path=None, clarification_prompt_path=None, summarization=None
        )
        return structs.replace(
            self._build_agent(judging, identity, path),
            evaluation_prompt=self._load_prompt(path, "user_prompt_path", entry.user_prompt_path),
            timeout_seconds=None if entry.timeout is None else entry.timeout / 1000,
        )

    def _build_agent(
        self, entry: AgentEntry | JudgeEntry | EvaluatorEntry, identity: str, path: str
    ) -> Agent:
        return Agent(
            id=identity,
            name=entry.name or identity,
            role=self._role_name(entry.role),
            routes=self._routes.select_routes(entry, path),
            temperature=entry.temperature,
            system_prompt=self._load_prompt(path, "system_prompt_path", entry.system_prompt_path),
            summary_prompt=self._load_prompt(path, "summary_prompt_path", entry.summary_prompt_path),
            clarification_prompt=self._load_prompt(
                path, "clarification_prompt_path", entry.clarification_prompt_path
            ),
            summarization=entry.summarization,
            path=path,
            tools=self._check_tools(entry, path),
            tool_call_limit=entry.tool_call_limit or 0,
            own_role=find_own_role(self._roles, entry.role),
        )

    def _role_name(self, written: str) -> str:
        own = find_own_role(self._roles, written)
        return own.name if own is not None else canonical_role(written)

    def _check_tools(self, entry: ModelEntry, path: str) -> tuple[str, ...]:
        for number, tool in enumerate(entry.tools):
            if tool in entry.tools[:number]:
                self._findings.add_problem(f"{path}.tools[{number}]", f"{tool} is there twice")
        return entry.tools

    def _load_prompt(self, path: str, key: str, written: str | None) -> Prompt | None:
        if written is None:
            return None
        prompt = load_prompt(self._folder, written)
        if isinstance(prompt, Prompt):
            if is_outside(self._folder, prompt.source):
                self._findings.add_outside(f"{path}.{key}", prompt.source)
            return prompt
        self._findings.add_warning(f"{path}.{key}", f"{prompt}; the built-in prompt is used")
        return None
