"""Azure OpenAI: the `/openai/v1` endpoint of a resource, which takes its key in a header of its own."""

from typing import Final

from parley.gateway.providers.kind import ProviderKind

KIND: Final = ProviderKind("azure-openai", key_header="api-key")
