"""Settings of access and of TLS: `PARLEY_AUTH`, `PARLEY_TLS…`, `PARLEY_SERVICE_SECRET…`."""

from pathlib import Path
from typing import ClassVar, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from parley.runtime.channel import ChannelSettings
from parley.runtime.comma_lists import MIN_SECRET, split_list
from parley.runtime.errors import ConfigurationError
from parley.runtime.identity.certificates import CertificateRule, Certificates
from parley.runtime.identity.guard import OPEN, Authenticator, Guard
from parley.runtime.identity.identity import DEFAULT_TENANT, is_tenant
from parley.runtime.identity.roles import EVERY_ROLE, roles_by_name
from parley.runtime.identity.service_tokens import Secrets, ServiceSigner, ServiceTokens
from parley.runtime.loopback import is_loopback
from parley.runtime.tls import SYSTEM_AUTHORITIES, ClientTls, ServerTls
from parley.runtime.watched_files import WatchedFiles

_METHOD: Final = "(key|jwt|mtls)"


class CertificateRuleSetting(BaseModel):
    """A rule of PARLEY_MTLS_RULES: which tenant and roles a certificate has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    subject: str = Field(min_length=1)
    tenant: str = DEFAULT_TENANT
    roles: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        roles_by_name(self.roles, EVERY_ROLE)
        if not is_tenant(self.tenant):
            raise ValueError(
                "tenant must be 1 to 64 characters of A-Z a-z 0-9 . _ -, and begin with a letter or digit"
            )
        self.rule()
        return self

    def rule(self) -> CertificateRule:
        """Return the rule."""
        return CertificateRule(self.subject, self.tenant, roles_by_name(self.roles, EVERY_ROLE))


class AccessSettings(BaseSettings):
    """Settings of every service: how callers authenticate, and how the service calls others."""

    internal: ClassVar[bool] = True
    """Whether only other services may call it."""
    service_name: ClassVar[str] = "service"

    host: str = Field(default="127.0.0.1", description="Address to listen on; 0.0.0.0 or [::] for all.")
    auth: str = Field(
        default="",
        pattern=rf"^(none|{_METHOD}(,{_METHOD})*)?$",
        description="Ways to authenticate, such as key,jwt,mtls. none: every caller is accepted and names its tenant. "
        "Unset: as none, but only on a loopback address and without a service secret.",
    )
    tls: Literal["", "off"] = Field(
        default="", description="off: allow plaintext connections with other machines."
    )
    tls_certificate: Path | None = Field(
        default=None, description="File of the service's certificate chain, in PEM."
    )
    tls_key: Path | None = Field(default=None, description="File of its key, in PEM.")
    tls_client_ca: Path | None = Field(
        default=None,
        description="File of the authority that signs callers' certificates. If set, each caller must have one.",
    )
    ca: str = Field(
        default="",
        description="File of the authority that signs the certificates of called services, or system. Unset: calls are in plaintext.",
    )
    mtls_rules: tuple[CertificateRuleSetting, ...] = Field(
        default=(),
        description='Tenant and roles by certificate: [{"subject": "KIND:PATTERN", "tenant": …, "roles": […]}]. KIND is uri, dns, '
        "email, or cn (only for certificates without other names).",
    )
    service_secret: SecretStr | None = Field(
        default=None,
        min_length=MIN_SECRET,
        description="Secret that services sign with, the same for all: 32 characters or more.",
    )
    service_secret_file: Path | None = Field(
        default=None, description="File of such secrets, one a line. The first signs; all are accepted."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 (as pydantic-settings calls it)
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return where values come from. There are no files to look through, which would take half of the time."""
        return init_settings, env_settings

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        problems = [*self._find_incomplete(), *self._find_exposed()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _find_incomplete(self) -> list[str]:
        found = []
        if (self.tls_certificate is None) != (self.tls_key is None):
            found.append("PARLEY_TLS_CERTIFICATE and PARLEY_TLS_KEY work only together: set both, or none")
        if self.tls_client_ca is not None and self.tls_certificate is None:
            found.append("PARLEY_TLS_CLIENT_CA needs PARLEY_TLS_CERTIFICATE: set both, or none")
        if "mtls" in self.auth_methods and not (self.tls_client_ca and self.mtls_rules):
            found.append("PARLEY_AUTH=mtls needs PARLEY_TLS_CLIENT_CA and PARLEY_MTLS_RULES")
        if self.service_secret is not None and self.service_secret_file is not None:
            found.append("PARLEY_SERVICE_SECRET and PARLEY_SERVICE_SECRET_FILE say the same: set one of them")
        return found

    def _find_exposed(self) -> list[str]:
        if is_loopback(self.host):
            return []
        found, reached = [], "PARLEY_HOST: is reached from other machines"
        if not self.requires_credentials and self.auth != "none":
            ways = "PARLEY_SERVICE_SECRET" if self.internal else "PARLEY_AUTH=key, jwt or mtls"
            found.append(
                f"{reached}; set {ways} to authenticate callers, or PARLEY_AUTH=none to accept every caller"
            )
        if self.tls_certificate is None and self.tls != "off":
            found.append(
                f"{reached}; set PARLEY_TLS_CERTIFICATE and PARLEY_TLS_KEY, or PARLEY_TLS=off to allow plaintext"
            )
        return found

    @property
    def auth_methods(self) -> frozenset[str]:
        """The authentication methods for clients that PARLEY_AUTH names."""
        return frozenset(split_list(self.auth)) - {"none"}

    @property
    def requires_credentials(self) -> bool:
        """Whether callers must authenticate."""
        return self.auth != "none" and bool(self.auth_methods or (self.internal and self._has_secret))

    @property
    def _has_secret(self) -> bool:
        return self.service_secret is not None or self.service_secret_file is not None

    def guard(self, *ways: Authenticator) -> Guard:
        """Return the guard: it accepts other services, certificates that rules name, and callers that `ways` identify.

        Raise ConfigurationError if a file that a setting names cannot be used.
        """
        if not self.requires_credentials:
            return OPEN
        secrets = self._secrets()
        if self.internal and secrets is None and "mtls" not in self.auth_methods:
            raise ConfigurationError(
                "PARLEY_AUTH: only other services may call this service; set PARLEY_SERVICE_SECRET too, or mtls"
            )
        services = [ServiceTokens(secrets)] if secrets is not None else []
        certificates = (
            [Certificates([each.rule() for each in self.mtls_rules])] if "mtls" in self.auth_methods else []
        )
        return Guard(*services, *ways, *certificates)

    def server_tls(self) -> ServerTls | None:
        """Return the server's TLS settings, or None for plaintext. Raise ConfigurationError if a file cannot be used."""
        if self.tls_certificate is None or self.tls_key is None:
            return None
        return ServerTls(self.tls_certificate, self.tls_key, self.tls_client_ca)

    def channels(self) -> ChannelSettings:
        """Return the settings of channels to other services. Raise ConfigurationError if a file cannot be used."""
        secrets = self._secrets()
        return ChannelSettings(
            tls=self._client_tls(),
            headers=ServiceSigner(self.service_name, secrets).headers if secrets is not None else None,
            allow_plaintext=self.tls == "off",
        )

    def _client_tls(self) -> ClientTls | None:
        if not self.ca:
            return None
        ca = None if self.ca == SYSTEM_AUTHORITIES else Path(self.ca)
        return ClientTls(ca, self.tls_certificate, self.tls_key)

    def _secrets(self) -> Secrets | None:
        if self.service_secret is not None:
            known = (self.service_secret.get_secret_value().encode(),)
            return lambda: known
        if self.service_secret_file is None:
            return None
        path = self.service_secret_file
        files = WatchedFiles(
            {"PARLEY_SERVICE_SECRET_FILE": path}, lambda contents: _check_secrets(path, contents)
        )
        return lambda: _read_lines(files.contents())


def _read_lines(contents: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple(line.strip() for line in contents[0].splitlines() if line.strip())


def _check_secrets(path: Path, contents: tuple[bytes, ...]) -> None:
    lines = _read_lines(contents)
    if not lines or min(map(len, lines)) < MIN_SECRET:
        wrong = "has a line that is too short" if lines else "is empty"
        raise ValueError(
            f"PARLEY_SERVICE_SECRET_FILE: {path} {wrong}; each line must be a secret of {MIN_SECRET} characters or more, such as "
            "`openssl rand -hex 32` prints"
        )
