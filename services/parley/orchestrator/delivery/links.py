"""The one-time links in deliveries about a debate that waits."""

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from parley.orchestrator.delivery.hooks import HookStore
from parley.orchestrator.links.checkpoint import actions_of
from parley.orchestrator.links.tokens import LinkTokens
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.times import time_of, timestamp
from parley.v1.event_pb2 import CheckpointOpened
from parley.v1.link_pb2 import LinkClaims, OneTimeLink


class LinkRules(Struct, frozen=True):
    """Where links in deliveries lead, and which there are.

    Attributes:
        public_url: Where people reach the edge, without a slash at its end; empty if it is not known.
        tokens: Signs one-time links; None: there are none.
        lifetime: How long a one-time link works at most; it never works longer than its checkpoint is open.
    """

    public_url: str = ""
    tokens: LinkTokens | None = None
    lifetime: timedelta = timedelta(days=3)


class LinkWriter(Struct, frozen=True):
    """Writes one-time links for hooks that may have them."""

    hooks: HookStore
    rules: LinkRules

    async def write(self, hook_id: str, opened: Envelope) -> Sequence[OneTimeLink]:
        """Return the links that answer a checkpoint, for a delivery to a hook; the same at every try. May raise StorageError."""
        tokens = self.rules.tokens
        if tokens is None or not isinstance(opened.payload, CheckpointOpened):
            return ()
        stored = await self.hooks.get(opened.tenant, hook_id)
        if stored is None or not stored.hook.one_time_links:
            return ()
        expires = min(time_of(opened.payload.until), opened.time + self.rules.lifetime)
        links = []
        for action in actions_of(opened.payload):
            claims = LinkClaims(
                tenant=opened.tenant,
                debate_id=opened.debate,
                checkpoint=opened.key,
                sequence=opened.sequence,
                action=action,
                hook_id=hook_id,
                expire_time=timestamp(expires),
            )
            url = f"{self.rules.public_url}/links/{tokens.sign(claims)}"
            links.append(OneTimeLink(action=action, url=url))
        return links
