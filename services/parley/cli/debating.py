"""The command that holds a debate."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import grpc

from parley.cli.choosing import DEFAULT_FILES, chosen_agents, find_config, of_role, spec_of
from parley.cli.display import Display, display, say
from parley.cli.errors import is_provider_failure, translated
from parley.cli.failures import GENERAL, INTERRUPTED, INVALID_ARGUMENTS, PROVIDER_FAILED, CommandError
from parley.cli.output import debate_json, report_path, solution_text, write
from parley.cli.question import question_of
from parley.cli.system import Link, connected
from parley.cli.verbose import account
from parley.client import Debate, DebateEvent, DebateSpec, GatewayClient, ParleyClient, ParleyError
from parley.config import Agent, ConfigError, ConfigFile
from parley.runtime.errors import is_transport
from parley.v1.orchestrator_pb2 import (
    DEBATE_STATUS_CANCELLED,
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_FAILED,
    DebateFailure,
)

__all__ = ["DebateOptions", "debate"]

_PATIENCE: Final = 30.0
_BORROWED_PATIENCE: Final = 2.0
_TAKEOVERS: Final = 10
"""Times that a borrowed system may end before we do."""
_PAUSE_SECONDS: Final = 10.0
_CLOSING_SECONDS: Final = 2.0
_UNKNOWN_AGENT: Final = re.compile(r"spec\.agents\[(\d+)\]\.agent_id")
_AGENT_FIELD: Final = re.compile(r"spec\.agents\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class DebateOptions:
    """The command line of `parley debate`."""

    question: str | None
    problem_description: Path | None
    agents: str | None
    format: str | None
    rounds: int | None
    config: Path | None
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
    """What is asked for: a new debate, or (spec is None) one that is there."""

    spec: DebateSpec | None
    config: ConfigFile | None
    config_path: Path | None


def _wanted(options: DebateOptions) -> _Wanted:
    if options.resume is not None:
        _refuse_beside_resume(options)
        found = find_config(options.config)
        return _Wanted(None, found, _path_of(found))
    question = question_of(options.question, options.problem_description)
    found = find_config(options.config)
    agents = chosen_agents(found, options.agents)
    if found is None:
        say(
            f"no {' or '.join(DEFAULT_FILES)} here; the default team debates, unless --agents or --config says more"
        )
    else:
        for line in (*found.notices, *(f"warning: {each}" for each in found.warnings)):
            say(line)
        if options.server is None:
            debating = agents if agents is not None else found.agents
            described = [each for each in debating if isinstance(each, Agent)]
            missing = found.missing_key(os.environ, (*described, found.judge))
            if missing is not None:
                raise missing
    spec = spec_of(question, found, agents, options.format, options.rounds, options.max_output_tokens)
    return _Wanted(spec, found, _path_of(found))


def _path_of(found: ConfigFile | None) -> Path | None:
    return Path(found.places.name) if found is not None else None


def _refuse_beside_resume(options: DebateOptions) -> None:
    beside = {
        "a question": options.question,
        "--problem-description": options.problem_description,
        "--agents": options.agents,
        "--format": options.format,
        "--rounds": options.rounds,
        "--max-output-tokens": options.max_output_tokens,
    }
    given = [name for name, value in beside.items() if value is not None]
    if given:
        raise CommandError(
            f"--resume goes on with a debate as it was begun; leave out {given[0]}", INVALID_ARGUMENTS
        )


class _Interrupts:
    """Ctrl-C: the first is noted, a second leaves at once."""

    def __init__(self) -> None:
        self.first = asyncio.Event()

    def __enter__(self) -> Self:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _interrupt(self) -> None:
        if self.first.is_set():
            os._exit(INTERRUPTED)  # what was recorded is durable; nothing waits to be written
        self.first.set()


class _InterruptedError(Exception):
    """Ctrl-C came; the debate is left as it is."""


class _Command:
    def __init__(self, options: DebateOptions, wanted: _Wanted) -> None:
        self._options = options
        self._wanted = wanted
        self._request_id = os.urandom(16).hex()
        self._debate_id = options.resume
        self._last = 0
        self._told_of_model = False
        self._log: Path | None = None

    async def run(self) -> int:
        with _Interrupts() as interrupts:
            try:
                state, report = await self._held(interrupts)
            except _InterruptedError:
                return self._interrupted()
        return self._finish(state, report)

    async def _held(self, interrupts: _Interrupts) -> tuple[Debate, str | None]:
        """The debate at its end and its report; goes over to a system of our own if a borrowed one ends."""
        for tries_left in reversed(range(_TAKEOVERS + 1)):
            link: Link | None = None
            try:
                async with self._linked(interrupts) as (link, parley):
                    await self._begin(link, parley, interrupts)
                    assert self._debate_id is not None
                    state = await parley.get(self._debate_id)
                    return state, await self._report(parley)
            except ParleyError as error:
                if link is None or not link.borrowed or not is_transport(error) or not tries_left:
                    raise
        raise AssertionError

    @asynccontextmanager
    async def _linked(self, interrupts: _Interrupts) -> AsyncIterator[tuple[Link, ParleyClient]]:
        async with connected(self._options.server, self._wanted.config_path) as link:
            if interrupts.first.is_set():
                raise _InterruptedError
            self._log = link.log
            patience = _BORROWED_PATIENCE if link.borrowed else _PATIENCE
            async with ParleyClient(link.orchestrator, patience=patience) as parley:
                yield link, parley

    async def _begin(self, link: Link, parley: ParleyClient, interrupts: _Interrupts) -> None:
        if self._debate_id is None:
            assert self._wanted.spec is not None
            await self._tell_of_model(link)
            self._debate_id = await self._created(parley, self._wanted.spec)
        else:
            await self._resume(parley, self._debate_id)
        with display() as shown:
            await self._follow(parley, self._debate_id, shown, interrupts)

    async def _created(self, parley: ParleyClient, spec: DebateSpec) -> str:
        for is_last in (False, True):
            try:
                return await parley.create_debate(spec, self._request_id)
            except ParleyError as error:
                if is_last or not _names_as_roles(error, spec):
                    raise _located(error, self._wanted.config, spec) from None
        raise AssertionError

    async def _resume(self, parley: ParleyClient, debate_id: str) -> None:
        state = await parley.get(debate_id)
        if state.status in {DEBATE_STATUS_COMPLETED, DEBATE_STATUS_CANCELLED}:
            return
        try:
            await parley.resume(debate_id)
        except ParleyError as error:
            # It ended meanwhile, or it runs and nothing needs to be resumed: either way it is followed.
            if error.code != grpc.StatusCode.FAILED_PRECONDITION:
                raise

    async def _tell_of_model(self, link: Link) -> None:
        spec = self._wanted.spec
        if link.gateway is None or self._told_of_model or spec is None:
            return
        self._told_of_model = True
        async with GatewayClient(link.gateway, patience=_PATIENCE) as gateway:
            listed = await gateway.routes()
        local = {route.name for route in listed.routes if route.local}
        named = [each.agent for each in spec.agents] + ([spec.judge.agent] if spec.HasField("judge") else [])
        used = {name for agent in named for name in (agent.routes or listed.default_routes)}
        if not spec.agents or not spec.HasField("judge"):
            used |= set(listed.default_routes)
        if used & local:
            say(
                "No key and no base URL is set: a small model on this machine answers, and its answers are weak."
            )

    async def _follow(
        self, parley: ParleyClient, debate_id: str, shown: Display, interrupts: _Interrupts
    ) -> None:
        """Shows the debate until it ends; an interrupt pauses it."""
        paused, concluded = asyncio.Event(), asyncio.Event()

        async def watch() -> None:
            async for event in parley.watch(debate_id, self._last):
                if isinstance(event, DebateEvent):
                    self._last = event.sequence
                    shown.show(event)
                    if event.kind == "concluded":
                        concluded.set()
                    if event.kind == "paused":
                        paused.set()
                    else:
                        paused.clear()

        watching = asyncio.create_task(watch())
        interrupted = asyncio.create_task(interrupts.first.wait())
        answered = asyncio.create_task(concluded.wait())
        try:
            await asyncio.wait({watching, interrupted, answered}, return_when=asyncio.FIRST_COMPLETED)
            if answered.done():
                # What follows an answer may wait for services that are away; the answer does not wait with it.
                await asyncio.wait({watching, interrupted}, timeout=_CLOSING_SECONDS)
                return
            if not watching.done():
                shown.say("Pausing; Ctrl-C again leaves at once.")
                await self._pause(parley, debate_id, watching, paused)
            await watching
        finally:
            for task in (watching, interrupted, answered):
                task.cancel()
            await asyncio.wait({watching, interrupted, answered})

    async def _pause(
        self, parley: ParleyClient, debate_id: str, watching: asyncio.Task[None], paused: asyncio.Event
    ) -> None:
        """Returns if the debate ended first."""
        at_rest = asyncio.create_task(paused.wait())
        try:
            async with asyncio.timeout(_PAUSE_SECONDS):
                await parley.pause(debate_id, stop_calls=True)
                await asyncio.wait({watching, at_rest}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            say("The pause was not recorded in time.")
        except ParleyError as error:
            if error.code == grpc.StatusCode.FAILED_PRECONDITION:  # it ended first
                return
            raise
        finally:
            at_rest.cancel()
        if not watching.done():
            raise _InterruptedError

    async def _report(self, parley: ParleyClient) -> str | None:
        if self._options.report is None or self._debate_id is None:
            return None
        try:
            return await parley.report(self._debate_id)
        except ParleyError as error:
            say(f"warning: --report {self._options.report}: {error.message}")
            return None

    def _interrupted(self) -> int:
        if self._debate_id is not None:
            say(f"Paused. Go on with: parley debate --resume {self._debate_id}")
        return INTERRUPTED

    def _finish(self, state: Debate, report: str | None) -> int:
        if report is not None and self._options.report is not None:
            _write_report(self._options.report, report)
        if self._options.verbose:
            for line in account(state):
                sys.stderr.write(f"{line}\n")
        say(f"Saved debate {state.id}; parley show {state.id}")
        if state.status == DEBATE_STATUS_FAILED:
            raise _failed(state, self._log)
        if state.status == DEBATE_STATUS_CANCELLED:
            raise CommandError(f"debate {state.id} was cancelled")
        if not state.HasField("solution"):
            raise CommandError(f"debate {state.id} has no answer; see parley show {state.id}")
        self._put_out(state)
        return 0

    def _put_out(self, state: Debate) -> None:
        output = self._options.output
        if output is None:
            sys.stdout.write(solution_text(state.solution))
        elif output.suffix.lower() == ".json":
            write(output, debate_json(state))
        else:
            write(output, solution_text(state.solution))


def _write_report(path: Path, text: str) -> None:
    target = report_path(path)
    try:
        write(target, text)
    except CommandError as error:
        say(f"warning: --report {error}")
    else:
        say(f"Report: {target}")


def _failed(state: Debate, log: Path | None) -> CommandError:
    failure = state.failure
    where = " in ".join(part for part in (failure.agent_id, failure.phase) if part)
    message = (
        f"{where}: {failure.reason}: {failure.message}" if where else f"{failure.reason}: {failure.message}"
    )
    if failure.reason == "INTERNAL" and log is not None:
        message = f"{message} ({log})"
    return CommandError(message, PROVIDER_FAILED if _provider_failed(state, failure) else GENERAL)


def _provider_failed(state: Debate, failure: DebateFailure) -> bool:
    """Whether providers are behind it: by its reason, or by that of every step it names."""
    if is_provider_failure(failure.reason):
        return True
    reasons = [each.reason for each in state.failures if each.key in failure.steps]
    return bool(reasons) and all(is_provider_failure(reason) for reason in reasons)


def _names_as_roles(error: ParleyError, spec: DebateSpec) -> bool:
    """Makes roles of the names in --agents that the system knows no agent by; whether there were any."""
    unknown = [_UNKNOWN_AGENT.fullmatch(violation.field) for violation in error.violations]
    for match in unknown:
        if match is not None:
            participant = spec.agents[int(match[1])]
            participant.CopyFrom(of_role(participant.agent_id))
    return any(unknown)


def _located(error: ParleyError, found: ConfigFile | None, spec: DebateSpec) -> Exception:
    """The refusal of a new debate, placed in the file or at the option that it comes from."""
    for violation in error.violations:
        if violation.field == "spec.format":
            return CommandError(f"--format: {violation.description}", INVALID_ARGUMENTS)
        number = _AGENT_FIELD.match(violation.field)
        if number is not None:
            agent = spec.agents[int(number[1])].agent if int(number[1]) < len(spec.agents) else None
            known = {each.id: each.path for each in found.agents if each.path} if found is not None else {}
            path = known.get(agent.id) if agent is not None else None
            if path is None:
                return CommandError(f"--agents: {violation.description}", INVALID_ARGUMENTS)
        elif violation.field.startswith("spec.judge"):
            path = "judge"
        elif violation.field.startswith("spec.termination"):
            path = "debate.termination"
        else:
            continue
        if found is not None:
            key = violation.field.rpartition(".")[2]
            place = found.places.of(f"{path}.{key}" if key in {"role", "routes", "name", "id"} else path)
            return ConfigError(f"{place}: {violation.description}")
    return error
