"""The model on this machine, which no file names."""

from typing import Final

from parley.gateway.providers.kind import ProviderKind
from parley.gateway.wire.api import Api
from parley.gateway.wire.endpoint import Provider

KIND: Final = ProviderKind("local")


def provider(base_url: str) -> Provider:
    """Return the provider of a model that answers at this URL."""
    return Provider(
        KIND.name,
        KIND.name,
        base_url,
        api=Api.CHAT,  # its Responses API ignores the schema
        keep_alive=False,  # it drops kept connections after a stream
        patient=True,  # it says nothing while it reads, which takes it as long as it takes
    )
