"""The agents, the judge and the evaluators of a file, with their roles, routes and prompts."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from parley.config.entries import AgentEntry, EvaluatorEntry, FileEntry, JudgeEntry, ModelEntry
from parley.config.file import Agent
from parley.config.findings import Findings
from parley.config.own_roles import OwnRole, own_role_named
from parley.config.prompts import Prompt, is_outside, load_prompt
from parley.config.roles import canonical_role
from parley.config.routes import Routes

__all__ = ["DEFAULT_TEAM", "Team"]

DEFAULT_TEAM: Final = ("architect", "performance")


class Team:
    """Those whom a file names."""

    def __init__(
        self,
        file: FileEntry,
        folder: Path,
        routes: Routes,
        roles: Sequence[OwnRole],
        findings: Findings,
    ) -> None:
        """Read prompts from `folder`; note in `findings` what is wrong."""
        self._file = file
        self._folder = folder
        self._routes = routes
        self._roles = roles
        self._findings = findings

    def agents(self) -> tuple[Agent, ...]:
        """Return the enabled agents, in order."""
        if self._file.agents is None:
            self._findings.gap("agents", f"{' and '.join(DEFAULT_TEAM)} debate")
            return tuple(Agent(role, role, role) for role in DEFAULT_TEAM)
        agents: list[Agent] = []
        for number, entry in enumerate(self._file.agents):
            if not entry.enabled:
                continue
            path = f"agents[{number}]"
            identity = entry.id or self._role_name(entry.role)
            if any(identity == other.id for other in agents):
                self._findings.problem(f"{path}.id", f"{identity} is the id of another agent too")
            agents.append(self._agent(entry, identity, path))
        if not agents:
            self._findings.problem("agents", "no agent is left; enable one")
        return tuple(agents)

    def judge(self) -> Agent:
        """Return the judge."""
        entry = self._file.judge
        if entry is None:
            self._findings.gap("judge", "a generalist judges")
            return self._agent(JudgeEntry(), "judge", "")
        if not entry.enabled:
            self._findings.problem("judge.enabled", "the judge cannot be disabled")
        return self._agent(entry, entry.id, "judge")

    def evaluators(self) -> tuple[Agent, ...]:
        """Return the enabled evaluators, in order."""
        evaluators: list[Agent] = []
        for number, entry in enumerate(self._file.evaluators or ()):
            if not entry.enabled:
                continue
            path = f"evaluators[{number}]"
            identity = entry.id or canonical_role(entry.role)
            if any(identity == other.id for other in evaluators):
                self._findings.problem(f"{path}.id", f"{identity} is the id of another evaluator too")
            evaluators.append(self._evaluator(entry, identity, path))
        if self._file.evaluators is not None and not evaluators:
            self._findings.problem("evaluators", "no evaluator is left; enable one")
        return tuple(evaluators)

    def _evaluator(self, entry: EvaluatorEntry, identity: str, path: str) -> Agent:
        for key in ("summary_prompt_path", "clarification_prompt_path", "summarization"):
            if getattr(entry, key) is not None:
                self._findings.notice(f"{path}.{key}", "has no effect here and is passed over")
        judging = dataclasses.replace(
            entry, summary_prompt_path=None, clarification_prompt_path=None, summarization=None
        )
        return dataclasses.replace(
            self._agent(judging, identity, path),
            evaluation_prompt=self._prompt(path, "user_prompt_path", entry.user_prompt_path),
            timeout_seconds=None if entry.timeout is None else entry.timeout / 1000,
        )

    def _agent(self, entry: AgentEntry | JudgeEntry | EvaluatorEntry, identity: str, path: str) -> Agent:
        return Agent(
            id=identity,
            name=entry.name or identity,
            role=self._role_name(entry.role),
            routes=self._routes.of_agent(entry, path),
            temperature=entry.temperature,
            system_prompt=self._prompt(path, "system_prompt_path", entry.system_prompt_path),
            summary_prompt=self._prompt(path, "summary_prompt_path", entry.summary_prompt_path),
            clarification_prompt=self._prompt(
                path, "clarification_prompt_path", entry.clarification_prompt_path
            ),
            summarization=entry.summarization,
            path=path,
            tools=self._tools(entry, path),
            tool_call_limit=entry.tool_call_limit or 0,
            own_role=own_role_named(self._roles, entry.role),
        )

    def _role_name(self, written: str) -> str:
        own = own_role_named(self._roles, written)
        return own.name if own is not None else canonical_role(written)

    def _tools(self, entry: ModelEntry, path: str) -> tuple[str, ...]:
        for number, tool in enumerate(entry.tools):
            if tool in entry.tools[:number]:
                self._findings.problem(f"{path}.tools[{number}]", f"{tool} is there twice")
        return entry.tools

    def _prompt(self, path: str, key: str, written: str | None) -> Prompt | None:
        if written is None:
            return None
        prompt = load_prompt(self._folder, written)
        if isinstance(prompt, Prompt):
            if is_outside(self._folder, prompt.source):
                self._findings.reaches_out(f"{path}.{key}", prompt.source)
            return prompt
        self._findings.warning(f"{path}.{key}", f"{prompt}; the built-in prompt is used")
        return None
