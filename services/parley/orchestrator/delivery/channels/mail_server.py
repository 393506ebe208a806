"""Where mail of hooks is sent through, and where it may go."""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from parley.runtime.loopback import is_loopback

_ADDRESS: Final = re.compile(r"[A-Za-z0-9+_.-]{1,64}@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)")
_SERVER: Final = re.compile(r"smtps?://(?:[^\s@/:]+:[^\s@/:]+@)?[^\s@/:\[\]]+(?::[0-9]{1,5})?")


def domain_of(address: str) -> str:
    """Return the domain of an address, in lower case; empty for what is no address."""
    found = _ADDRESS.fullmatch(address)
    return found[1].lower() if found else ""


def is_mail_server(url: str) -> bool:
    """Return whether a URL names a mail server: `smtps://USER:PASSWORD@HOST:PORT`, or `smtp://` with STARTTLS."""
    return bool(_SERVER.fullmatch(url))


@dataclass(frozen=True, slots=True)
class Mail:
    """How mail is sent.

    Attributes:
        server: The server's URL, for which `is_mail_server` holds.
        sender: The address that it comes from.
        domains: Domains that it may go to, in lower case.
    """

    server: str = field(repr=False)
    sender: str
    domains: frozenset[str]

    def allows(self, address: str) -> bool:
        """Return whether mail may be sent to an address."""
        return domain_of(address) in self.domains

    @property
    def needs_starttls(self) -> bool | None:
        """Whether the server must offer STARTTLS; None if it may, as one on this machine."""
        parts = urlsplit(self.server)
        if parts.scheme == "smtps":
            return False
        return None if is_loopback(parts.hostname or "") else True
