"""Addresses of others, as far as one sees by them alone whether they may be reached."""

from typing import Final
from urllib.parse import urlsplit

from yarl import URL

_MAX_CHARACTERS: Final = 2048
_NEVER_IN_URLS: Final = frozenset(' <>"`\\')


class AddressError(Exception):
    """An address may not be reached, or is none; the message says why, in one line, and holds at most its host."""


class OutOfReachError(AddressError):
    """An address may not be reached, and the operator can allow it."""


def parse_address(url: str) -> URL:
    """Return an address in its parts. Raises AddressError for what is none."""
    if len(url) > _MAX_CHARACTERS or not url.isprintable() or " " in url:
        raise AddressError("its address is too long, or holds spaces or control characters")
    try:
        return URL(url)
    except ValueError:
        raise AddressError("its address is no URL") from None


def check_form(url: URL) -> None:
    """Raise AddressError for an address that is never reached."""
    if url.scheme not in {"http", "https"} or not url.raw_host:
        raise AddressError("only http:// and https:// with a host may be reached")
    if url.user is not None or url.password is not None:
        raise AddressError("an address with a user or a password may not be reached")


def refuse_address(url: str) -> str:
    """Return why an address is never reached, as far as one sees by it; empty if it may be."""
    try:
        check_form(parse_address(url))
    except AddressError as error:
        return str(error)
    return ""


def is_http_url(url: str) -> bool:
    """Return whether a text is a URL of HTTP with a host and without a password, that nothing else can hide in."""
    if not url.isprintable() or _NEVER_IN_URLS & set(url):
        return False
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.port != 0
    except ValueError:
        return False
    return known and bool(parts.hostname) and "@" not in parts.netloc
