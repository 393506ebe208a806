"""Any other endpoint with an API like OpenAI's."""

from typing import Final

from parley.gateway.providers.kind import ProviderKind

KIND: Final = ProviderKind("openai-compatible")
