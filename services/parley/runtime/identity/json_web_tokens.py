"""The way in with a token that an OpenID Connect issuer signed."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from parley.runtime.expiring_cache import ExpiringCache
from parley.runtime.identity.guard import Credentials, expired_error
from parley.runtime.identity.identity import Identity, Role, is_tenant
from parley.runtime.identity.roles import CLIENT_ROLES, role_name
from parley.runtime.identity.signing_keys import SigningKeys
from parley.runtime.logs import get_logger

__all__ = ["JsonWebTokens", "TokenRules"]

_LEEWAY_SECONDS: Final = 30.0
"""How far the issuer's clock and ours may be apart."""
_CACHE_SECONDS: Final = 300.0
"""How long a token is known without another check of its signature, and so how long one of a withdrawn key may still work."""
_MAX_SUBJECT: Final = 256
_DOTS: Final = 2
_ROLES: Final[Mapping[str, Role]] = {role_name(each): each for each in CLIENT_ROLES}

_logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Which tokens are believed, and what they say.

    Attributes:
        algorithms: How they may be signed, such as `RS256`; never with a secret.
        tenant_claim: The claim that names the tenant.
        roles_claim: The claim with the names of roles: a list, or one text with spaces between. Others in it are passed over.
    """

    issuer: str
    audience: str
    algorithms: tuple[str, ...]
    tenant_claim: str = "tenant"
    roles_claim: str = "roles"


class _InvalidTokenError(Exception):
    """A token is not believed."""


class JsonWebTokens:
    """Knows callers by what their issuer says of them."""

    def __init__(self, rules: TokenRules, keys: SigningKeys, now: Callable[[], float] = time.time) -> None:
        """Believe tokens by `rules` that `keys` vouch for; `now` tells whether one that is known has expired."""
        self._rules = rules
        self._keys = keys
        self._now = now
        self._cache = ExpiringCache[str, Identity]()

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return who the token is for. Raise ParleyError for one whose time is over, or where its issuer is away."""
        token = shown.bearer
        if token.count(".") != _DOTS:
            return None
        if (known := self._cache.get(token, self._now())) is not None:
            return known[0]
        try:
            claims = await self._claims(token)
            identity = self._identity(claims)
        except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError):
            raise expired_error() from None
        except (jwt.PyJWTError, _InvalidTokenError) as error:
            # Who runs the service is told what is wrong with a token, and the caller is not.
            _logger.info("a token is refused", why=str(error))
            return None
        self._cache.put(token, identity, min(float(claims["exp"]), self._now() + _CACHE_SECONDS))
        return identity

    async def _claims(self, token: str) -> Mapping[str, Any]:
        rules = self._rules
        key = await self._keys.key(str(jwt.get_unverified_header(token).get("kid")))
        if key is None:
            raise _InvalidTokenError("its issuer has no such key")
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(rules.algorithms),
            audience=rules.audience,
            issuer=rules.issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        return claims

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        tenant, roles = claims.get(self._rules.tenant_claim), claims.get(self._rules.roles_claim, ())
        if not isinstance(tenant, str) or not is_tenant(tenant):
            raise _InvalidTokenError(f"its claim {self._rules.tenant_claim} names no tenant")
        subject = str(claims["sub"])
        if not subject or len(subject) > _MAX_SUBJECT or not subject.isprintable():
            raise _InvalidTokenError("its subject cannot be written down")
        names = roles.split() if isinstance(roles, str) else roles if isinstance(roles, list) else ()
        held = frozenset(_ROLES[each] for each in names if isinstance(each, str) and each in _ROLES)
        return Identity(tenant, subject, held)
