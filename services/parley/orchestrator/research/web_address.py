"""Addresses of pages, as far as one sees by them alone whether they may be read."""

from yarl import URL

_MAX_CHARACTERS = 2048


class FetchError(Exception):
    """A page was not read; the message says why, in one line."""


def parse_address(url: str) -> URL:
    """Return an address in its parts. Raises FetchError or ValueError for what is none."""
    if len(url) > _MAX_CHARACTERS or not url.isprintable() or " " in url:
        raise FetchError("its address is too long, or holds spaces or control characters")
    return URL(url)


def check_form(url: URL) -> None:
    """Raise FetchError for an address that is never read."""
    if url.scheme not in {"http", "https"} or not url.raw_host:
        raise FetchError("only http:// and https:// with a host are read")
    if url.user is not None or url.password is not None:
        raise FetchError("an address with a user or a password is not read")


def refuse_address(url: str) -> str:
    """Return why a page is never read, as far as its address says; empty if it may be."""
    try:
        check_form(parse_address(url))
    except (FetchError, ValueError) as error:
        return str(error)
    return ""
