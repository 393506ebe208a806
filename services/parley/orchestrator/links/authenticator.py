"""Authentication by the token of a one-time link."""

from msgspec import Struct

from parley.orchestrator.links.tokens import LinkTokens, link_subject
from parley.runtime.clock import Clock
from parley.runtime.identity.guard import Credentials, RefusedCallerError, expired_error
from parley.runtime.identity.identity import Identity
from parley.runtime.identity.roles import LINK_ROLES


class LinkAuthenticator(Struct, frozen=True):
    """Authentication of whoever has a link. It may use the link and nothing else."""

    tokens: LinkTokens
    clock: Clock

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return the identity that a link has, or None if its token is none of ours. Raise ParleyError if it has expired."""
        claims = self.tokens.read(shown.bearer)
        if claims is None:
            return None
        identity = Identity(claims.tenant, link_subject(claims), LINK_ROLES)
        if claims.expire_time.ToSeconds() <= self.clock.now().timestamp():
            raise RefusedCallerError(expired_error(), identity, "the link has expired")
        return identity
