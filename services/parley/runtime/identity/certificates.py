"""The way in with a client's certificate, which the connection has checked: rules tell whose it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from parley.runtime.identity.guard import Certificate, Credentials
from parley.runtime.identity.identity import DEFAULT_TENANT, Identity, Role, is_tenant
from parley.v1.access_pb2 import ACCESS_ROLE_SERVICE

__all__ = ["CertificateRule", "Certificates"]


@dataclass(frozen=True, slots=True)
class CertificateRule:
    """Whose certificates these are.

    Attributes:
        subject: A URI or DNS name that a certificate has, or its common name; `*` stands for any characters.
        tenant: Whose callers have them. Of one with the role `service` it is not looked at: a service names the tenant.
        roles: What they may do.
    """

    subject: str
    tenant: str
    roles: frozenset[Role]


class Certificates:
    """Knows callers by their certificates."""

    def __init__(self, rules: Sequence[CertificateRule]) -> None:
        """Look a certificate up in `rules`; the first that fits counts."""
        self._rules = tuple(rules)

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return whose certificate it is."""
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
    """Return the names of a certificate, the common name last: where others stand, it is for people."""
    found = [*certificate.get("x509_subject_alternative_name", ()), *certificate.get("x509_common_name", ())]
    return [each.decode(errors="replace") for each in found]
