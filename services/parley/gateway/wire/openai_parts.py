"""What is used of the `openai` package, imported from the modules that have it.

The package itself would import 500 modules more, with a type for everything that an API may answer. Nothing here uses them:
answers are read by the chunk.
"""

from parley.runtime.late_packages import import_late

import_late("openai", "openai.lib", "openai.types", "openai.types.shared", "httpcore2")

from openai._base_client import DefaultAioHttpClient  # noqa: E402
from openai._client import AsyncOpenAI  # noqa: E402
from openai._exceptions import APIConnectionError, APIStatusError  # noqa: E402
from openai._types import Omit  # noqa: E402
from openai._vendor.httpx_aiohttp.transport import (  # noqa: E402
    AiohttpTransport,
    map_aiohttp_exceptions,
)

__all__ = [
    "APIConnectionError",
    "APIStatusError",
    "AiohttpTransport",
    "AsyncOpenAI",
    "DefaultAioHttpClient",
    "Omit",
    "map_aiohttp_exceptions",
]
