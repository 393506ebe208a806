"""Logs and counts calls that are refused and administrative acts: who tried what, and who did what.

Each line has the method, the peer (an address; behind a proxy the proxy's), tenant and subject. A peer has some lines a minute, and the
next line says how many were left out. Metrics count all.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final
from urllib.parse import unquote

import grpc
from msgspec import Struct

from parley.runtime.errors import ParleyError
from parley.runtime.identity.guard import RefusedCallerError
from parley.runtime.identity.identity import current_identity
from parley.runtime.logs import get_logger
from parley.runtime.telemetry import meter

_REFUSALS: Final = frozenset(
    {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND}
)
"""NOT_FOUND is the answer for what belongs to another tenant."""
_OF_PROVIDERS: Final = "PROVIDER_"
"""A provider that refuses our key has the same code; the caller did nothing wrong."""
_MAX_LINES: Final = 30
_WINDOW_SECONDS: Final = 60.0
_MAX_PEERS: Final = 4096

_logger = get_logger(__name__)
_meter = meter(__name__)
_refusals: Final = _meter.create_counter(
    "parley.refusals",
    "{call}",
    "Calls that were refused for what the caller is or may see, by reason and method.",
)
_acts: Final = _meter.create_counter(
    "parley.administrative_acts", "{act}", "Administrative acts that were done, by method."
)


class _Call(Struct, frozen=True):
    method: str
    peer: Callable[[], str]


_call: ContextVar[_Call] = ContextVar("parley_call", default=_Call("", lambda: ""))  # noqa: B039 (never changed)


class PeerLines:
    """Bounds the lines that each peer causes: some in a minute."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._peers: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """By peer: when its minute began, and its lines since then, with those that were left out."""

    def take(self, peer: str) -> int | None:
        """Return how many lines of the peer were left out before this one, or None if this one must be left out too."""
        now = self._now()
        began, lines = self._peers.pop(peer, (now, 0))
        left_out = 0
        if now - began >= _WINDOW_SECONDS:
            began, lines, left_out = now, 0, max(lines - _MAX_LINES, 0)
        self._peers[peer] = began, lines + 1
        if len(self._peers) > _MAX_PEERS:
            self._peers.popitem(last=False)
        return left_out if lines < _MAX_LINES else None


_refusal_lines: Final = PeerLines()
_act_lines: Final = PeerLines()


def set_call(method: str, peer: Callable[[], str]) -> None:
    """Set the call of this task: its method, and a function that returns its peer as gRPC names it (`ipv4:10.0.0.1:5000`)."""
    _call.set(_Call(method, peer))


def is_refusal(error: ParleyError) -> bool:
    """Return whether an error refuses the caller for what it is or may see."""
    return error.code in _REFUSALS and not error.reason.startswith(_OF_PROVIDERS)


def report_error(error: ParleyError) -> None:
    """Log and count the error of the current call, if it is a refusal."""
    if not is_refusal(error):
        return
    call = _call.get()
    _refusals.add(1, {"parley.reason": error.reason, "rpc.method": call.method})
    identity, why = current_identity(), ""
    if isinstance(error, RefusedCallerError):
        identity, why = error.identity, error.why
    peer = unquote(call.peer())
    left_out = _refusal_lines.take(_host(peer))
    if left_out is None:
        return
    _logger.log(
        _level(error.code),
        "a call is refused",
        method=call.method,
        peer=peer,
        tenant=identity.tenant if identity.proven else "",
        subject=identity.subject,
        reason=error.reason,
        **({"why": why} if why else {}),
        **({"resource": "/".join(error.resource)} if error.resource else {}),
        **({"left_out": left_out} if left_out else {}),
    )


def report_act(target: str) -> None:
    """Log and count that the current call did an administrative act on `target`, such as `key 0123456789ab`."""
    call, identity = _call.get(), current_identity()
    _acts.add(1, {"rpc.method": call.method})
    peer = unquote(call.peer())
    left_out = _act_lines.take(_host(peer))
    if left_out is None:
        return
    _logger.info(
        "an administrative act",
        method=call.method,
        peer=peer,
        tenant=identity.tenant,
        subject=identity.subject,
        target=target,
        **({"left_out": left_out} if left_out else {}),
    )


def peer_address() -> str:
    """Return the address of the current call's peer, without a port, such as `10.0.0.1`; empty outside of a call."""
    return _host(unquote(_call.get().peer())).partition(":")[2]


def _host(peer: str) -> str:
    """Return a peer without its port, which each connection has of its own."""
    return peer.rpartition(":")[0] or peer


def _level(code: grpc.StatusCode) -> int:
    """Return the level of a refusal's line: what is not found is often only misspelled."""
    return logging.INFO if code is grpc.StatusCode.NOT_FOUND else logging.WARNING
