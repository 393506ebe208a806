"""What the edge reads from the environment."""

from pathlib import Path
from typing import ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from parley.runtime.channel import ChannelSettings
from parley.runtime.comma_lists import SecretList, split_list
from parley.runtime.loopback import is_loopback
from parley.runtime.settings import ServiceSettings

_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class EdgeSettings(ServiceSettings):
    """Settings of the edge."""

    internal: ClassVar[bool] = False
    service_name: ClassVar[str] = "edge"

    port: int = Field(default=7400, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    orchestrator: str = Field(default="127.0.0.1:7401", description="Address of the orchestrator.")
    edge_hosts: str = Field(
        default="",
        description="Names at which clients reach the edge, comma-separated, without ports; *.NAME for all below one. "
        "Requests to other names are refused, but for localhost and its addresses.",
    )
    edge_origins: str = Field(
        default="",
        description="Origins of other sites whose pages may call the edge, comma-separated, such as https://console.example.",
    )
    edge_trusted_proxies: str = Field(
        default="",
        description="Addresses and networks of the proxies in front, comma-separated. They end TLS, and say who calls and by what scheme.",
    )
    edge_streams_per_caller: int = Field(
        default=64, ge=1, description="Streams that one caller may have open at a time."
    )
    edge_send_seconds: float = Field(
        default=30, gt=0, le=600, description="Seconds after which a client that does not read is cut off."
    )
    edge_teams: Path | None = Field(
        default=None,
        description="Folder of configuration files (agents, judge, debate). Each is a model of `/v1/models`, by the name of its file.",
    )
    edge_session_secrets: SecretList = Field(
        default=SecretStr(""),
        description="Secrets, comma-separated, that encrypt the console's sign-in; all edges need the same. The first encrypts, "
        "all decrypt. Unset: one is made at the start, and a restart signs everyone out.",
    )
    edge_session_seconds: float = Field(
        default=43200,
        ge=60,
        le=2592000,
        description="Seconds after which people sign in to the console again.",
    )

    edge_oidc_issuer: str = Field(
        default="",
        pattern=r"^(https?://[^\s@?#]+)?$",
        description="OpenID provider at which people sign in to the console, as in its tokens' claim iss: an https URL. Its tokens "
        "must be ones that the orchestrator accepts (PARLEY_AUTH=jwt).",
    )
    edge_oidc_client_id: str = Field(default="", description="The console's client id at the provider.")
    edge_oidc_client_secret: SecretStr = Field(
        default=SecretStr(""), description="Its secret there; unset: a public client, with PKCE alone."
    )
    edge_oidc_scopes: str = Field(
        default="openid",
        pattern=r"^(\S+ )*openid( \S+)*$",
        description="Scopes to ask for, separated by spaces; offline_access lets some providers renew tokens.",
    )
    edge_oidc_token: Literal["access", "id"] = Field(
        default="access",
        description="Which of its tokens the orchestrator accepts: the access token, or the ID token, whose audience is the client id.",
    )

    @field_validator("edge_origins")
    @classmethod
    def _check_origins(cls, value: str) -> str:
        for each in split_list(value):
            scheme, separator, host = each.partition("://")
            if scheme not in ("http", "https") or not separator or not host or "/" in host:
                raise ValueError("each must be an origin, such as https://console.example, without a path")
        return value

    @field_validator("edge_hosts")
    @classmethod
    def _check_hosts(cls, value: str) -> str:
        for each in split_list(value):
            if "*" in each.removeprefix("*."):
                raise ValueError("* is allowed only at the beginning, as in *.example.com")
        return value

    @model_validator(mode="after")
    def _check_reach(self) -> Self:
        if "mtls" in self.auth_methods:
            raise ValueError(
                "PARLEY_AUTH=mtls: a certificate ends at the edge, and the orchestrator would not see it; use key or jwt here"
            )
        self._check_provider()
        if not is_loopback(self.host) and not self.edge_hosts:
            raise ValueError(
                "PARLEY_HOST: is reached from other machines; set PARLEY_EDGE_HOSTS to the names at which they reach it"
            )
        return self

    def _check_provider(self) -> None:
        issuer = self.edge_oidc_issuer
        if not issuer:
            return
        if not self.edge_oidc_client_id:
            raise ValueError("PARLEY_EDGE_OIDC_ISSUER needs PARLEY_EDGE_OIDC_CLIENT_ID")
        if "jwt" not in self.auth_methods:
            raise ValueError(
                "PARLEY_EDGE_OIDC_ISSUER: people sign in with its tokens; set PARLEY_AUTH=jwt, here and at the orchestrator"
            )
        if issuer.startswith("http://") and not is_loopback(urlsplit(issuer).hostname or ""):
            raise ValueError(
                "PARLEY_EDGE_OIDC_ISSUER must begin with https://, else tokens could be read on the way"
            )

    def _find_exposed(self) -> list[str]:
        """Plaintext is allowed if a trusted proxy ends TLS."""
        found = super()._find_exposed()
        return [each for each in found if "PARLEY_TLS" not in each] if self.edge_trusted_proxies else found

    @property
    def hosts(self) -> list[str]:
        """The names that a request may be for."""
        return [*split_list(self.edge_hosts), *_LOCAL_NAMES]

    def orchestrator_channel(self) -> ChannelSettings:
        """Return the settings of the channel: it carries the credentials of each caller, and none of its own."""
        # `headers`: so that credentials are not sent in plaintext to another machine
        return ChannelSettings(tls=self._client_tls(), headers=tuple, allow_plaintext=self.tls == "off")
