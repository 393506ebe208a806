"""Authentication by client certificate, which the connection has verified: rules map it to a tenant and roles."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from parley.runtime.identity.guard import Certificate, Credentials
from parley.runtime.identity.identity import DEFAULT_TENANT, Identity, Role, is_tenant
from parley.v1.access_pb2 import ACCESS_ROLE_SERVICE

_COMMON_NAME: Final = "cn"
_NAMES_BY_KIND: Final[Mapping[str, str]] = {
    "uri": "peer_uri",
    "dns": "peer_dns",
    "email": "peer_email",
    _COMMON_NAME: "x509_common_name",
}
"""The kinds of names that a rule can match, and what gRPC calls them."""
_ALTERNATIVE_NAMES: Final = "x509_subject_alternative_name"
"""What gRPC calls the alternative names of all kinds."""


class CertificateRule(Struct, frozen=True):
    """A rule for certificates.

    Attributes:
        subject: The kind of a name, and a pattern of it: `uri:`, `dns:` or `email:` is an alternative name of that kind,
            `cn:` the common name of a certificate without alternative names. In the pattern `*` matches any characters.
        tenant: The callers' tenant. It is ignored for the role `service`: a service names the tenant.
        roles: The callers' roles.
    """

    subject: str
    tenant: str
    roles: frozenset[Role]

    def __post_init__(self) -> None:
        """Raise ValueError for a subject without a kind or a pattern."""
        kind, _, pattern = self.subject.partition(":")
        if kind not in _NAMES_BY_KIND or not pattern:
            raise ValueError(
                f"subject must say what it matches; begin it with uri:, dns:, email: or cn: (this one: {_guess_kind(self.subject)}:)"
            )

    def find_name(self, certificate: Certificate) -> str | None:
        """Return the name of the certificate that the rule matches, or None."""
        kind, _, pattern = self.subject.partition(":")
        if kind == _COMMON_NAME and any(certificate.get(_ALTERNATIVE_NAMES, ())):
            return (
                None  # the common name is then only for people, and whoever asks for a certificate chooses it
            )
        names = (each.decode(errors="replace") for each in certificate.get(_NAMES_BY_KIND[kind], ()))
        return next((each for each in names if fnmatchcase(each, pattern)), None)


class Certificates:
    """Identifies callers by their certificates."""

    def __init__(self, rules: Sequence[CertificateRule]) -> None:
        """Use the first of `rules` that matches."""
        self._rules = tuple(rules)

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return the identity of the certificate, or None if no rule matches."""
        certificate = shown.certificate()
        for rule in self._rules:
            name = rule.find_name(certificate)
            if name is None:
                continue
            if ACCESS_ROLE_SERVICE not in rule.roles:
                return Identity(rule.tenant, name, rule.roles)
            tenant = shown.tenant or DEFAULT_TENANT
            return Identity(tenant, name, rule.roles) if is_tenant(tenant) else None
        return None


def _guess_kind(subject: str) -> str:
    """Return the kind that a subject without one most likely means."""
    if "://" in subject:
        return "uri"
    return "email" if "@" in subject else "dns"
