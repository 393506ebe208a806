"""The kinds of providers that the agents file may name."""

from collections.abc import Mapping
from typing import Final

from parley.gateway.providers import azure_openai, openai, openai_compatible, openrouter
from parley.gateway.providers.kind import Home, ProviderKind
from parley.gateway.wire.api import Api

KINDS: Final[Mapping[str, ProviderKind]] = {
    each.name: each for each in (openai.KIND, openrouter.KIND, azure_openai.KIND, openai_compatible.KIND)
}
"""By name."""


def home_at(kinds: Mapping[str, ProviderKind], base_url: str) -> Home | None:
    """Return the seller whose home is at this URL, whatever kind of provider it was declared as."""
    homes = (each.home for each in kinds.values() if each.home is not None)
    return next((home for home in homes if home.base_url == base_url.rstrip("/")), None)


def api_at(kinds: Mapping[str, ProviderKind], base_url: str) -> Api | None:
    """Return the API that the host of this URL is known to be asked by, None if it has to be found out."""
    homes = (each.home for each in kinds.values() if each.home is not None)
    return next((home.api for home in homes if home.has_host_of(base_url)), None)
