"""What a request of the sender comes to."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

from msgspec import Struct, field

_MAX_RETRY_SECONDS: Final = 24 * 3600.0


class SendError(Exception):
    """A request got no answer.

    The message says why in one line. It names at most the host: the rest of an address, headers and body may be secrets.

    Attributes:
        may_have_arrived: Whether the receiver may have acted on it nonetheless.
        is_timeout: Whether the time was up.
        is_out_of_reach: Whether the operator can allow what was asked for.
    """

    def __init__(
        self,
        message: str,
        *,
        may_have_arrived: bool,
        is_timeout: bool = False,
        is_out_of_reach: bool = False,
    ) -> None:
        """Create it with its message."""
        super().__init__(message)
        self.may_have_arrived = may_have_arrived
        self.is_timeout = is_timeout
        self.is_out_of_reach = is_out_of_reach


class Answer(Struct, frozen=True):
    """What was answered, whatever its status.

    Attributes:
        status: Its HTTP status.
        headers: Its headers, with names in lower case.
        body: Its beginning, up to the bound of the sender.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Whether the request was taken."""
        return 200 <= self.status < 300

    def describe_status(self) -> str:
        """Return the status for people: `503 Service Unavailable`."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)

    def retry_after(self, now: datetime) -> float | None:
        """Return the seconds after which it asks to be tried again, at most a day; None if it does not say."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdecimal():
            seconds = float(text[:9])
        else:
            try:
                at = parsedate_to_datetime(text)
            except (ValueError, OverflowError):
                return None
            seconds = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
        return min(max(seconds, 0.0), _MAX_RETRY_SECONDS)
