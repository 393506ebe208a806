"""The commands that run services."""

import asyncio
import dataclasses
import os
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from parley.cli.choosing import find_config
from parley.cli.display import say
from parley.cli.failures import INVALID_ARGUMENTS, CommandError
from parley.cli.naming import command
from parley.cli.system import starting
from parley.client import ParleyClient, ParleyError
from parley.v1.orchestrator_pb2 import DEBATE_STATUS_PENDING, DEBATE_STATUS_RUNNING, DEBATE_STATUS_WAITING

__all__ = ["serve", "services", "up"]

_TELLING_SECONDS: Final = 3.0
_OPEN: Final = (DEBATE_STATUS_PENDING, DEBATE_STATUS_RUNNING, DEBATE_STATUS_WAITING)


async def up(config_path: Path | None) -> None:
    """Runs the whole system until SIGINT or SIGTERM."""
    from parley.local import FIXED_PORTS, LocalOptions, local_system

    found = find_config(config_path)
    if found is not None:
        for line in (*found.notices, *(f"warning: {each}" for each in found.warnings)):
            say(line)
    options = LocalOptions(
        config_path=Path(found.places.name) if found is not None else None,
        ports=FIXED_PORTS,
        adopt=True,
        log_to_stderr=True,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        with starting():
            system = await stack.enter_async_context(local_system(options))
        if not system.own:
            raise CommandError(
                f"{system.store} is in use by the Parley at {system.orchestrator_address}; stop that one first"
            )
        for name, port in dataclasses.asdict(FIXED_PORTS).items():
            sys.stdout.write(f"{name:12}  127.0.0.1:{port}\n")
        sys.stdout.flush()
        say(f"Debates are kept in {system.store}. Ctrl-C stops.")
        await stop.wait()
        say("Stopping.")
        await _tell_of_open(system.orchestrator_address)


async def _tell_of_open(address: str) -> None:
    """Says which debates are cut off by the stop."""
    try:
        async with asyncio.timeout(_TELLING_SECONDS), ParleyClient(address, patience=0) as parley:
            cut = [each.id async for each in parley.list(_OPEN)]
    except (TimeoutError, ParleyError) as error:
        say(f"warning: which debates are cut off could not be told: {str(error) or 'no answer in time'}")
        return
    if cut:
        say(
            f"Cut off: {', '.join(cut)}. The next {command()} up goes on with {'it' if len(cut) == 1 else 'them'}."
        )


def services() -> list[str]:
    """Names of the services that can be run, sorted."""
    here = Path(__file__).parent.parent
    return sorted(each.parent.name for each in here.glob("*/__main__.py") if each.parent.name != "cli")


def serve(name: str) -> None:
    """Becomes the service; does not return."""
    known = services()
    if name not in known:
        raise CommandError(f"unknown service {name}; known services: {', '.join(known)}", INVALID_ARGUMENTS)
    os.execv(sys.executable, [sys.executable, "-m", f"parley.{name}"])  # noqa: S606 (a name from our own list)
