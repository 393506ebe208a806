"""Authentication between services: a token with the service's name and tenant, signed with a shared secret.

A token is valid for some minutes, so that a leaked one soon expires. It names the tenant, so that no service can
act for another tenant than its caller's.
"""

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from parley.runtime.identity.guard import SERVICE_TOKEN, Credentials, RefusedCallerError, expired_error
from parley.runtime.identity.identity import DEFAULT_TENANT, Identity, is_tenant
from parley.runtime.labels import labels
from parley.v1.access_pb2 import ACCESS_ROLE_SERVICE

_LIFETIME_SECONDS: Final = 300
_RENEW_AFTER_SECONDS: Final = 150
_SKEW_SECONDS: Final = 60
"""The largest accepted difference between two machines' clocks."""
_MAX_TOKENS: Final = 4096
"""Tokens that are remembered, by the tenant or by their text."""
_ROLES: Final = frozenset({ACCESS_ROLE_SERVICE})

Secrets = Callable[[], Sequence[bytes]]
"""Returns the secrets. The first signs, all are accepted, so that one can be replaced while services run. Called each time."""


class ServiceSigner:
    """Signs the calls that a service makes for a tenant."""

    def __init__(self, service: str, secrets: Secrets, now: Callable[[], float] = time.time) -> None:
        """Sign as `service` (letters, digits and hyphens)."""
        self._service = service
        self._secrets = secrets
        self._now = now
        self._tokens: OrderedDict[tuple[bytes, str], tuple[float, str]] = OrderedDict()

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the metadata of a call for the tenant of the current work."""
        return self.headers_for(labels().get("tenant", DEFAULT_TENANT))

    def headers_for(self, tenant: str) -> tuple[tuple[str, str], ...]:
        """Return the metadata of a call for a tenant."""
        return ((SERVICE_TOKEN, self._token(tenant)),)

    def _token(self, tenant: str) -> str:
        secret, now = self._secrets()[0], self._now()
        made = self._tokens.get((secret, tenant))
        if made is not None and 0 <= now - made[0] < _RENEW_AFTER_SECONDS:
            return made[1]
        signed = f"{int(now) + _LIFETIME_SECONDS}:{self._service}:{tenant}"
        token = f"{signed}:{_signature(secret, signed)}"
        self._tokens[secret, tenant] = now, token
        self._tokens.move_to_end((secret, tenant))
        if len(self._tokens) > _MAX_TOKENS:
            self._tokens.popitem(last=False)
        return token


class ServiceTokens:
    """Authentication of other services."""

    def __init__(self, secrets: Secrets, now: Callable[[], float] = time.time) -> None:
        """Accept tokens that are signed with one of the secrets."""
        self._secrets = secrets
        self._now = now

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return the calling service and its tenant. Raise ParleyError for an expired token."""
        if not shown.service_token:
            return None
        signed, _, signature = shown.service_token.rpartition(":")
        if not any(_is_equal(signature, _signature(each, signed)) for each in self._secrets()):
            return None
        parts = signed.split(":")
        if len(parts) != 3 or not is_tenant(parts[2]):
            return None
        identity = service_identity(parts[1], parts[2])
        left = int(parts[0]) - self._now()
        if not -_SKEW_SECONDS <= left <= _LIFETIME_SECONDS + _SKEW_SECONDS:
            raise RefusedCallerError(expired_error(), identity)
        return identity


@lru_cache(_MAX_TOKENS)
def service_identity(service: str, tenant: str) -> Identity:
    """Return who a service is that acts for a tenant."""
    return Identity(tenant, f"service {service}", _ROLES)


def _is_equal(shown: str, right: str) -> bool:
    return hmac.compare_digest(shown.encode(), right.encode())


def _signature(secret: bytes, signed: str) -> str:
    return hmac.new(secret, f"parley-service-token/1:{signed}".encode(), hashlib.sha256).hexdigest()
