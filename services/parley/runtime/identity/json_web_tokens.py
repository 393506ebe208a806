"""Authentication by a token that an OpenID Connect issuer signed."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import jwt
from msgspec import Struct

from parley.runtime.expiring_cache import ExpiringCache
from parley.runtime.identity.guard import Credentials, RefusedCallerError, expired_error
from parley.runtime.identity.identity import Identity, Role, is_tenant
from parley.runtime.identity.roles import CLIENT_ROLES, role_name
from parley.runtime.identity.signing_keys import SigningKeys
from parley.runtime.logs import get_logger

_LEEWAY_SECONDS: Final = 30.0
"""The largest accepted difference between the issuer's clock and ours."""
_CACHE_SECONDS: Final = 300.0
"""How long a token is accepted without another check of its signature, even if its key is withdrawn."""
_MAX_SUBJECT: Final = 256
_DOTS: Final = 2
_ROLES: Final[Mapping[str, Role]] = {role_name(each): each for each in CLIENT_ROLES}

_logger = get_logger(__name__)


class TokenRules(Struct, frozen=True):
    """Which tokens are accepted, and the names of their claims.

    Attributes:
        algorithms: Accepted signature algorithms, such as `RS256`; never with a secret.
        tenant_claim: The claim that names the tenant.
        roles_claim: The claim with the role names: a list, or one text separated by spaces. Unknown names are ignored.
    """

    issuer: str
    audience: str
    algorithms: tuple[str, ...]
    tenant_claim: str = "tenant"
    roles_claim: str = "roles"


class _InvalidTokenError(Exception):
    """A token is not valid."""


class JsonWebTokens:
    """Identifies callers by the claims of their tokens."""

    def __init__(self, rules: TokenRules, keys: SigningKeys, now: Callable[[], float] = time.time) -> None:
        """Accept tokens by `rules`, signed with one of `keys`; `now` is the time for the expiry of cached tokens."""
        self._rules = rules
        self._keys = keys
        self._now = now
        self._cache = ExpiringCache[str, Identity]()

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return the identity of the token. Raise ParleyError if it has expired, or if its issuer does not answer."""
        token = shown.bearer
        if token.count(".") != _DOTS:
            return None
        if (known := self._cache.get(token, self._now())) is not None:
            return known[0]
        try:
            try:
                claims = await self._read_claims(token)
            except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError):
                claims = await self._read_claims(token, check_times=False)
                raise RefusedCallerError(expired_error(), self._identity(claims)) from None
            identity = self._identity(claims)
        except (jwt.PyJWTError, _InvalidTokenError) as error:
            # The reason goes to the log and not to the caller.
            _logger.info("a token is refused", why=str(error))
            return None
        self._cache.put(token, identity, min(float(claims["exp"]), self._now() + _CACHE_SECONDS))
        return identity

    async def _read_claims(self, token: str, *, check_times: bool = True) -> Mapping[str, Any]:
        rules = self._rules
        key = await self._keys.find_key(str(jwt.get_unverified_header(token).get("kid")))
        if key is None:
            raise _InvalidTokenError("its issuer has no key with this id")
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(rules.algorithms),
            audience=rules.audience,
            issuer=rules.issuer,
            leeway=_LEEWAY_SECONDS,
            options={
                "require": ["exp", "iss", "aud", "sub"],
                "verify_exp": check_times,
                "verify_nbf": check_times,
                "verify_iat": check_times,
            },
        )
        return claims

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        tenant, roles = claims.get(self._rules.tenant_claim), claims.get(self._rules.roles_claim, ())
        if not isinstance(tenant, str) or not is_tenant(tenant):
            raise _InvalidTokenError(f"its claim {self._rules.tenant_claim} names no tenant")
        subject = str(claims["sub"])
        if not subject or len(subject) > _MAX_SUBJECT or not subject.isprintable():
            raise _InvalidTokenError("its subject is empty, too long or not printable")
        names = roles.split() if isinstance(roles, str) else roles if isinstance(roles, list) else ()
        held = frozenset(_ROLES[each] for each in names if isinstance(each, str) and each in _ROLES)
        return Identity(tenant, subject, held)
