"""A kind of provider: its address, and how it is asked."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import SecretStr

from parley.config.file import Provider as FileProvider
from parley.gateway.wire.api import Api
from parley.gateway.wire.endpoint import Endpoint, EndpointLimits, Provider
from parley.gateway.wire.openai_endpoint import OpenAIEndpoint

_APIS: Final[Mapping[str, Api | None]] = {"auto": None, "responses": Api.RESPONSES, "chat": Api.CHAT}
"""By what the agents file calls them."""


class Home(Struct, frozen=True):
    """The endpoint of a seller of models.

    Attributes:
        usual_model: The model of agents that name none.
        price_list: The name under which the built-in prices hold there.
        api: The API that its hosts are asked by; None: it has to be found out.
    """

    base_url: str
    usual_model: str
    price_list: str
    api: Api | None = None

    def has_host_of(self, base_url: str) -> bool:
        """Return whether a URL leads to the seller's host, or to one of its regions."""
        host, own = urlsplit(base_url).hostname or "", urlsplit(self.base_url).hostname
        return host == own or host.endswith(f".{own}")


def _add_nothing(_: FileProvider) -> Mapping[str, Any]:
    return {}


class ProviderKind(Struct, frozen=True):
    """A kind of provider, by the name that the agents file calls it.

    Attributes:
        home: Where it is found if no base URL is given; None: one has to be given.
        base_url_variable: The variable that names another base URL than the home's; None: there is none.
        key_header: The header that carries the key.
        sends_organization: Whether requests carry OpenAI's own variables for organization and project.
        api: The API that its endpoints are known to be asked by; None: it depends on the host.
        first_api: The API that is asked first if it has to be found out.
        extra_body: What the entry of the file adds to the body of every request.
        connect: Makes the endpoint of a provider. A kind with an API of its own has an endpoint of its own.
    """

    name: str
    home: Home | None = None
    base_url_variable: str | None = None
    key_header: str = "Authorization"
    sends_organization: bool = False
    api: Api | None = None
    first_api: Api = Api.CHAT
    extra_body: Callable[[FileProvider], Mapping[str, Any]] = _add_nothing
    connect: Callable[[Provider, EndpointLimits], Endpoint] = OpenAIEndpoint

    def base_url(self, given: FileProvider, environment: Mapping[str, str], *, has_key: bool) -> str | None:
        """Return the base URL of the provider, None if it is not known or its key is not set."""
        if given.base_url is not None:
            return None if given.api_key_env and not has_key else given.base_url
        named = environment.get(self.base_url_variable) if self.base_url_variable else None
        return named or (self.home.base_url if self.home is not None and has_key else None)

    def provider(
        self, given: FileProvider, base_url: str, key: str, home: Home | None, known_api: Api | None
    ) -> Provider:
        """Return the provider of an entry.

        `home` is whatever seller is known to be at this URL, `known_api` the API that its host is known to be asked by.
        """
        return Provider(
            given.name,
            self.name,
            base_url,
            SecretStr(key) if key else None,
            given.headers,
            api=_APIS[given.api] or self.api or known_api,
            first_api=self.first_api,
            key_header=self.key_header,
            sends_organization=self.sends_organization,
            extra_body=self.extra_body(given),
            usual_model=home.usual_model if home is not None else None,
            price_list=home.price_list if home is not None else None,
            models=given.models,
        )
