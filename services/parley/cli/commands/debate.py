"""The command that runs a debate, from the request to the answer."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc
from msgspec import Struct

from parley.cli.command_name import suggest
from parley.cli.commands.connection import (
    Connection,
    connect,
    find_debate_id,
    open_client,
    report_shared_system,
)
from parley.cli.commands.interrupts import (
    CheckpointExpiredError,
    Interrupts,
    PausedError,
    StillWaitingError,
)
from parley.cli.commands.models import (
    GOES_ON_WITHOUT_A_KEY,
    WITH_A_KEY,
    answers_for_want_of_a_key,
    report_models,
    set_model,
)
from parley.cli.errors import INTERRUPTED, CommandError
from parley.cli.input.agents import treat_unknown_names_as_roles
from parley.cli.input.config_file import find_config
from parley.cli.input.context_documents import Context, read_context
from parley.cli.input.debate_request import (
    DebateOptions,
    apply_unattended_defaults,
    build_debate_request,
    check_debate_options,
    config_notices,
    context_tokens_notice,
)
from parley.cli.input.question import read_question
from parley.cli.input.refusals import locate_refusal
from parley.cli.printing import Style, say
from parley.cli.terminal.account import account_lines
from parley.cli.terminal.files import check_output_path, report_path
from parley.cli.terminal.markdown import show_markdown
from parley.cli.terminal.results import write_answer, write_decision, write_report
from parley.cli.terminal.words import ENDED, estimate_text
from parley.cli.translate_errors import translate_errors
from parley.cli.working_folder import load_dotenv
from parley.client import Debate, DebateSpec, ParleyClient, ParleyError
from parley.config.file import ConfigFile
from parley.runtime.errors import ConfigurationError, PartFailedError, is_transport
from parley.runtime.work_words import ending_text
from parley.v1.debate_pb2 import DEBATE_STATUS_CANCELLED, DEBATE_STATUS_COMPLETED, DEBATE_STATUS_FAILED
from parley.v1.orchestrator_pb2 import CreateDebateRequest

if TYPE_CHECKING:
    from parley.cli.commands.follow import Follower
    from parley.cli.terminal.checkpoints import Checkpoint

_PATIENCE: Final = 30.0
_SHARED_PATIENCE: Final = 2.0
_TIME_TO_ANSWER_SECONDS: Final = 60.0
_TAKEOVERS: Final = 10
"""Shared systems that may end before this command gives up."""


def run_debate(question: str | None, options: DebateOptions) -> int:
    """Run the debate and return the exit code. Raise CommandError."""
    with translate_errors():
        load_dotenv()
        if options.output is not None:
            check_output_path("--output", options.output)
        check_debate_options(question, options)
        if options.resume is not None:
            found, request, notices = find_config(options.config), None, list[str]()
        else:
            found, request, notices = _build_request(question, options)
        if options.report is not None:
            _warn_about_report(report_path(options.report))
        run = RunOptions(
            server=options.server,
            model=options.model,
            output=options.output,
            verbose=options.verbose,
            report=options.report,
            resume=options.resume,
            style=options.style,
            context_tokens=options.context_tokens,
        )
        return asyncio.run(DebateCommand(run, found, request, notices).run())


def _build_request(
    question: str | None, options: DebateOptions
) -> tuple[ConfigFile | None, CreateDebateRequest, list[str]]:
    """Return the configuration that was found, the request for a new debate, and what to tell of both; a text may be empty."""
    text = read_question(question, options.problem_description)
    context = read_context(options.context) if options.context is not None else Context()
    found = find_config(options.config)
    request = build_debate_request(text, context, options, found)
    unattended = apply_unattended_defaults(request.spec)
    notices = [
        *config_notices(options, found),
        context.notice,
        unattended or "",
        context_tokens_notice(options) or "",
    ]
    return found, request, notices


def _warn_about_report(path: Path) -> None:
    """Warn that the report cannot be written, in time to repair that while the debate runs."""
    try:
        check_output_path("--report", path)
    except CommandError as error:
        say(f"warning: {error}")


class RunOptions(Struct, frozen=True):
    """How a debate is run, and where its results go.

    Attributes:
        model: The model of all agents, if the command line names one.
        report: The file of the report, if one is wanted.
        resume: The id of the debate to resume, or its beginning; None for a new debate.
        style: How progress is shown; None: as the terminal allows.
    """

    server: str | None
    model: str | None
    output: Path | None
    verbose: bool
    report: Path | None = None
    resume: str | None = None
    style: Style | None = None
    context_tokens: int | None = None


class DebateCommand:
    """One run of a command that runs a debate, from the request to the answer."""

    evaluators = False
    """Whether the configuration file may list evaluators and no agents."""

    def __init__(
        self,
        options: RunOptions,
        found: ConfigFile | None,
        request: CreateDebateRequest | None,
        notices: Sequence[str] = (),
    ) -> None:
        """Take the request for a new debate, or None to resume one; `notices` are printed once the debate is accepted."""
        self._options = options
        self._config = found
        self._request = request
        self._notices = notices
        self._debate_id = options.resume
        self._reported: set[str] = set()
        self._was_overdue = False
        self._log: Path | None = None
        self._own = False
        self._wants_a_key = False
        self._approved = ""
        self._follower: Follower | None = None

    async def run(self) -> int:
        """Run the debate and return the exit code."""
        with Interrupts() as interrupts:
            try:
                await self._run_to_end(interrupts)
            except PausedError:
                return self._report_pause()
            except StillWaitingError as left:
                return self._report_waiting(left.checkpoint)
            except (ConfigurationError, PartFailedError):
                # A service that runs here could not start, or failed.
                if self._own and self._debate_id is not None:
                    self._report_saved(self._debate_id)
                raise
        return 0

    async def _run_to_end(self, interrupts: Interrupts) -> None:
        """Run the debate and print its answer; then write its report.

        Start a system of our own if a shared one ends.
        """
        for takeovers_left in reversed(range(_TAKEOVERS + 1)):
            link: Connection | None = None
            try:
                async with self._connect(interrupts) as (link, parley):
                    debate_id = await self._run(link, parley, interrupts)
                    follower = self._open_follower(interrupts)
                    self._approved = follower.approved
                    if self._writes_whole_debate:
                        await follower.wait_until_closed(parley, debate_id)
                    state = await parley.get(debate_id)
                    await _write_decision(parley, state)
                    try:
                        self._finish(state)
                    finally:
                        await self._close(link, parley, follower, state)
                    return
            except ParleyError as error:
                if link is None or not link.shared or not is_transport(error) or not takeovers_left:
                    raise
                say(f"The Parley at {link.orchestrator} has ended; going on without it.")
        raise AssertionError

    def _open_follower(self, interrupts: Interrupts) -> "Follower":
        """Return what shows the debate, also if one system after the other runs it. Its imports wait until the debate runs."""
        if self._follower is None:
            from parley.cli.commands.follow import Follower
            from parley.cli.terminal.display import choose_style

            self._follower = Follower(interrupts, self._options.server, choose_style(self._options.style))
        return self._follower

    @property
    def _writes_whole_debate(self) -> bool:
        """Whether the output holds all of the debate, so also what follows its answer."""
        return self._options.output is not None and self._options.output.suffix.lower() == ".json"

    async def _close(
        self, link: Connection, parley: ParleyClient, follower: "Follower", state: Debate
    ) -> None:
        """Let what follows the answer be done where the system ends with this command, or the report shows it; write the report."""
        is_answered = state.status == DEBATE_STATUS_COMPLETED
        has_waited = self._writes_whole_debate
        if is_answered and not has_waited and (link.own or self._options.report is not None):
            with suppress(ParleyError):
                await follower.wait_until_closed(parley, state.id)
        await self._write_report(parley, state.id)

    @asynccontextmanager
    async def _connect(self, interrupts: Interrupts) -> AsyncIterator[tuple[Connection, ParleyClient]]:
        config_path = Path(self._config.places.name) if self._config is not None else None
        async with connect(
            self._options.server,
            config_path,
            evaluators=self.evaluators,
            context_tokens=self._options.context_tokens,
            begins_debate=True,
        ) as link:
            if interrupts.first.is_set():
                raise PausedError
            self._log, self._own = link.log, link.own
            if link.orchestrator not in self._reported:
                self._reported.add(link.orchestrator)
                report_shared_system(link)
            patience = _SHARED_PATIENCE if link.shared else _PATIENCE
            async with open_client(link, patience) as parley:
                yield link, parley

    async def _run(self, link: Connection, parley: ParleyClient, interrupts: Interrupts) -> str:
        """Create or resume the debate, follow it to its end, and return its id."""
        if self._debate_id is None:
            assert self._request is not None
            spec = self._request.spec
            if self._options.model is not None:
                await set_model(spec, self._options.model, link.gateway)
            await self.resolve_spec(parley, spec)
            self._debate_id = await self._create(parley, self._request)
            for notice in filter(None, self._notices):
                say(notice)
            await self._report_models(link, spec)
        else:
            self._debate_id = await find_debate_id(parley, self._debate_id)
            if not await self._resume(link, parley, self._debate_id, self._open_follower(interrupts)):
                return self._debate_id
        follower = self._open_follower(interrupts)
        try:
            await follower.follow(parley, self._debate_id)
        except CheckpointExpiredError:
            if not self._was_overdue:
                raise
            self._was_overdue = False
            await parley.resume(self._debate_id)
            await follower.follow(parley, self._debate_id)
        return self._debate_id

    async def resolve_spec(self, parley: ParleyClient, spec: DebateSpec) -> None:
        """Complete the specification with what only the system knows."""

    def write_answer(self, state: Debate) -> None:
        """Print the answer, or write it to the output file. Raise CommandError."""
        write_answer(state, self._options.output, self._approved)

    async def _create(self, parley: ParleyClient, request: CreateDebateRequest) -> str:
        for is_last in (False, True):
            try:
                await self._report_estimate(parley, request.spec)
                return await parley.create_debate(request.spec, request.request_id)
            except ParleyError as error:
                if is_last or not treat_unknown_names_as_roles(error, request.spec):
                    raise locate_refusal(error, self._config, request.spec, self._options.model) from None
        raise AssertionError

    async def _report_estimate(self, parley: ParleyClient, spec: DebateSpec) -> None:
        """Say what the debate is expected to take, before its first call."""
        estimate = await parley.estimate_debate(spec)
        if estimate is not None:
            say(f"Expected: {estimate_text(estimate)}")

    async def _resume(
        self, link: Connection, parley: ParleyClient, debate_id: str, follower: "Follower"
    ) -> bool:
        """Resume the debate; return False if it has ended."""
        state = await parley.get_summary(debate_id)
        if state.status in ENDED:
            if state.status == DEBATE_STATUS_COMPLETED and not follower.has_started:
                say(f"Debate {debate_id} is already completed.")
            return follower.has_started
        if not follower.has_started:
            follower.skip_to(state.last_sequence)
            self._was_overdue = _is_overdue(state)
        # Also where our own system takes over: other models may answer there than in the one that has ended.
        await self._report_models(link, state.spec)
        if self._wants_a_key and not state.demonstration:
            say(GOES_ON_WITHOUT_A_KEY)
        try:
            await parley.resume(debate_id)
        except ParleyError as error:
            # It has ended by now, or it runs already: in both cases it is followed.
            if error.code != grpc.StatusCode.FAILED_PRECONDITION:
                raise
        return True

    async def _report_models(self, link: Connection, spec: DebateSpec) -> None:
        if link.gateway is not None:
            routes = await report_models(link.gateway, spec, own=link.own, patience=_PATIENCE)
            self._wants_a_key = link.own and answers_for_want_of_a_key(spec, routes)

    async def _write_report(self, parley: ParleyClient, debate_id: str) -> None:
        if self._options.report is None:
            return
        try:
            report = await parley.get_report(debate_id)
        except ParleyError as error:
            say(f"warning: --report {self._options.report}: {error.message}")
        else:
            write_report(report_path(self._options.report), report)

    def _report_pause(self) -> int:
        if self._debate_id is not None:
            say(f"Paused. Go on with: {self._suggest_resuming(self._debate_id)}")
        return INTERRUPTED

    def _report_waiting(self, checkpoint: "Checkpoint") -> int:
        from parley.cli.terminal.checkpoints import answer_hint

        assert self._debate_id is not None
        resume = self._suggest_resuming(self._debate_id)
        if self._own:  # no one can answer if no system runs
            say(f"Not answered; the debate waits. Go on with: {resume}")
        else:
            hint = answer_hint(self._debate_id, checkpoint, self._options.server)
            say(f"Not answered; the debate waits. Answer with: {hint}")
            say(f"Or go on with: {resume}")
        return INTERRUPTED

    def _report_saved(self, debate_id: str) -> None:
        say(f"Saved debate {debate_id}; go on with: {self._suggest_resuming(debate_id)}")

    def _suggest_resuming(self, debate_id: str) -> str:
        return suggest(f"debate --resume {debate_id}", self._options.server)

    def _finish(self, state: Debate) -> None:
        """Print the answer, or write it to the output file. Raise CommandError if there is none."""
        if self._options.verbose:
            for line in account_lines(state):
                say(line)
            if state.process:
                show_markdown(state.process)
        if state.status == DEBATE_STATUS_FAILED:
            self._report_saved(state.id)
            from parley.cli.commands.debate_failure import debate_failure

            raise debate_failure(state, self._config, self._log, own=self._own)
        show = suggest(f"show {state.id}", self._options.server)
        say(f"Saved debate {state.id}; {show}")
        if state.status == DEBATE_STATUS_CANCELLED:
            raise CommandError(f"debate {state.id} was cancelled")
        if state.ended_by:
            say(f"warning: the debate was {ending_text(state.ended_by)}")
        if not state.answer:
            raise CommandError(f"debate {state.id} has no answer; see {show}")
        self.write_answer(state)
        if self._wants_a_key:
            say(WITH_A_KEY)


def _is_overdue(state: Debate) -> bool:
    """Return whether the time to answer the open checkpoint is nearly over: it passes also while no system runs."""
    waits = bool(state.waiting.checkpoint)
    return waits and state.waiting.until.ToNanoseconds() / 1e9 < time.time() + _TIME_TO_ANSWER_SECONDS


async def _write_decision(parley: ParleyClient, state: Debate) -> None:
    """Write the decision document if the debate is moderated and completed; a failure is only a warning."""
    if state.outcome.WhichOneof("format_outcome") != "moderated":
        return
    try:
        decision = await parley.get_decision(state.id)
    except ParleyError as error:
        say(f"warning: the decision was not written: {error.message}")
    else:
        write_decision(decision)
