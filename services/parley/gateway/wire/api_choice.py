"""Which of the two APIs an endpoint is asked by: what is set, what it turned out to have, and for how long that holds."""

import asyncio
import re
import time
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from parley.gateway.failures import BAD_REQUEST, SERVER_ERROR, Failure
from parley.gateway.wire.api import Api
from parley.gateway.wire.errors import is_missing_endpoint, of_status, text_of
from parley.gateway.wire.openai_parts import APIStatusError

LESSON_SECONDS: Final = 3600.0
"""How long a lesson holds."""
_KEPT: Final = 4096
"""The newest: callers name models and bring schemas as they like."""

K = TypeVar("K", bound=Hashable)


class Lessons(Generic[K]):
    """Lessons of one sort; each holds for `LESSON_SECONDS` after it was learned last."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._until: dict[K, float] = {}

    def learn(self, lesson: K) -> None:
        """Let it hold from now on."""
        self.forget(lesson)
        self._until[lesson] = self._now() + LESSON_SECONDS
        if len(self._until) > _KEPT:
            self.forget(next(iter(self._until)))

    def forget(self, lesson: K) -> None:
        """Let it hold no more."""
        self._until.pop(lesson, None)

    def holds(self, lesson: K) -> bool:
        """Return whether it was learned, and not too long ago."""
        if not self._until:  # as nearly always: no lesson has to be looked up
            return False
        until = self._until.get(lesson)
        if until is None:
            return False
        if self._now() < until:
            return True
        del self._until[lesson]
        return False


_PROBE_SECONDS: Final = 0.25
"""How long calls wait for the first one to find out which API there is; they go on by themselves after that."""

_SHAPE_STATUSES: Final = frozenset({400, 415, 422})
_SHAPE_WORDS: Final = re.compile(
    r"\b(inputs?|messages?|contents?|roles?|items?|types?|fields?|parameters?|propert(y|ies)|arguments?|body|payload"
    r"|schema|json|required|missing|unknown|unrecogni[sz]ed|unexpected|unsupported|deseriali[sz]e|parse|pars(ed|ing)"
    r"|endpoint|api)\b",
    re.IGNORECASE,
)
_OTHER_API_WORDS: Final = re.compile(
    r"/(responses|chat/completions)\b|\bresponses api\b|\bnot a chat model\b", re.IGNORECASE
)
"""What a model that has one API alone is refused with, also as a 404."""
_OTHER: Final = {Api.CHAT: Api.RESPONSES, Api.RESPONSES: Api.CHAT}


class ApiChoice:
    """The API that texts of a model are asked for by: the fixed one, else the first one unless it turned out otherwise.

    The process remembers what turned out, so that no later call pays for it.
    """

    def __init__(
        self, fixed: Api | None, first: Api = Api.CHAT, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._fixed = fixed
        self._first = first
        self._probe: asyncio.Event | None = None
        self._is_there = False
        self._missing = Lessons[Api](now)
        self._other_answers = Lessons[str](now)
        self._other_fails = Lessons[str](now)
        self._answered: set[tuple[Api, str, bool]] = set()

    def of(self, model: str) -> Api:
        """Return the API to ask by."""
        if self._fixed is not None:
            return self._fixed
        return _OTHER[self._first] if self._has_lesson(model) or self._is_first_missing() else self._first

    async def start_probe(self, model: str) -> bool:
        """Return whether the caller is the one to find out which API there is, and has to call `end_probe` when it is done.

        While another call finds out, this waits a moment for it.
        """
        known = self._fixed is not None or self._is_there or self._is_first_missing()
        if known or self._has_lesson(model):
            return False
        if self._probe is None:
            self._probe = asyncio.Event()
            return True
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._probe.wait()
        except TimeoutError:
            pass
        return False

    def end_probe(self) -> None:
        """Note that the first call knows now, or never will: those that wait for it go on."""
        if self._probe is not None:
            self._probe.set()
            self._probe = None

    def record_request_taken(self, api: Api) -> None:
        """Note that the endpoint took a request to this API."""
        self._is_there = self._is_there or api is self._first
        self.end_probe()

    def record_answer(self, api: Api, model: str, *, with_schema: bool) -> None:
        """Note that an answer of this model came whole: an error of its server is an outage from now on."""
        self._answered.add((api, model, with_schema))
        if api is not self.of(model):
            self._other_answers.learn(model)

    def learn_missing(self, api: Api, model: str, error: APIStatusError) -> bool:
        """Return whether the error says that this API is not there, and there is another one to ask by from now on."""
        if self._fixed is not None or api is not self.of(model) or not is_missing_endpoint(error):
            return False
        self._other_answers.forget(model)
        if api is self._first:
            self._missing.learn(api)
            self._is_there = False
            self.end_probe()
            return True
        had_neither = self._is_first_missing()
        self._missing.forget(self._first)  # perhaps the next call finds it mended
        return not had_neither

    def choose_other(
        self, api: Api, model: str, problem: APIStatusError | Failure, *, with_schema: bool
    ) -> Api | None:
        """Return the API to ask by once instead, None if the problem is none that another API helps against."""
        if self._fixed is not None or api is not self.of(model) or self._is_first_missing():
            return None
        if self._other_fails.holds(model):
            return None
        if isinstance(problem, APIStatusError) and _is_about_the_request(problem):
            return _OTHER[api]
        failure = problem if isinstance(problem, Failure) else of_status(problem)
        is_outage = failure.retry_after is not None or (api, model, with_schema) in self._answered
        return _OTHER[api] if failure.kind is SERVER_ERROR and not is_outage else None

    def record_other_failed(self, model: str) -> None:
        """Note that the other API did not help: it is not asked again for a while."""
        self._other_fails.learn(model)

    def _has_lesson(self, model: str) -> bool:
        return self._other_answers.holds(model)

    def _is_first_missing(self) -> bool:
        return self._missing.holds(self._first)


def _is_about_the_request(error: APIStatusError) -> bool:
    """Return whether an error names the request's shape, rather than its model, its length or what it says."""
    words = text_of(error)
    if error.status_code in _SHAPE_STATUSES | {404} and _OTHER_API_WORDS.search(words):
        return True
    if error.status_code not in _SHAPE_STATUSES or of_status(error).kind is not BAD_REQUEST:
        return False
    return error.param in {"messages", "input"} or _SHAPE_WORDS.search(words) is not None
