"""The command that holds a debate."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from parley.cli.choosing import DEFAULT_FILES, chosen_agents, find_config, spec_of
from parley.cli.context import ContextRead, context_of
from parley.cli.display import say
from parley.cli.early import why_early
from parley.cli.ending import failed, put_out, write_report
from parley.cli.errors import translated
from parley.cli.failures import INTERRUPTED, INVALID_ARGUMENTS, CommandError
from parley.cli.following import Following, Interrupts, PausedError
from parley.cli.halts import ending_text
from parley.cli.naming import command
from parley.cli.output import check_target
from parley.cli.question import question_of
from parley.cli.refusals import located, names_as_roles, refuse_unknown
from parley.cli.system import Link, connected, tell_of_borrowing
from parley.cli.verbose import account
from parley.client import Debate, DebateSpec, GatewayClient, ParleyClient, ParleyError
from parley.config import Agent, ConfigFile
from parley.runtime.errors import is_transport
from parley.v1.orchestrator_pb2 import (
    DEBATE_STATUS_CANCELLED,
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_FAILED,
    ContextDocument,
)

__all__ = ["DebateOptions", "debate"]

_PATIENCE: Final = 30.0
_BORROWED_PATIENCE: Final = 2.0
_TAKEOVERS: Final = 10
"""Times that a borrowed system may end before we do."""


@dataclass(frozen=True, slots=True)
class DebateOptions:
    """The command line of `parley debate`."""

    question: str | None
    problem_description: Path | None
    agents: str | None
    format: str | None
    rounds: int | None
    config: Path | None
    context: Path | None
    max_output_tokens: int | None
    output: Path | None
    report: Path | None
    resume: str | None
    verbose: bool
    server: str | None


def debate(options: DebateOptions) -> int:
    """Holds the debate and returns the exit code; raises CommandError."""
    with translated():
        wanted = _wanted(options)
        return asyncio.run(_Command(options, wanted).run())


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked for: a new debate, or (spec is None) one that is there.

    Attributes:
        notices: What is told once the debate is accepted, one line each.
    """

    spec: DebateSpec | None
    config: ConfigFile | None
    config_path: Path | None
    notices: tuple[str, ...] = ()


def _wanted(options: DebateOptions) -> _Wanted:
    if options.output is not None:
        check_target("--output", options.output)
    if options.resume is not None:
        _refuse_beside_resume(options)
        found = find_config(options.config)
        return _Wanted(None, found, _path_of(found))
    question = question_of(options.question, options.problem_description)
    context = context_of(options.context) if options.context is not None else ContextRead()
    found = find_config(options.config)
    agents = chosen_agents(found, options.agents)
    if options.server is None:
        _refuse_early(options, found, agents)
    spec = spec_of(question, found, agents, options.format, options.rounds, options.max_output_tokens)
    spec.context.extend(ContextDocument(path=path, text=text) for path, text in context.documents)
    notices = [context.notice] if context.notice else []
    return _Wanted(spec, found, _path_of(found), (*_notices(options, found), *notices))


def _refuse_early(
    options: DebateOptions, found: ConfigFile | None, agents: Sequence[Agent | str] | None
) -> None:
    """Refuses, before it starts, what a system of our own would refuse; raises CommandError or ConfigError."""
    from parley.local import running_at

    if running_at() is not None:  # its keys and roles count
        return
    if found is not None:
        described = [each for each in (agents or found.agents) if isinstance(each, Agent)]
        missing = found.missing_key(os.environ, (*described, found.judge))
        if missing is not None:
            raise missing
    # Names are left to a system whose agents are in a file that it finds by itself.
    known = found is not None or not os.environ.get("PARLEY_AGENTS_FILE")
    refuse_unknown(found, agents if known else None, options.format)


def _notices(options: DebateOptions, found: ConfigFile | None) -> list[str]:
    """What holds where nobody said otherwise, and what of the file has no effect."""
    if found is None:
        chosen = options.agents is not None
        return [] if chosen else [f"No {' or '.join(DEFAULT_FILES)} here: the default team debates."]
    overridden = {"agents": options.agents, "debate": options.rounds}
    moot = {found.gaps.get(section) for section, given in overridden.items() if given is not None}
    told = [each for each in found.notices if each not in moot]
    return [*told, *(f"warning: {each}" for each in found.warnings)]


def _path_of(found: ConfigFile | None) -> Path | None:
    return Path(found.places.name) if found is not None else None


def _refuse_beside_resume(options: DebateOptions) -> None:
    beside = {
        "a question": options.question,
        "--problem-description": options.problem_description,
        "--agents": options.agents,
        "--format": options.format,
        "--rounds": options.rounds,
        "--context": options.context,
        "--max-output-tokens": options.max_output_tokens,
    }
    given = [name for name, value in beside.items() if value is not None]
    if given:
        raise CommandError(
            f"--resume goes on with a debate as it was begun; leave out {given[0]}", INVALID_ARGUMENTS
        )


