"""Authenticates calls by one of the configured methods, and checks the role that the RPC needs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from parley.runtime.errors import ParleyError, permission_denied, unauthenticated
from parley.runtime.identity.identity import DEFAULT_TENANT, Identity
from parley.runtime.identity.roles import EVERY_ROLE, allows, needed_role, role_name

AUTHORIZATION: Final = "authorization"
SERVICE_TOKEN: Final = "parley-service-token"  # noqa: S105 (the name of a metadata key)
TENANT: Final = "parley-tenant"
_BEARER: Final = "bearer "

Certificate = Mapping[str, Iterable[bytes]]


class Credentials(Struct, frozen=True):
    """What a caller sends to authenticate.

    Attributes:
        bearer: Its key or token; empty without one.
        service_token: A token that another service signed; empty without one.
        tenant: The tenant that the caller names. It proves nothing.
        certificate: Returns the verified certificate of the connection.
        carried: Who it is, if it is a service of this process; None for every caller from outside. Nothing that is sent sets it.
    """

    bearer: str
    service_token: str
    tenant: str
    certificate: Callable[[], Certificate]
    carried: Identity | None = None


class Authenticator(Protocol):
    """One authentication method."""

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return the caller's identity, or None if this method does not know it. Raise ParleyError if the reason is known."""
        ...


class RefusedCallerError(ParleyError):
    """The refusal of a caller that is known.

    Attributes:
        identity: Who it is. Its credentials prove it, although they do not hold or do not suffice.
        why: The reason, for the log; the caller does not get it.
    """

    def __init__(self, refusal: ParleyError, identity: Identity, why: str = "") -> None:
        super().__init__(refusal.code, refusal.reason, refusal.message, refusal.metadata)
        self.identity = identity
        self.why = why


class Guard:
    """Authenticates callers and checks their roles."""

    def __init__(self, *ways: Authenticator, open_to_all: bool = False) -> None:
        """Try the authenticators in order; the first that knows the caller counts. Refuse all others, unless it is `open_to_all`."""
        self._authenticators = ways
        self._open_to_all = open_to_all

    async def admit(self, method: str, shown: Credentials) -> Identity:
        """Return the identity of the caller of an RPC (`parley.v1.GatewayService/Generate`).

        Raise ParleyError: UNAUTHENTICATED or PERMISSION_DENIED.
        """
        if self._open_to_all:
            return Identity(shown.tenant or DEFAULT_TENANT, roles=EVERY_ROLE, proven=False)
        identity = shown.carried or await self._identify(shown)
        needed = needed_role(method)
        if not allows(identity.roles, needed):
            refusal = permission_denied(
                "ROLE_MISSING",
                f"{method} needs the role {role_name(needed)}, which these credentials do not have",
                {"role": role_name(needed)},
            )
            raise RefusedCallerError(refusal, identity)
        return identity

    async def _identify(self, shown: Credentials) -> Identity:
        for way in self._authenticators:
            identity = await way.identify(shown)
            if identity is not None:
                return identity
        if shown.bearer or shown.service_token:
            raise bad_credentials_error()
        raise unauthenticated(
            "NO_CREDENTIALS",
            "authentication is required: send a key or token (PARLEY_TOKEN), or a certificate; "
            "docs/guides/http.md says where the token of your own parley up is",
        )


OPEN: Final = Guard(open_to_all=True)
"""Accepts all callers, and takes the tenant from their metadata."""


def bearer_token(value: str) -> str:
    """Return the key or token of an `authorization` header; empty for a header of another kind."""
    return value[len(_BEARER) :].strip() if value[: len(_BEARER)].lower() == _BEARER else ""


def bad_credentials_error() -> ParleyError:
    """Return the error of unknown or revoked credentials. It does not say which, or guesses would find ids of keys."""
    return unauthenticated("BAD_CREDENTIALS", "the key or token is not known here, or was revoked")


def expired_error() -> ParleyError:
    """Return the error of expired credentials."""
    return unauthenticated("EXPIRED_CREDENTIALS", "the token has expired, or is not valid yet; get a new one")
