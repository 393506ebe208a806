"""Addresses: how they are written, which are of this machine alone."""

import errno
import socket
from functools import cache
from ipaddress import ip_address
from typing import Final

_LOCAL_SCHEMES: Final = ("unix:", "unix-abstract:")
_SCHEMES: Final = ("dns:///", "dns:", "ipv4:", "ipv6:")


@cache
def loopback() -> str:
    """Return 127.0.0.1, or ::1 if this machine has no IPv4."""
    try:
        with socket.socket(socket.AF_INET) as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return "::1"
        raise
    return "127.0.0.1"


def join_address(host: str, port: int) -> str:
    """Return `host:port`, with an IPv6 address in brackets."""
    bare = host.strip("[]")
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address; a name other than localhost never is."""
    bare = host.strip("[]")
    if bare == "localhost":
        return True
    try:
        return ip_address(bare).is_loopback
    except ValueError:
        return False


def is_loopback_target(target: str) -> bool:
    """Return whether all addresses of a gRPC target are loopback addresses."""
    if target.startswith(_LOCAL_SCHEMES):
        return True
    return all(is_loopback(each.rpartition(":")[0] or each) for each in _addresses(target))


def loopback_port(target: str) -> int | None:
    """Return the port of a gRPC target on this machine's loopback; None for any other, or several."""
    addresses = _addresses(target)
    port = addresses[0].rpartition(":")[2]
    return int(port) if len(addresses) == 1 and is_loopback_target(target) and port.isdecimal() else None


def strip_scheme(target: str) -> str:
    """Return a gRPC target without the scheme before its addresses."""
    for scheme in _SCHEMES:
        target = target.removeprefix(scheme)
    return target


def _addresses(target: str) -> list[str]:
    return strip_scheme(target).split(",")