class _Command:
    def __init__(self, options: DebateOptions, wanted: _Wanted) -> None:
        self._options = options
        self._wanted = wanted
        self._request_id = os.urandom(16).hex()
        self._debate_id = options.resume
        self._default_routes: tuple[str, ...] = ()
        self._told_of: set[str] = set()
        self._log: Path | None = None

    async def run(self) -> int:
        with Interrupts() as interrupts:
            try:
                state, report, early = await self._held(interrupts)
            except PausedError:
                return self._paused()
        return self._finish(state, report, early)

    async def _held(self, interrupts: Interrupts) -> tuple[Debate, str | None, str]:
        """The debate at its end, its report and why it ended early.

        Goes over to a system of our own if a borrowed one ends.
        """
        following = Following(interrupts, self._options.server)
        for tries_left in reversed(range(_TAKEOVERS + 1)):
            link: Link | None = None
            try:
                async with self._linked(interrupts) as (link, parley):
                    debate_id = await self._begun(link, parley, following)
                    state = await parley.get(debate_id)
                    early = await why_early(parley, state) if self._options.verbose else ""
                    return state, await self._report(parley, debate_id), early
            except ParleyError as error:
                if link is None or not link.borrowed or not is_transport(error) or not tries_left:
                    raise
        raise AssertionError

    @asynccontextmanager
    async def _linked(self, interrupts: Interrupts) -> AsyncIterator[tuple[Link, ParleyClient]]:
        async with connected(self._options.server, self._wanted.config_path) as link:
            if interrupts.first.is_set():
                raise PausedError
            self._log = link.log
            if link.orchestrator not in self._told_of:
                self._told_of.add(link.orchestrator)
                tell_of_borrowing(link)
            patience = _BORROWED_PATIENCE if link.borrowed else _PATIENCE
            async with ParleyClient(link.orchestrator, patience=patience) as parley:
                yield link, parley

    async def _begun(self, link: Link, parley: ParleyClient, following: Following) -> str:
        """Begins or takes up the debate, follows it to its end, and returns its id."""
        if self._debate_id is None:
            assert self._wanted.spec is not None
            self._debate_id = await self._created(parley, self._wanted.spec)
            for notice in self._wanted.notices:
                say(notice)
            await self._tell_of_model(link, self._wanted.spec)
        elif not await self._resumed(link, parley, self._debate_id, following):
            return self._debate_id
        await following.follow(parley, self._debate_id)
        return self._debate_id

    async def _created(self, parley: ParleyClient, spec: DebateSpec) -> str:
        for is_last in (False, True):
            try:
                return await parley.create_debate(spec, self._request_id)
            except ParleyError as error:
                if is_last or not names_as_roles(error, spec):
                    raise located(error, self._wanted.config, spec) from None
        raise AssertionError

    async def _resumed(self, link: Link, parley: ParleyClient, debate_id: str, following: Following) -> bool:
        """Takes the debate up again; False if it has ended."""
        state = await parley.get(debate_id)
        if state.status in {DEBATE_STATUS_COMPLETED, DEBATE_STATUS_CANCELLED}:
            if state.status == DEBATE_STATUS_COMPLETED and not following.begun:
                say(f"Debate {debate_id} is already completed.")
            return following.begun
        if not following.begun:
            following.pass_over(state.last_sequence)
            await self._tell_of_model(link, state.spec)
        try:
            await parley.resume(debate_id)
        except ParleyError as error:
            # It ended meanwhile, or it runs and nothing needs to be resumed: either way it is followed.
            if error.code != grpc.StatusCode.FAILED_PRECONDITION:
                raise
        return True

    async def _tell_of_model(self, link: Link, spec: DebateSpec) -> None:
        if link.gateway is None:
            return
        async with GatewayClient(link.gateway, patience=_PATIENCE) as gateway:
            listed = await gateway.routes()
        self._default_routes = tuple(listed.default_routes)
        local = {route.name for route in listed.routes if route.local}
        named = [each.agent for each in spec.agents] + ([spec.judge.agent] if spec.HasField("judge") else [])
        used = {name for agent in named for name in (agent.routes or listed.default_routes)}
        if not spec.agents or not spec.HasField("judge"):
            used |= set(listed.default_routes)
        if used & local:
            why = "No key and no base URL is set: a" if link.own else "A"
            say(
                f"{why} small model on this machine answers. "
                "A debate takes it about a minute, and its answers are weak."
            )

    async def _report(self, parley: ParleyClient, debate_id: str) -> str | None:
        if self._options.report is None:
            return None
        try:
            return await parley.report(debate_id)
        except ParleyError as error:
            say(f"warning: --report {self._options.report}: {error.message}")
            return None

    def _paused(self) -> int:
        if self._debate_id is not None:
            say(f"Paused. Go on with: {command()} debate --resume {self._debate_id}")
        return INTERRUPTED

    def _finish(self, state: Debate, report: str | None, early: str) -> int:
        if report is not None and self._options.report is not None:
            write_report(self._options.report, report)
        if self._options.verbose:
            for line in account(state, early):
                sys.stderr.write(f"{line}\n")
        if state.status == DEBATE_STATUS_FAILED:
            say(f"Saved debate {state.id}; go on with: {command()} debate --resume {state.id}")
            raise failed(state, self._wanted.config, self._default_routes, self._log)
        say(f"Saved debate {state.id}; {command()} show {state.id}")
        if state.status == DEBATE_STATUS_CANCELLED:
            raise CommandError(f"debate {state.id} was cancelled")
        if state.ended_by:
            say(f"warning: the debate was {ending_text(state.ended_by)}")
        if not state.HasField("solution"):
            raise CommandError(f"debate {state.id} has no answer; see {command()} show {state.id}")
        put_out(state, self._options.output)
        return 0
