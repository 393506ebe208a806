"""An issue tracker outside of Parley: it gets one issue of a debate, however often it has to be asked."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from parley.orchestrator.model.errors import StepError
from parley.orchestrator.model.ids import creation_time
from parley.orchestrator.outgoing.answers import Answer, SendError
from parley.orchestrator.outgoing.signing import sign
from parley.orchestrator.peers.issue_forms import PAGE_SIZE, TrackerForm, issue_url, read_issue, read_issues
from parley.runtime.backoff import Backoff
from parley.runtime.clock import Clock
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.printable import printable_line
from parley.v1.moderated_pb2 import FollowUp

if TYPE_CHECKING:  # imported on use: most orchestrators have no tracker
    from parley.orchestrator.outgoing.sender import GuardedSender

_TRY_SECONDS: Final = 180.0
"""How long it is tried: a person waits for the end of their debate."""
_PAUSES: Final = Backoff(first=1.0, maximum=30.0, jitter=0.2)
_MAX_PAGES: Final = 3
"""Pages of the newest issues that are looked through before a search is asked, whose index may be minutes behind."""
_CLOCK_DIFFERENCE: Final = timedelta(hours=1)
_MAX_MESSAGE_CHARACTERS: Final = 200


class _TemporaryError(Exception):
    """No issue was made, and a later try may make it."""

    def __init__(self, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


class IssueTracker:
    """Takes issues at one URL.

    Attributes:
        name: Its address for people: scheme, host and port, since the rest of the URL may be a secret.
    """

    def __init__(
        self,
        url: str,
        form: TrackerForm,
        sender: "GuardedSender",
        clock: Clock,
        *,
        token: str,
        secret: str = "",
    ) -> None:
        """Post to `url`, with `token` as its bearer, and signed with `secret`, if there are any."""
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.netloc}"
        self._url = url
        self._form = form
        self._sender = sender
        self._clock = clock
        self._secret = secret
        self._headers = {
            "Accept": "application/json",
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }

    async def create_issue(self, issue: Struct, debate: str) -> FollowUp:
        """Create an issue of this `title`, `body` and `labels`, and return its address if the tracker gives it.

        It is looked for before each try, where the tracker's form says how. Where it does not, a try that may have made it is
        the last one.

        Raises:
            StepError: the issue was not created, as far as is known; the message gives the reason in one line.
        """
        body = self._form.write(MessageToDict(issue), debate)
        ends = self._clock.monotonic() + _TRY_SECONDS
        for pause in _PAUSES.pauses():
            try:
                made = await self._find(debate) or await self._post(body, debate)
                return FollowUp(requested=True, url=issue_url(made))
            except _TemporaryError as error:
                wait = max(pause, error.retry_after or 0.0)
                if self._clock.monotonic() + wait > ends:
                    raise StepError(error.reason, f"{self.name} {error}") from None
            await self._clock.sleep(wait)
        raise AssertionError

    async def _post(self, body: bytes, debate: str) -> dict[str, Any]:
        headers = {**self._headers, "Content-Type": "application/json", "Idempotency-Key": debate}
        if self._secret:
            headers |= sign([self._secret], debate, self._clock.now(), body)
        try:
            answer = await self._sender.post(self._url, body, headers)
        except SendError as error:
            raise self._explain(error, may_be_made=error.may_have_arrived) from None
        if not answer.is_success:
            raise self._refuse(answer, may_be_made=answer.status >= 500 and answer.status != 503)
        return read_issue(answer.body)

    async def _find(self, debate: str) -> dict[str, Any] | None:
        """Return the issue that was made of a debate; None if there is none, or the tracker's form does not say how to look."""
        form = self._form
        for page in range(1, _MAX_PAGES + 1) if form.newest else ():
            issues = await self._list(form.newest.replace("{page}", str(page)))
            found = _pick(form, issues, debate)
            if found is not None or len(issues) < PAGE_SIZE or _is_older(issues[-1], debate):
                return found
        if not form.search:
            return None
        return _pick(form, await self._list(form.search.replace("{debate}", quote(debate))), debate)

    async def _list(self, url: str) -> list[dict[str, Any]]:
        try:
            answer = await self._sender.get(url, self._headers)
        except SendError as error:
            raise self._explain(error, may_be_made=False) from None
        if not answer.is_success:
            raise self._refuse(answer, may_be_made=False)
        issues = await in_thread_if_large(len(answer.body), partial(read_issues, answer.body))
        if issues is None:
            raise StepError(
                "TRACKER_REFUSED", f"{self.name} did not answer with a list of issues that can be read"
            )
        return issues

    def _explain(self, error: SendError, *, may_be_made: bool) -> Exception:
        """Return the error of a request without an answer."""
        reason = "TRACKER_TIMEOUT" if error.is_timeout else "TRACKER_AWAY"
        message = str(error).removeprefix("it ")
        if may_be_made and not self._form.can_look:
            return StepError(reason, f"{self.name} {message}; it may have made the issue nonetheless")
        return _TemporaryError(reason, message)

    def _refuse(self, answer: Answer, *, may_be_made: bool) -> Exception:
        """Return the error of an answer that is none."""
        if 300 <= answer.status < 400:
            message = "redirects elsewhere; PARLEY_FOLLOW_UP_URL must be the address itself"
            return StepError("TRACKER_REFUSED", f"{self.name} {message}")
        said = read_issue(answer.body).get("message")
        message = f"answered {answer.describe_status()}" + (
            f": {_shorten(said)}" if isinstance(said, str) and said.strip() else ""
        )
        may_pass = answer.status in {408, 425, 429} or answer.status >= 500 or _is_limited(answer)
        if may_pass and (self._form.can_look or not may_be_made):
            return _TemporaryError("TRACKER_REFUSED", message, answer.retry_after(self._clock.now()))
        return StepError("TRACKER_REFUSED", f"{self.name} {message}")


def _is_limited(answer: Answer) -> bool:
    """Return whether a tracker refuses for the number of requests alone: GitHub says so with 403."""
    return answer.status == 403 and (
        "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    )


def _pick(form: TrackerForm, issues: Sequence[dict[str, Any]], debate: str) -> dict[str, Any] | None:
    return next((each for each in issues if form.is_made_of(each, debate)), None)


def _is_older(issue: Mapping[str, Any], debate: str) -> bool:
    """Return whether an issue is older than a debate, so that all that follow it are."""
    try:
        return (
            datetime.fromisoformat(str(issue.get("created_at"))) < creation_time(debate) - _CLOCK_DIFFERENCE
        )
    except (TypeError, ValueError):  # no time, or one without a zone
        return False


def _shorten(text: str) -> str:
    line = printable_line(text)
    return line if len(line) <= _MAX_MESSAGE_CHARACTERS else f"{line[: _MAX_MESSAGE_CHARACTERS - 1]}…"
