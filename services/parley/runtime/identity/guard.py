"""Lets calls in: by one of the ways that the settings name, and with the role that the RPC needs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from parley.runtime.errors import ParleyError, permission_denied, unauthenticated
from parley.runtime.identity.identity import DEFAULT_TENANT, Identity
from parley.runtime.identity.roles import EVERY_ROLE, allows, needed_role, role_name

__all__ = [
    "AUTHORIZATION",
    "OPEN",
    "SERVICE_TOKEN",
    "TENANT",
    "Authenticator",
    "Credentials",
    "Guard",
    "bearer_token",
    "expired_error",
]

AUTHORIZATION: Final = "authorization"
SERVICE_TOKEN: Final = "parley-service-token"  # noqa: S105 (the name of a metadata key)
TENANT: Final = "parley-tenant"
_BEARER: Final = "bearer "

Certificate = Mapping[str, Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a caller shows of itself.

    Attributes:
        bearer: Its key or token; empty without one.
        service_token: What another service signed; empty without one.
        tenant: The tenant that it says it is. It proves nothing.
        certificate: Returns what the connection knows of the caller's certificate, which was checked.
    """

    bearer: str
    service_token: str
    tenant: str
    certificate: Callable[[], Certificate]


class Authenticator(Protocol):
    """One way in."""

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return who it is, or None where this way does not know. Raise ParleyError where it is known why not."""
        ...


class Guard:
    """Tells who calls and whether they may."""

    def __init__(self, *ways: Authenticator, open_to_all: bool = False) -> None:
        """Ask these, in order; the first one that knows the caller counts. Nobody else is let in, unless it is `open_to_all`."""
        self._authenticators = ways
        self._open_to_all = open_to_all

    async def admit(self, method: str, shown: Credentials) -> Identity:
        """Return who calls an RPC (`parley.v1.GatewayService/Generate`).

        Raises:
            ParleyError: UNAUTHENTICATED or PERMISSION_DENIED.
        """
        if self._open_to_all:
            return Identity(shown.tenant or DEFAULT_TENANT, roles=EVERY_ROLE, proven=False)
        identity = await self._identify(shown)
        needed = needed_role(method)
        if not allows(identity.roles, needed):
            raise permission_denied(
                "ROLE_MISSING",
                f"{method} needs the role {role_name(needed)}, which these credentials do not have",
                {"role": role_name(needed)},
            )
        return identity

    async def _identify(self, shown: Credentials) -> Identity:
        for way in self._authenticators:
            identity = await way.identify(shown)
            if identity is not None:
                return identity
        if shown.bearer or shown.service_token:
            raise unauthenticated("BAD_CREDENTIALS", "the key or token is not known here, or was revoked")
        raise unauthenticated(
            "NO_CREDENTIALS", "say who you are: send a key or token (PARLEY_TOKEN), or a certificate"
        )


OPEN: Final = Guard(open_to_all=True)
"""Lets all in, and takes the tenant from what they write."""


def bearer_token(value: str) -> str:
    """Return the key or token of an `authorization` header; empty for a header of another kind."""
    return value[len(_BEARER) :].strip() if value[: len(_BEARER)].lower() == _BEARER else ""


def expired_error() -> ParleyError:
    """Return the error of credentials whose time is over."""
    return unauthenticated("EXPIRED_CREDENTIALS", "the token has expired, or is not valid yet; get a new one")
