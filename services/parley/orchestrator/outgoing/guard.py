"""The guard on requests: what a host's name leads to is checked, and the connection goes there and nowhere else."""

import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec import Struct, field
from yarl import URL

from parley.orchestrator.outgoing.reach import Address, Reach
from parley.orchestrator.outgoing.resolving import Resolve, resolve_host
from parley.orchestrator.outgoing.web_address import AddressError, check_form
from parley.runtime.printable import printable_line

_MAX_REASON: Final = 200


class Guard(Struct, frozen=True):
    """Makes requests within a reach.

    A name is resolved once for each request, and the connection goes to an address that was checked: a second answer of the resolver is
    never asked for. No credential of the machine is used, no cookie is kept, and no redirect followed. A proxy of the environment
    (HTTPS_PROXY, NO_PROXY …) is used for hosts that the operator names, and for no other: what it connects to, nobody here checks.

    Attributes:
        reach: What may be reached.
        resolve: What finds the addresses of a host.
    """

    reach: Reach = field(default_factory=Reach)
    resolve: Resolve = resolve_host

    @asynccontextmanager
    async def request(
        self, method: str, url: URL, *, headers: Mapping[str, str], body: bytes | None = None, seconds: float
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """Make a request, and yield its response, whose body is as it was sent.

        Raises:
            AddressError: the address may not be reached.
            aiohttp.ClientError, OSError, ValueError, TimeoutError: the request failed. Messages may hold the address.
        """
        check_form(url)
        assert url.raw_host is not None
        proxy = _find_proxy(url) if self.reach.names_host(url.raw_host) else None
        resolver = None if proxy else _CheckedAddresses(await self.find_addresses(url))
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, force_close=True),
                auto_decompress=False,
                trust_env=False,  # it would also send what ~/.netrc has
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as session,
            session.request(
                method, url, headers=headers, data=body, allow_redirects=False, proxy=proxy
            ) as response,
        ):
            yield response

    async def find_addresses(self, url: URL) -> list[Address]:
        """Return the addresses of a URL's host, all of which may be reached. Raises AddressError if they may not."""
        check_form(url)
        assert url.raw_host is not None
        assert url.port is not None
        ports = None if self.reach.names_host(url.raw_host) else self.reach.ports
        if ports is not None and url.port not in ports:
            raise AddressError(f"port {url.port} may not be reached")
        try:
            addresses = await self.resolve(url.raw_host, url.port)
        except (OSError, UnicodeError):
            raise AddressError(f"the host {url.raw_host[:253]} was not found") from None
        self.reach.check_addresses(url, addresses)
        return addresses


class _CheckedAddresses(AbstractResolver):
    """Gives the addresses that were checked, whatever the name says by now."""

    def __init__(self, addresses: list[Address]) -> None:
        self._addresses = addresses

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002
    ) -> list[ResolveResult]:
        """Return the addresses, for any host: there is one for each request."""
        families = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [
            ResolveResult(
                hostname=host,
                host=str(each),
                port=port,
                family=families[each.version],
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for each in self._addresses
        ]

    async def close(self) -> None:
        """There is nothing to close."""


def describe_failure(error: Exception) -> str:
    """Return why a request failed in one line, without the address, which may be a secret."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or "it could not be checked"
        return printable_line(f"its certificate is refused: {why}")[:_MAX_REASON]
    return printable_line(str(getattr(error, "strerror", None) or type(error).__name__))[:_MAX_REASON]


def _find_proxy(url: URL) -> str | None:
    """Return the proxy of the usual variables for a URL; None if there is none."""
    return None if proxy_bypass(url.raw_host or "") else getproxies().get(url.scheme)
