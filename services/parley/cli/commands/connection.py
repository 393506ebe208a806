"""The system a command talks to: at a server, in another process on this machine, or in this process."""

import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc
from msgspec import Struct

from parley.cli.command_name import command_name
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.person import can_redraw
from parley.cli.printing import erase_line, say, say_text
from parley.cli.translate_errors import first_error
from parley.client import ParleyClient, ParleyError
from parley.client.access import channel_settings
from parley.runtime.errors import is_transport
from parley.runtime.unreachable import explain_unconnected, explain_unreachable
from parley.runtime.validation import DEBATE_ID

if TYPE_CHECKING:  # heavy: a command that has a server does not need it
    from parley.local import Purpose

_PATIENCE_SECONDS: Final = 5.0
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Connection(Struct, frozen=True):
    """The addresses of a system's services.

    Attributes:
        gateway: None if it is not known, as with --server.
        own: Whether the system runs in this process.
        alone: Whether no other process can run its debates.
        shared: Whether it runs in another command on this machine, which may end before this one.
        log: The file that its services log to, if it is known.
        channel: To the orchestrator, if the system runs in this process: without a socket.
    """

    orchestrator: str
    gateway: str | None = None
    own: bool = False
    alone: bool = False
    shared: bool = False
    log: Path | None = None
    channel: grpc.aio.Channel | None = None


@asynccontextmanager
async def connect(
    server: str | None,
    config_path: Path | None = None,
    *,
    purpose: "Purpose" = "debates",
    evaluators: bool = False,
    context_tokens: int | None = None,
    adopt: bool = False,
    begins_debate: bool = False,
) -> AsyncIterator[Connection]:
    """Yield the system to talk to; if it runs in this process, it stops at the end of the block.

    Args:
        server: HOST:PORT of an orchestrator; None: the system that runs on this machine, or one of this process.
        config_path: The configuration of a system of this process.
        purpose: What that system is for: only what it needs is started.
        evaluators: The configuration may list evaluators and no agents.
        context_tokens: Of models that are asked from here.
        adopt: A system of this process goes on with debates that an earlier process left.
        begins_debate: It starts at first only what a debate's first call needs.

    Raises:
        CommandError: `server` is another service or does not answer.
    """
    if server is not None:
        await _check_reachable(server)
        try:
            yield Connection(server)
        except (ParleyError, ExceptionGroup) as error:
            raise await _explain_wrong_server(server, error) or error from None
        return
    async with AsyncExitStack() as stack:
        with announce_slow_start(also_without_terminal=purpose == "debates"):
            from parley.local import LocalOptions, local_system

            options = LocalOptions(
                config_path=config_path,
                purpose=purpose,
                evaluators=evaluators,
                context_tokens=context_tokens,
                adopt=adopt,
                begins_debate=begins_debate,
            )
            system = await stack.enter_async_context(local_system(options))
        yield Connection(
            system.orchestrator_address,
            system.gateway_address,
            own=system.own,
            alone=system.alone,
            shared=not system.own,
            log=system.log,
            channel=system.channel,
        )


@asynccontextmanager
async def open_client(link: Connection, patience: float = 30.0) -> AsyncIterator[ParleyClient]:
    """Yield a client of the system's orchestrator. Broken connections are retried for `patience` seconds."""
    if link.channel is not None:
        yield ParleyClient.over(link.channel, (), patience=patience)
        return
    async with ParleyClient(link.orchestrator, patience=patience) as parley:
        yield parley


@asynccontextmanager
async def connect_orchestrator(
    server: str | None, purpose: "Purpose" = "records"
) -> AsyncIterator[tuple[Connection, ParleyClient]]:
    """Yield the system as `connect` does, with a client of its orchestrator that gives up soon."""
    async with (
        connect(server, purpose=purpose) as link,
        open_client(link, _PATIENCE_SECONDS) as parley,
    ):
        yield link, parley


def report_shared_system(link: Connection) -> None:
    """Print a notice if another command's system answers."""
    if link.shared:
        say(f"using the running Parley at {link.orchestrator}, with its keys and routes, not those set here")


async def _check_reachable(server: str) -> None:
    """Raise CommandError unless something listens at `HOST:PORT`; other targets are left to gRPC."""
    reason = await explain_unconnected(server)
    if reason:
        hint = f"; start one with: {command_name()} up" if server.rpartition(":")[0] in _LOOPBACK else ""
        raise CommandError(f"no orchestrator answers at {server} ({reason}){hint}", GENERAL)


async def _explain_wrong_server(server: str, error: Exception) -> CommandError | None:
    """Return the error if the server is another service or stopped; None for any other error."""
    first = first_error(error)
    if not isinstance(first, ParleyError) or first.reason:
        return None
    if first.code == grpc.StatusCode.UNIMPLEMENTED:
        return CommandError(
            f"the service at {server} is not the orchestrator; --server takes the orchestrator's HOST:PORT"
        )
    if is_transport(first):
        reason = await explain_unreachable(server, channel_settings(server, "").tls)
        return CommandError(f"no orchestrator answers at {server}: {reason or first.message}")
    return None


_MAX_NAMED: Final = 3


async def find_debate_id(parley: ParleyClient, written: str) -> str:
    """Return the id that begins with this text; a complete id is returned unchanged. Raise CommandError unless exactly one matches."""
    if DEBATE_ID.fullmatch(written):
        return written
    found = [each.id async for each in parley.list() if each.id.startswith(written)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandError(f"no debate's id begins with {written}; {command_name()} list shows them")
    named = ", ".join(found[:_MAX_NAMED]) + (", …" if len(found) > _MAX_NAMED else "")
    raise CommandError(
        f"ids of {len(found)} debates begin with {written}: {named}; write more of it", INVALID_ARGUMENTS
    )


_SILENT_SECONDS: Final = 1.0


@contextmanager
def announce_slow_start(*, also_without_terminal: bool) -> Iterator[None]:
    """Print `starting…` on stderr if the block takes longer than a second.

    On a terminal the text is erased afterwards; elsewhere it is printed only if `also_without_terminal`.
    """
    in_place = can_redraw(sys.stderr)
    is_printed = threading.Event()

    def announce() -> None:
        if in_place or also_without_terminal:
            is_printed.set()
            say_text("starting…" if in_place else "starting…\n")

    # A thread of its own: what starts keeps the event loop busy with imports.
    timer = threading.Timer(_SILENT_SECONDS, announce)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if in_place and is_printed.is_set():
            erase_line()
