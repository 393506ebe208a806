"""Authentication by client certificate, which the connection has verified: rules map it to a tenant and roles."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from parley.runtime.identity.guard import Certificate, Credentials
from parley.runtime.identity.identity import DEFAULT_TENANT, Identity, Role, is_tenant
from parley.v1.access_pb2 import ACCESS_ROLE_SERVICE


@dataclass(frozen=True, slots=True)
class CertificateRule:
    """A rule for certificates.

    Attributes:
        subject: A URI or DNS name of the certificate, or its common name; `*` matches any characters.
        tenant: The callers' tenant. It is ignored for the role `service`: a service names the tenant.
        roles: The callers' roles.
    """

    subject: str
    tenant: str
    roles: frozenset[Role]


class Certificates:
    """Identifies callers by their certificates."""

    def __init__(self, rules: Sequence[CertificateRule]) -> None:
        """Use the first of `rules` that matches."""
        self._rules = tuple(rules)

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return the identity of the certificate, or None if no rule matches."""
        names = _names(shown.certificate())
        for rule in self._rules:
            name = next((each for each in names if fnmatchcase(each, rule.subject)), None)
            if name is None:
                continue
            if ACCESS_ROLE_SERVICE not in rule.roles:
                return Identity(rule.tenant, name, rule.roles)
            tenant = shown.tenant or DEFAULT_TENANT
            return Identity(tenant, name, rule.roles) if is_tenant(tenant) else None
        return None


def _names(certificate: Certificate) -> list[str]:
    """Return the names of a certificate. The common name is last: if there are others, it is only for people."""
    found = [*certificate.get("x509_subject_alternative_name", ()), *certificate.get("x509_common_name", ())]
    return [each.decode(errors="replace") for each in found]
