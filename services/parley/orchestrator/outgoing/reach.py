"""Which addresses may be reached: public ones, and those that the operator names."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from msgspec import Struct
from yarl import URL

from parley.orchestrator.outgoing.web_address import OutOfReachError
from parley.runtime.comma_lists import split_list

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64: Final = IPv6Network("64:ff9b::/96")
"""The last 32 bits are the IPv4 address that is reached."""
_NOT_PUBLIC: Final = tuple(
    ip_network(each)
    for each in (
        "168.63.129.16/32",  # what a machine at Azure is given its configuration by
        "192.0.0.0/24",
        "192.88.99.0/24",
        "64:ff9b:1::/48",
        "2001::/23",
        "3fff::/20",
    )
)
"""Addresses that some versions of Python call global, and that lead elsewhere than to a public host."""
_MAX_HOST: Final = 253
"""Characters of a host's name in messages: a name has no more."""
_WEB_PORTS: Final = frozenset({80, 443})
_HOST: Final = re.compile(
    r"(?=.*[a-z-])[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*\.?", re.IGNORECASE
)
"""A name with a letter: numbers alone would be read as an address."""


class Reach(Struct, frozen=True):
    """What may be reached.

    Attributes:
        networks: Addresses that may be reached although they are not public.
        ports: Ports that may be reached; None for all.
        hosts: Hosts that may be reached wherever they are, at every port: their names, in lower case.
        needs_tls: Whether plain HTTP may be spoken to `hosts` and `networks` alone.
    """

    networks: tuple[Network, ...] = ()
    ports: frozenset[int] | None = _WEB_PORTS
    hosts: frozenset[str] = frozenset()
    needs_tls: bool = False

    def names_host(self, host: str) -> bool:
        """Return whether the operator names a host."""
        return host.lower().removesuffix(".") in self.hosts

    def names_address(self, address: Address) -> bool:
        """Return whether an address is in a network that the operator names."""
        return any(_is_in(each, self.networks) for each in _list_meant(address))

    def allows(self, address: Address) -> bool:
        """Return whether an address may be reached."""
        return is_public(address) or self.names_address(address)

    def check_addresses(self, url: URL, addresses: Sequence[Address]) -> None:
        """Raise OutOfReachError unless a URL may be reached whose host is at these addresses."""
        is_named = self.names_host(url.raw_host or "")
        if not addresses or not (is_named or all(map(self.allows, addresses))):
            raise OutOfReachError(f"the host {_host_text(url)} is at no public address")
        if not is_named and not all(map(self.names_address, addresses)):
            self._check_tls(url)

    def check_sight(self, url: URL) -> None:
        """Raise OutOfReachError for a URL that cannot be reached, as far as one sees without asking where its host is."""
        address = _parse_address(url.raw_host or "")
        if address is not None:
            self.check_addresses(url, (address,))
        elif not self.networks and not self.names_host(url.raw_host or ""):
            self._check_tls(url)

    def _check_tls(self, url: URL) -> None:
        if self.needs_tls and url.scheme != "https":
            raise OutOfReachError(f"the host {_host_text(url)} may be reached by https:// alone")


def is_public(address: Address) -> bool:
    """Return whether an address, and any that it stands for, is that of a public host."""
    return all(
        each.is_global
        and not each.is_multicast
        and not (each.is_reserved and each not in _NAT64)
        and not (isinstance(each, IPv6Address) and each.is_site_local)
        and not _is_in(each, _NOT_PUBLIC)
        for each in _list_meant(address)
    )


def _parse_address(host: str) -> Address | None:
    """Return the address that a host is by how it is written: `localhost` is this machine's."""
    try:
        return ip_address("127.0.0.1" if host.lower().removesuffix(".") == "localhost" else host)
    except ValueError:
        return None


def _host_text(url: URL) -> str:
    return (url.raw_host or "")[:_MAX_HOST]


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in each for each in networks)


def _list_meant(address: Address) -> tuple[Address, ...]:
    """Return the addresses that are reached by one: IPv6 can hold one of IPv4."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (address, IPv4Address(int(address) & 0xFFFF_FFFF))
    return (address,) if address.sixtofour is None else (address, address.sixtofour)


def parse_networks(text: str) -> tuple[Network, ...]:
    """Return networks that are separated by commas. Raises ValueError, which names the one that is none."""
    return tuple(map(ip_network, split_list(text)))


def parse_hosts(text: str) -> tuple[frozenset[str], tuple[Network, ...]]:
    """Return hosts and networks that are separated by commas. Raises ValueError, which names the one that is neither."""
    hosts, networks = set(), []
    for each in split_list(text):
        try:
            networks.append(ip_network(each))
        except ValueError:
            if not _HOST.fullmatch(each):
                raise ValueError(f"{each!r} is no host and no network") from None
            hosts.add(each.lower().removesuffix("."))
    return frozenset(hosts), tuple(networks)
