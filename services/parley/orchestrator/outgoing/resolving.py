"""The addresses of a host."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from typing import Final

from parley.orchestrator.outgoing.reach import Address

_RESOLVING: Final = ThreadPoolExecutor(max_workers=256, thread_name_prefix="resolve")
"""Threads of their own: a name server that does not answer holds one for longer than a request may take, and nothing else may wait for it."""

Resolve = Callable[[str, int], Awaitable[list[Address]]]
"""Returns the addresses of a host; raises OSError if it has none."""


async def resolve_host(host: str, port: int) -> list[Address]:
    """Return the addresses of a host, as the machine's resolver gives them."""
    find = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_RESOLVING, find)
    return list(dict.fromkeys(ip_address(str(address[0]).partition("%")[0]) for *_, address in found))
