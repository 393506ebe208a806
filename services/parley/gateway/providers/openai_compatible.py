"""Any other endpoint with an API like OpenAI's."""

from typing import Final

from parley.gateway.providers.kind import ProviderKind

__all__ = ["KIND"]

KIND: Final = ProviderKind("openai-compatible")
