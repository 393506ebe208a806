"""What can be sent in a request: addresses, header names, and what stands in headers."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

_HOSTS_OF_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "OPENAI_API_KEY": ("api.openai.com",),
    "OPENROUTER_API_KEY": ("openrouter.ai",),
    "AZURE_OPENAI_API_KEY": (
        "openai.azure.com",
        "services.ai.azure.com",
        "cognitiveservices.azure.com",
        "openai.azure.us",
        "openai.azure.cn",
    ),
}
"""Of the keys that people have set for other programs too: the domains that they are for."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")


def find_url_problem(text: str) -> str | None:
    """Return what is wrong with the address of an endpoint; None for nothing."""
    if not text.isascii() or not text.isprintable():
        return "must be ASCII; write a host of other letters as xn--…"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        return f"is not an address: {error}"
    if port == 0:
        return "is not an address: Port out of range 0-65535"
    if not host or not _can_be_asked(host, is_bracketed="[" in parts.netloc):
        return "is not an address: it has no host that can be asked"
    return None


def find_key_problem(variable: str, url: str) -> str | None:
    """Return why a key is not sent to an address; None if it may be. `url` is one that can be asked."""
    domains = _HOSTS_OF_KEYS.get(variable)
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if domains is None:
        return None
    if parts.scheme == "https" and any(host == each or host.endswith(f".{each}") for each in domains):
        return None
    return (
        f"{variable} is sent to {' and '.join(domains)} alone, by https; put this endpoint's key into another variable, "
        "and name that with api_key_env"
    )


def describe_key(variable: str) -> str:
    """Return in words where questions go with a key of this name; only the name if it is none of the usual ones."""
    hosts = _HOSTS_OF_KEYS.get(variable)
    return f"questions go to {' or '.join(hosts)}, by {variable}" if hosts else variable


def find_header_problem(name: str) -> str | None:
    """Return what is wrong with the name of a header; None for nothing."""
    return None if _TOKEN.fullmatch(name) else "is not the name of a header: letters, digits and `-` make one"


def _can_be_asked(host: str, *, is_bracketed: bool) -> bool:
    """Return whether a host is a name or a whole address: of short forms such as 127.1 only some programs know."""
    if not is_bracketed and not host.replace(".", "").isdecimal():
        return _HOST.fullmatch(host) is not None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return is_bracketed == (address.version == 6)
