"""The commands that run services."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from parley.cli.command_name import command_name
from parley.cli.commands.console import create_login_link
from parley.cli.commands.interrupts import handle_signals
from parley.cli.commands.models import report_models
from parley.cli.errors import CONFIGURATION, INVALID_ARGUMENTS, CommandError
from parley.cli.input.config_file import find_config, read_found_config
from parley.cli.printing import print_line, say
from parley.cli.terminal.words import ACTIVE
from parley.cli.translate_errors import first_error
from parley.client import DebateSpec, ParleyClient, ParleyError
from parley.runtime.python_process import python_command, safe_environment

if TYPE_CHECKING:  # heavy: serve needs none of it
    from parley.local import LocalOptions, LocalSystem

_REPORT_SECONDS: Final = 3.0


async def serve_all(config_path: Path | None, port: int, advertise: str | None) -> None:
    """Run the whole system on six consecutive ports until SIGINT or SIGTERM; SIGHUP is ignored."""
    options = _create_options(config_path, port, advertise)
    say("Starting. Each service is listed once it answers, the console last.")
    stop = asyncio.Event()
    handlers: dict[signal.Signals, Callable[[], object]] = dict.fromkeys(
        (signal.SIGINT, signal.SIGTERM), stop.set
    )
    handlers[signal.SIGHUP] = lambda: None  # the system outlives the terminal that started it
    async with AsyncExitStack() as stack:
        stack.enter_context(handle_signals(handlers))
        system = await _start(stack, options)
        if not system.own:
            raise CommandError(f"{system.store} is in use by {_describe_holder(system)}")
        edge = f"http://{system.edge_address}"
        _report_address("edge", edge)
        await _report_console(edge, system.orchestrator_address)
        assert system.gateway_address is not None
        await report_models(system.gateway_address, DebateSpec(), own=True, patience=_REPORT_SECONDS)
        say(f"Debates are kept in {system.store}. Ctrl-C stops.")
        await stop.wait()
        say("Stopping.")
        await _report_interrupted(system.orchestrator_address)


def _create_options(config_path: Path | None, port: int, advertise: str | None) -> "LocalOptions":
    """Find the configuration, say what it notices, and return how the system is run with it."""
    from parley.local import LocalOptions, consecutive_ports

    found = find_config(config_path)
    if found is not None:
        for line in (*found.notices, *(f"warning: {each}" for each in found.warnings)):
            say(line)
    path = Path(found.places.name) if found is not None else None
    return LocalOptions(
        config_path=path,
        read_config=partial(read_found_config, path) if path is not None and config_path is None else None,
        ports=consecutive_ports(port),
        advertise=advertise,
        adopt=True,
        log_to_stderr=True,
        on_listening=_report_address,
    )


def _describe_holder(system: "LocalSystem") -> str:
    """Return which kind of command runs the system, and what to do about it."""
    if system.edge_address is not None:
        return f"the {command_name()} up at {system.orchestrator_address}; stop that one first"
    return (
        f"a command, such as {command_name()} debate in another terminal "
        f"(its orchestrator is at {system.orchestrator_address}); wait until it ends, or stop it"
    )


def _report_address(name: str, address: str) -> None:
    print_line(f"{name:12}  {address}")
    sys.stdout.flush()


async def _report_console(edge: str, orchestrator: str) -> None:
    """Print a link that signs in at the console; without one the system runs all the same."""
    try:
        link = await create_login_link(edge, orchestrator)
    except CommandError as error:  # such as with PARLEY_AUTH=none: this user has no token to sign in with
        say(f"warning: no link to the console: {error}")
    else:
        _report_address("console", link)


async def _start(stack: AsyncExitStack, options: "LocalOptions") -> "LocalSystem":
    """Start the system, which stops with the stack, and return it. Raise CommandError if a port is taken."""
    from parley.local import local_system
    from parley.runtime.server import CannotListenError

    try:
        return await stack.enter_async_context(local_system(options))
    except (CannotListenError, ExceptionGroup) as error:
        first = first_error(error)
        if not isinstance(first, CannotListenError):
            raise
        raise CommandError(
            f"cannot listen on {first.address}; choose six other ports with --port", CONFIGURATION
        ) from None


async def _report_interrupted(address: str) -> None:
    """Print which debates the stop interrupts."""
    try:
        async with asyncio.timeout(_REPORT_SECONDS), ParleyClient(address, patience=0) as parley:
            cut = [each.id async for each in parley.list(sorted(ACTIVE))]
    except (TimeoutError, ParleyError) as error:
        say(f"warning: the interrupted debates cannot be listed: {str(error) or 'no answer in time'}")
        return
    if cut:
        say(
            f"Cut off: {', '.join(cut)}. The next {command_name()} up goes on with {'it' if len(cut) == 1 else 'them'}."
        )


def _services() -> list[str]:
    """Return the names of the services that can be run, sorted."""
    here = Path(__file__).parents[2]
    return sorted(each.parent.name for each in here.glob("*/__main__.py") if each.parent.name != "cli")


def serve_one(name: str) -> None:
    """Replace this process by the service; do not return."""
    known = _services()
    if name not in known:
        raise CommandError(f"unknown service {name}; known services: {', '.join(known)}", INVALID_ARGUMENTS)
    command = python_command("-m", f"parley.{name}")
    os.execve(command[0], command, safe_environment())  # noqa: S606 (a name from our own list)
