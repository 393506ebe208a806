"""Cookies of the console: no script reads them, and over TLS they are sent over TLS alone."""

from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import Response

_MAX_BYTES: Final = 4096
"""Browsers ignore a larger cookie without a word; name and value count."""


class CookieTooLargeError(Exception):
    """No browser would keep the cookie."""


def set_cookie(
    answer: Response,
    request: Request,
    name: str,
    value: str,
    seconds: float,
    *,
    path: str = "/",
    same_site: Literal["strict", "lax"] = "strict",
) -> None:
    """Let the browser keep a value for that long. Raise CookieTooLargeError."""
    if len(name) + len(value) > _MAX_BYTES:
        raise CookieTooLargeError
    answer.set_cookie(
        name,
        value,
        max_age=int(seconds),
        path=path,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite=same_site,
    )


def delete_cookie(answer: Response, request: Request, name: str, *, path: str = "/") -> None:
    """Let the browser forget a value."""
    answer.delete_cookie(
        name, path=path, secure=request.url.scheme == "https", httponly=True, samesite="strict"
    )
