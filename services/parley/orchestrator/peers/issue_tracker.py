"""An issue tracker outside of Parley: one request creates an issue, in the form of GitHub's API."""

import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from parley.orchestrator.model.errors import StepError
from parley.orchestrator.outgoing.web_address import is_http_url
from parley.v1.moderated_pb2 import FollowUp

if TYPE_CHECKING:  # imported on use: most orchestrators have no tracker
    from aiohttp import ClientResponse

_REQUEST_SECONDS: Final = 10.0
_MAX_ANSWER_BYTES: Final = 64 * 1024
_MAX_URL_CHARACTERS: Final = 2048
_MAX_MESSAGE_CHARACTERS: Final = 200
_MAX_CHARACTERS: Final = 65_536
"""Of a title or a body: GitHub takes no more."""
_ZERO_WIDTH: Final = "\u200b"
_AIM: Final = r"\b[\s:*_]+(?:<?https?:|[#!&\\]|GH-|[\w.-]+/)"
"""What may follow a word such as `fixes` so that it closes something."""
_REACHING: Final = re.compile(
    r"(?<!\w)(?:@|&#0*64;|&#x0*40;|&commat;)(?=[\w\\-])"  # a mention notifies people
    r"|(?:[#!]|&#0*35;|&#x0*23;|&num;|\bGH-)(?=\\?\d)"  # a reference appears in what it names
    rf"|\bc(?=los(?:e[sd]?|ing){_AIM})|\bf(?=ix(?:e[sd]|ing)?{_AIM})"
    rf"|\br(?=esolv(?:e[sd]?|ing){_AIM})|\bi(?=mplement(?:s|ed|ing)?{_AIM})"
    r"|^[ \t>*+-]*(?=/[a-z])",  # GitLab runs the line as a command
    re.IGNORECASE | re.MULTILINE,
)
"""What a tracker acts on: a character without width goes behind it."""


class IssueTracker:
    """Takes issues at one URL.

    Attributes:
        name: Its address for people: scheme, host and port, since the rest of the URL may be a secret.
    """

    def __init__(self, url: str, token: str = "", *, seconds: float = _REQUEST_SECONDS) -> None:
        """Post to `url`, with `token` as its bearer if there is one; wait `seconds` for an answer."""
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.netloc}"
        self._url = url
        self._seconds = seconds
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "parley",
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }

    async def create_issue(self, issue: Struct, idempotency_key: str) -> FollowUp:
        """Create an issue of this `title`, `body` and `labels`, and return its address if the tracker gives it.

        Raises:
            StepError: the issue was not created, as far as is known; the message gives the reason in one line.
        """
        import aiohttp

        headers = {**self._headers, "Idempotency-Key": idempotency_key}
        given = MessageToDict(issue)
        shown = {name: defuse(given[name])[:_MAX_CHARACTERS] for name in ("title", "body") if name in given}
        content = json.dumps({**given, **shown}).encode()
        timeout = aiohttp.ClientTimeout(total=self._seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
                # An answer must not redirect the decision, or the token, to another address.
                session.post(
                    self._url,
                    data=content,
                    headers=headers,
                    allow_redirects=False,
                    proxy=_find_proxy(urlsplit(self._url)),
                ) as response,
            ):
                answer = await _read_answer(response)
                self._check(response.status, answer)
        except TimeoutError as error:
            why = f"did not answer within {self._seconds:g} s; it may have made the issue nonetheless"
            raise StepError("TRACKER_TIMEOUT", f"{self.name} {why}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # An error's message may contain the URL.
            why = _one_line(getattr(error, "strerror", None) or type(error).__name__)
            raise StepError("TRACKER_AWAY", f"{self.name} could not be asked: {why}") from error
        return FollowUp(requested=True, url=_issue_url(answer))

    def _check(self, status: int, answer: dict[str, Any]) -> None:
        if 200 <= status < 300:
            return
        if 300 <= status < 400:
            why = "redirects elsewhere; PARLEY_FOLLOW_UP_URL must be the address itself"
            raise StepError("TRACKER_REFUSED", f"{self.name} {why}")
        message = answer.get("message")
        reason = f": {_one_line(message)}" if isinstance(message, str) and message.strip() else ""
        raise StepError("TRACKER_REFUSED", f"{self.name} answered {_describe_status(status)}{reason}")


def _find_proxy(url: SplitResult) -> str | None:
    """Return the proxy of the usual variables (HTTPS_PROXY, NO_PROXY …) for a URL; aiohttp's own way would also send what ~/.netrc has."""
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)


def _describe_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


async def _read_answer(response: "ClientResponse") -> dict[str, Any]:
    """Return the object in an answer; an empty one if there is none, or it is too large."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(_MAX_ANSWER_BYTES):
        body += chunk
        if len(body) > _MAX_ANSWER_BYTES:
            return {}
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _issue_url(answer: dict[str, Any]) -> str:
    """Return the issue's address by an answer, for people before programs; empty if it has no usable one."""
    urls = (answer.get(name) for name in ("html_url", "url"))
    return next((each for each in urls if isinstance(each, str) and _is_link(each)), "")


def _is_link(url: str) -> bool:
    return len(url) <= _MAX_URL_CHARACTERS and is_http_url(url)


def defuse(text: str) -> str:
    """Return text that reads the same and notifies, refers to, closes and runs nothing at a tracker."""
    return _REACHING.sub(rf"\g<0>{_ZERO_WIDTH}", text)


def _one_line(text: str) -> str:
    line = "".join(each if each.isprintable() else " " for each in " ".join(text.split()))
    return line if len(line) <= _MAX_MESSAGE_CHARACTERS else f"{line[: _MAX_MESSAGE_CHARACTERS - 1]}…"
