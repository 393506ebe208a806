"""The command that holds a debate."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from parley.cli.command_name import command_name
from parley.cli.commands.connection import Link, connected, tell_of_borrowing
from parley.cli.commands.debate_failure import debate_failure
from parley.cli.commands.find_debate import debate_id_of
from parley.cli.commands.follow import AbandonedError, Follower, LeftWaitingError, PausedError
from parley.cli.commands.interrupts import Interrupts
from parley.cli.commands.use_model import use_model
from parley.cli.dotenv_file import take_dotenv
from parley.cli.errors import INTERRUPTED, CommandError
from parley.cli.input.agents import take_names_as_roles
from parley.cli.input.debate_request import DebateOptions, DebateRequest, debate_request
from parley.cli.input.locate_refusal import located
from parley.cli.input.output_path import check_output_path, report_path
from parley.cli.printing import say, say_line
from parley.cli.statuses import ENDED
from parley.cli.terminal.account import account
from parley.cli.terminal.answering import answering_line
from parley.cli.terminal.checkpoints import Checkpoint, answer_hint
from parley.cli.terminal.display import style_of
from parley.cli.terminal.limits_and_waits import ending_text
from parley.cli.terminal.results import put_answer, write_decision, write_report
from parley.cli.translate_errors import translated
from parley.client import Debate, DebateSpec, GatewayClient, ParleyClient, ParleyError
from parley.runtime.errors import is_transport
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_CANCELLED,
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_FAILED,
)
from parley.v1.orchestrator_pb2 import GetDecisionResponse

__all__ = ["DebateCommand", "debate"]

_PATIENCE: Final = 30.0
_BORROWED_PATIENCE: Final = 2.0
_TIME_TO_ANSWER_SECONDS: Final = 60.0
_TAKEOVERS: Final = 10
"""Times that a borrowed system may end before we do."""


def debate(options: DebateOptions) -> int:
    """Hold the debate and return the exit code. Raise CommandError."""
    with translated():
        take_dotenv()
        request = debate_request(options)
        if options.report is not None:
            _warn_of_report(report_path(options.report))
        return asyncio.run(DebateCommand(options, request).run())


def _warn_of_report(path: Path) -> None:
    """Say that the report could not be written as things are: in time to mend it while the debate is held."""
    try:
        check_output_path("--report", path)
    except CommandError as error:
        say(f"warning: {error}")


@dataclass(frozen=True, slots=True)
class _Results:
    """A debate at its end, and its documents as far as it has them and they are wanted."""

    debate: Debate
    report: str | None
    decision: GetDecisionResponse | None


class DebateCommand:
    """One run of a command that holds a debate, from the request to the answer."""

    evaluators = False
    """Whether the configuration file may also list evaluators alone."""

    def __init__(self, options: DebateOptions, request: DebateRequest) -> None:
        self._options = options
        self._request = request
        self._request_id = os.urandom(16).hex()
        self._debate_id = options.resume
        self._default_routes: tuple[str, ...] = ()
        self._told_of: set[str] = set()
        self._was_overdue = False
        self._log: Path | None = None
        self._own = False

    async def run(self) -> int:
        """Hold the debate and return the exit code."""
        with Interrupts() as interrupts:
            try:
                results = await self._held(interrupts)
            except PausedError:
                return self._paused()
            except LeftWaitingError as left:
                return self._left_waiting(left.checkpoint)
        return self._finish(results)

    async def _held(self, interrupts: Interrupts) -> "_Results":
        """Return the debate at its end and its documents.

        Go over to a system of our own if a borrowed one ends.
        """
        follower = Follower(interrupts, self._options.server, style_of(self._options.style))
        for takeovers_left in reversed(range(_TAKEOVERS + 1)):
            link: Link | None = None
            try:
                async with self._linked(interrupts) as (link, parley):
                    debate_id = await self._begun(link, parley, follower)
                    state = await parley.get(debate_id)
                    report = await self._report(parley, debate_id)
                    return _Results(state, report, await _decision(parley, state))
            except ParleyError as error:
                if link is None or not link.borrowed or not is_transport(error) or not takeovers_left:
                    raise
        raise AssertionError

    @asynccontextmanager
    async def _linked(self, interrupts: Interrupts) -> AsyncIterator[tuple[Link, ParleyClient]]:
        async with connected(
            self._options.server, self._request.config_path, evaluators=self.evaluators
        ) as link:
            if interrupts.first.is_set():
                raise PausedError
            self._log, self._own = link.log, link.own
            if link.orchestrator not in self._told_of:
                self._told_of.add(link.orchestrator)
                tell_of_borrowing(link)
            patience = _BORROWED_PATIENCE if link.borrowed else _PATIENCE
            async with ParleyClient(link.orchestrator, patience=patience) as parley:
                yield link, parley

    async def _begun(self, link: Link, parley: ParleyClient, follower: Follower) -> str:
        """Begin or take up the debate, follow it to its end, and return its id."""
        if self._debate_id is None:
            assert self._request.spec is not None
            if self._options.model is not None:
                await use_model(self._request.spec, self._options.model, link.gateway)
            await self.complete(parley, self._request.spec)
            self._debate_id = await self._created(parley, self._request.spec)
            for notice in self._request.notices:
                say(notice)
            await self._tell_of_model(link, self._request.spec)
        else:
            self._debate_id = await debate_id_of(parley, self._debate_id)
            if not await self._resumed(link, parley, self._debate_id, follower):
                return self._debate_id
        try:
            await follower.follow(parley, self._debate_id)
        except AbandonedError:
            if not self._was_overdue:
                raise
            self._was_overdue = False
            await parley.resume(self._debate_id)
            await follower.follow(parley, self._debate_id)
        return self._debate_id

    async def complete(self, parley: ParleyClient, spec: DebateSpec) -> None:
        """Fill in what can only be known once there is somebody to ask."""

    def put(self, state: Debate) -> None:
        """Print the answer, or write it where it was asked for. Raise CommandError."""
        put_answer(state, self._options.output)

    async def _created(self, parley: ParleyClient, spec: DebateSpec) -> str:
        for is_last in (False, True):
            try:
                return await parley.create_debate(spec, self._request_id)
            except ParleyError as error:
                if is_last or not take_names_as_roles(error, spec):
                    raise located(error, self._request.config, spec, self._options.model) from None
        raise AssertionError

    async def _resumed(self, link: Link, parley: ParleyClient, debate_id: str, follower: Follower) -> bool:
        """Take the debate up again; return False if it has ended."""
        state = await parley.summary(debate_id)
        if state.status in ENDED:
            if state.status == DEBATE_STATUS_COMPLETED and not follower.begun:
                say(f"Debate {debate_id} is already completed.")
            return follower.begun
        if not follower.begun:
            follower.pass_over(state.last_sequence)
            self._was_overdue = _is_overdue(state)
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
        line = answering_line(spec, listed, own=link.own)
        if line is not None:
            say(line)

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
            say(f"Paused. Go on with: {command_name()} debate --resume {self._debate_id}")
        return INTERRUPTED

    def _left_waiting(self, checkpoint: Checkpoint) -> int:
        assert self._debate_id is not None
        server = self._options.server
        resume = f"{command_name()} debate --resume {self._debate_id}" + (
            f" --server {server}" if server else ""
        )
        if self._own:  # nobody can answer where nothing runs
            say(f"Not answered; the debate waits. Go on with: {resume}")
        else:
            hint = answer_hint(self._debate_id, checkpoint, server)
            say(f"Not answered; the debate waits. Answer with: {hint}")
            say(f"Or go on with: {resume}")
        return INTERRUPTED

    def _finish(self, results: "_Results") -> int:
        state = results.debate
        if results.report is not None and self._options.report is not None:
            write_report(report_path(self._options.report), results.report)
        if results.decision is not None:
            write_decision(results.decision)
        if self._options.verbose:
            for line in account(state):
                say_line(line)
        if state.status == DEBATE_STATUS_FAILED:
            say(f"Saved debate {state.id}; go on with: {command_name()} debate --resume {state.id}")
            raise debate_failure(state, self._request.config, self._default_routes, self._log, own=self._own)
        say(f"Saved debate {state.id}; {command_name()} show {state.id}")
        if state.status == DEBATE_STATUS_CANCELLED:
            raise CommandError(f"debate {state.id} was cancelled")
        if state.ended_by:
            say(f"warning: the debate was {ending_text(state.ended_by)}")
        if not state.answer:
            raise CommandError(f"debate {state.id} has no answer; see {command_name()} show {state.id}")
        self.put(state)
        return 0


def _is_overdue(state: Debate) -> bool:
    """Return whether a person has hardly any time left for an open checkpoint: where nobody ran the debate, its time went on."""
    waits = bool(state.waiting.checkpoint)
    return waits and state.waiting.until.ToNanoseconds() / 1e9 < time.time() + _TIME_TO_ANSWER_SECONDS


async def _decision(parley: ParleyClient, state: Debate) -> GetDecisionResponse | None:
    """Return the decision document of a moderated debate that is completed; None of any other."""
    if state.outcome.WhichOneof("format_outcome") != "moderated":
        return None
    try:
        return await parley.decision(state.id)
    except ParleyError as error:
        say(f"warning: the decision was not written: {error.message}")
        return None
