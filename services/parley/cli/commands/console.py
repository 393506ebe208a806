"""The command that opens the console in a browser, signed in."""

import asyncio
import json
import re
import webbrowser
from http import HTTPStatus
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, urlsplit
from urllib.request import Request, urlopen

from parley.cli.command_name import command_name
from parley.cli.commands.connection import connect_orchestrator, find_debate_id
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_line, say
from parley.client.access import channel_settings
from parley.runtime.identity.identity import DEFAULT_TENANT
from parley.runtime.loopback import is_loopback, join_address, loopback_port
from parley.runtime.validation import DEBATE_ID

_SECONDS: Final = 10.0
_MAX_BYTES: Final = 64 * 1024
_DEFAULT_SERVER: Final = "127.0.0.1:7401"
_NAME_SERVER: Final = "; name its orchestrator with --server HOST:PORT, whose key or token signs you in"
_TICKET_PATH: Final = re.compile(r"/login#ticket=[A-Za-z0-9_=-]+")


async def open_console(
    edge: str | None, server: str | None, debate_id: str | None, *, only_print: bool
) -> None:
    """Print a link that signs in once, and open it unless `only_print`.

    Without `edge` and `server`, it is for the system that runs on our data folder, or else for that of `parley up`'s own ports.
    Raise CommandError if the edge gives no link, that system has no edge, or not exactly one debate's id begins with `debate_id`.
    """
    at, behind = await asyncio.to_thread(_choose_console, edge, server)
    if debate_id and not DEBATE_ID.fullmatch(debate_id):
        if server is None:
            _check_guessed(at)
        async with connect_orchestrator(behind) as (_, parley):
            debate_id = await find_debate_id(parley, debate_id)
    page = f"/debates/{quote(debate_id)}" if debate_id else "/"
    link = await create_login_link(at, behind, page)
    print_line(link)
    if only_print:
        return
    if not await asyncio.to_thread(webbrowser.open, link):
        say("no browser could be opened; open the link yourself, within ten minutes")


async def create_login_link(edge: str, server: str, page: str = "/") -> str:
    """Return a link to a page of the console at `edge` that signs in once, with the credentials for the orchestrator `server`.

    Raise CommandError if the edge does not answer or refuses.
    """
    address = _split_address(edge)
    if address is None:
        raise CommandError(f"--edge: {edge!r} is no address such as http://127.0.0.1:7400", INVALID_ARGUMENTS)
    if address.scheme == "http" and not is_loopback(address.hostname or ""):
        raise CommandError(f"--edge: {edge} would get your key in plaintext; use https", INVALID_ARGUMENTS)
    origin = f"{address.scheme}://{address.netloc}"
    headers = channel_settings(server, DEFAULT_TENANT).headers
    path = await asyncio.to_thread(_ask_for_ticket, origin, dict(headers()) if headers is not None else {})
    return f"{origin}{path.replace('#', f'?next={quote(page)}#', 1)}"


def _choose_console(edge: str | None, server: str | None) -> tuple[str, str]:
    """Return the edge's URL and the address of its orchestrator."""
    if edge is not None:
        return edge, server or _server_behind(edge)
    if server is not None:
        return _find_edge(server), server
    from parley.local import running_system

    running = running_system()
    if running is None:
        say(f"No {command_name()} up runs on your data folder; trying the Parley at {_DEFAULT_SERVER}.")
        return _find_edge(_DEFAULT_SERVER), _DEFAULT_SERVER
    if running.edge_address is None:
        raise CommandError(
            f"{running.store} is in use by a command that has no console, such as {command_name()} debate; "
            f"run {command_name()} up after it, or name another Parley's orchestrator with --server",
            GENERAL,
        )
    return f"http://{running.edge_address}", running.orchestrator_address


def _check_guessed(edge: str) -> None:
    """Raise CommandError for an edge of another machine, whose orchestrator need not be at the next port."""
    address = _split_address(edge)
    if address is not None and not is_loopback(address.hostname or ""):
        raise CommandError(
            f"--server: name the orchestrator of {edge}, or write the whole id", INVALID_ARGUMENTS
        )


def _server_behind(edge: str) -> str:
    """Return the orchestrator of a named edge: as `parley up` runs it, at the next port."""
    address = _split_address(edge)
    if address is None:  # an error for who asks it for a link
        return _DEFAULT_SERVER
    return join_address(address.hostname or "", (address.port or 0) + 1)


def _find_edge(server: str) -> str:
    """Return where `parley up` runs the edge of its orchestrator. Raise CommandError for one of another machine."""
    port = loopback_port(server)
    if port is None:
        raise CommandError(
            f"--edge: name the console of {server}, such as https://parley.example", INVALID_ARGUMENTS
        )
    from parley.local import consecutive_ports

    edge = consecutive_ports(port).edge
    assert edge is not None
    return f"http://{join_address(server.rpartition(':')[0], edge)}"


def _split_address(edge: str) -> SplitResult | None:
    try:
        address = urlsplit(edge)
        _ = address.port
    except ValueError:  # brackets without an IPv6 address, or a port that is none
        return None
    return address if address.scheme in ("http", "https") and address.hostname else None


def _ask_for_ticket(origin: str, headers: dict[str, str]) -> str:
    request = Request(f"{origin}/console/ticket", b"", headers, method="POST")  # noqa: S310 (checked above)
    try:
        with urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            path: str = json.loads(answer.read(_MAX_BYTES))["path"]
    except HTTPError as error:
        hint = _NAME_SERVER if error.code == HTTPStatus.UNAUTHORIZED else ""
        raise CommandError(f"{origin} gives no link: {_read_message(error)}{hint}", GENERAL) from None
    except (URLError, OSError, ValueError, LookupError) as error:
        raise CommandError(
            f"{origin} is no console that answers ({_explain_unanswered(error)}); start one with {command_name()} up, or name the orchestrator of another with --server",
            GENERAL,
        ) from None
    if not _TICKET_PATH.fullmatch(path):  # it is opened in a browser: it must not lead anywhere else
        raise CommandError(f"{origin} gives no link that this version knows", GENERAL)
    return path


def _explain_unanswered(error: Exception) -> str:
    """Return why nothing that a console says has come, such as `connection refused`."""
    reason = error.reason if isinstance(error, URLError) else error
    return reason.strerror.lower() if isinstance(reason, OSError) and reason.strerror else str(reason)


def _read_message(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(_MAX_BYTES))["message"])
    except (OSError, ValueError, LookupError):
        return f"status {error.code}"
