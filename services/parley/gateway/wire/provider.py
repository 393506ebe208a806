"""Who serves models, and how one asks there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from parley.gateway.wire.api import Api

__all__ = ["Provider"]


@dataclass(frozen=True, slots=True)
class Provider:
    """Who serves models, and where.

    Attributes:
        kind: The name of its kind.
        api: The API that it is asked by; None: it has to be found out.
        first_api: The API that is asked first where it has to be found out.
        key_header: The header that carries the key.
        sends_organization: Whether requests carry OpenAI's own variables for organization and project.
        keep_alive: Whether a connection may serve a second request.
        patient: Whether its silence is waited out, for as long as the call has time.
        extra_body: Goes with every request.
        usual_model: The model of agents that name none; None: the first that it lists.
        models: Those that may be asked for there; empty: any.
        price_list: The name under which the built-in prices hold for it; None: they do not.
    """

    name: str
    kind: str
    base_url: str
    api_key: SecretStr | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    api: Api | None = None
    first_api: Api = Api.CHAT
    key_header: str = "Authorization"
    sends_organization: bool = False
    keep_alive: bool = True
    patient: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    usual_model: str | None = None
    price_list: str | None = None
    models: tuple[str, ...] = ()
