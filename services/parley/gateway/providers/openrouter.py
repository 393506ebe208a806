"""OpenRouter, which asks providers of its own."""

from collections.abc import Mapping
from typing import Any, Final

from parley.config.file import Provider as FileProvider
from parley.gateway.providers import openai
from parley.gateway.providers.kind import Home, ProviderKind


def _routing(given: FileProvider) -> Mapping[str, Any]:
    """Return how it chooses among its own providers, as its API calls that."""
    return {"provider": dict(given.routing)} if given.routing else {}


KIND: Final = ProviderKind(
    "openrouter",
    home=Home("https://openrouter.ai/api/v1", f"openai/{openai.MODEL}", price_list="openrouter"),
    extra_body=_routing,
)
