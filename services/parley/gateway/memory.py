"""What a process has learned of an endpoint, so that no later call pays for finding it out again."""

import asyncio
import re
from typing import Final

import openai

from parley.gateway.errors_table import CONTEXT_OVERFLOW
from parley.gateway.failures import is_missing_endpoint, of_status, text_of
from parley.gateway.wire import Api

__all__ = ["EndpointMemory"]

_PROBE_SECONDS: Final = 0.25
"""How long calls wait for the first one to find out which API there is; they go on by themselves after that."""

_REFUSAL_STATUSES: Final = frozenset({400, 415, 422, 501})
_SCHEMA_WORDS: Final = re.compile(
    r"response_format|json_schema|text\.format|structured output|\bformat\b|\bschema\b", re.IGNORECASE
)
_TOOL_STATUSES: Final = frozenset({400, 404, 415, 422, 500, 501})
"""404 is OpenRouter's where no provider of a model takes tools, 500 llama.cpp's where it has no template for them."""
_TOOL_WORDS: Final = re.compile(r"\btools?\b|\btool_|\bfunctions?\b|\bfunction_", re.IGNORECASE)
_NO_TOOLS_WORDS: Final = re.compile(
    r"tool use|--jinja|not support|unsupported|not implemented", re.IGNORECASE
)
_OPTIONAL: Final = {
    Api.RESPONSES: ("store", "temperature"),
    Api.CHAT: ("stream_options", "temperature", "max_tokens"),
}
"""Parameters that a request can do without where an endpoint refuses them."""


class EndpointMemory:
    """Which API an endpoint has, which parameters it refuses, and which models take no schema or no tools."""

    def __init__(self, api: Api | None = None) -> None:
        self._fixed = api is not None
        self._api = api
        self._probe: asyncio.Event | None = None
        self._refused: dict[tuple[Api, str], frozenset[str]] = {}
        self._no_schema: set[str] = set()
        self._deaf: set[str] = set()
        self._no_tools: set[tuple[str, bool]] = set()

    @property
    def known(self) -> Api | None:
        """The API that the endpoint is known to have."""
        return self._api

    async def ask_first(self) -> bool:
        """Whether the caller is the one to find out which API there is, and has to say `asked` when it is done.

        While another call finds out, this waits a moment for it.
        """
        if self._api is not None:
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

    def asked(self) -> None:
        """The first call knows now, or never will: those that wait for it go on."""
        if self._probe is not None:
            self._probe.set()
            self._probe = None

    def answered(self, api: Api) -> None:
        """The endpoint took a request to this API."""
        if self._api is None:
            self._api = api
        if self._probe is not None:
            self.asked()

    def refused(self, api: Api, model: str) -> frozenset[str]:
        """Names of the parameters not to send."""
        return self._refused.get((api, model), frozenset())

    def takes_schema(self, model: str) -> bool:
        """Whether a schema is worth sending."""
        return model not in self._no_schema

    def needs_words(self, model: str) -> bool:
        """Whether a schema has to be said in words, beside being sent or instead of it."""
        return model in self._no_schema or model in self._deaf

    def takes_tools(self, model: str, *, with_schema: bool) -> bool:
        """Whether tools are worth offering; some models take them, but not beside a schema."""
        return not self._no_tools & {(model, False), (model, with_schema)}

    def schema_was_ignored(self, model: str) -> None:
        """The model answered a schema with something that is not even JSON."""
        self._deaf.add(model)

    def learn_no_tools(self, model: str, sent: dict[str, object], error: openai.APIStatusError) -> bool:
        """Whether the error refuses the tools that were sent, which is remembered."""
        status = error.status_code
        if "tools" not in sent or status not in _TOOL_STATUSES or of_status(error).row is CONTEXT_OVERFLOW:
            return False
        words = text_of(error)
        if not _TOOL_WORDS.search(words):
            return False
        if status in {404, 500, 501} and not _NO_TOOLS_WORDS.search(words):
            return False
        beside_schema = _has_schema(sent) and _SCHEMA_WORDS.search(words) is not None
        self._no_tools.add((model, beside_schema))
        return True

    def learn(self, api: Api, model: str, sent: dict[str, object], error: openai.APIStatusError) -> bool:
        """Takes from an error what to do otherwise; False if there is nothing in it, and the error stands."""
        if is_missing_endpoint(error):
            return self._learn_api(api)
        if error.status_code not in _REFUSAL_STATUSES:
            return False
        words = text_of(error)
        for name in _OPTIONAL[api]:
            if name in sent and (error.param == name or re.search(rf"\b{name}\b", words)):
                self._refused[api, model] = self.refused(api, model) | {name}
                return True
        if _has_schema(sent) and _SCHEMA_WORDS.search(words):
            self._no_schema.add(model)
            return True
        return False

    def _learn_api(self, api: Api) -> bool:
        if self._fixed:
            return False
        if api is Api.RESPONSES:
            self._api = Api.CHAT
            self.asked()
            return True
        self._api = None  # it has neither: perhaps the next call finds it mended
        return False


def _has_schema(sent: dict[str, object]) -> bool:
    return "text" in sent or "response_format" in sent
