"""The hooks of a tenant, which its administrators create, list, test and delete by RPC."""

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Final

import grpc
from msgspec import Struct

from parley.orchestrator.delivery.deliveries import DeliveryStore, StoredDelivery
from parley.orchestrator.delivery.hooks import SECRET_OVERLAP, UNREADABLE, HookStore, Secret, StoredHook
from parley.orchestrator.delivery.message import DeliveryError
from parley.orchestrator.delivery.news import write_test
from parley.orchestrator.delivery.sender import Sender
from parley.orchestrator.model.times import time_text, timestamp
from parley.orchestrator.outgoing.signing import create_secret
from parley.runtime.clock import Clock
from parley.runtime.errors import ParleyError, failed_precondition, not_found, resource_exhausted
from parley.runtime.unreadable import UnreadableError
from parley.storage.ports import DuplicateError
from parley.v1.hook_pb2 import CreateHookRequest, Hook

MAX_HOOKS: Final = 50
"""Hooks of one tenant."""


class TenantHooks(Struct, frozen=True):
    """The hooks of each tenant. `notice` is called after one was created, deleted or changed, or a delivery asked for."""

    store: HookStore
    deliveries: DeliveryStore
    sender: Sender
    clock: Clock
    notice: Callable[[], None]

    async def create(self, tenant: str, request: CreateHookRequest, creator: str) -> tuple[Hook, str]:
        """Create a hook. Return it with the secret that signs its deliveries, which cannot be read again; empty if it has none.

        Raise ParleyError if the request id was already used, or the tenant has too many hooks.
        """
        if len(await self.store.list_page(tenant, limit=MAX_HOOKS)) == MAX_HOOKS:
            message = f"tenant {tenant} has {MAX_HOOKS} hooks, which is the limit; delete one first"
            raise resource_exhausted("TOO_MANY_HOOKS", message)
        hook_id = f"hook-{hashlib.sha256(f'{tenant}/{request.request_id}'.encode()).hexdigest()[:12]}"
        now = self.clock.now()
        hook = Hook(
            id=hook_id,
            name=request.name,
            target=request.target,
            events=sorted(set(request.events)),
            named_only=request.named_only,
            one_time_links=request.one_time_links,
            create_time=timestamp(now),
            creator=creator,
        )
        secret = (request.secret or create_secret()) if is_signed(hook) else ""
        kept = (Secret(secret),) if secret else ()
        stored = StoredHook(tenant, hook, f"{time_text(now)}/{hook_id}", kept, request.request_id)
        try:
            await self.store.add(stored)
        except DuplicateError:
            message = (
                f"request id {request.request_id!r} already created the hook {hook_id}, whose secret is sent once;"
                " if it is lost, ask for a new one"
            )
            raise _exists_error("HOOK_EXISTS", message, hook_id) from None
        self.notice()
        return hook, secret

    async def get(self, tenant: str, hook_id: str) -> StoredHook:
        """Return a hook. Raise ParleyError if the tenant has none with this id, or it cannot be read."""
        try:
            stored = await self.store.get(tenant, hook_id)
        except UnreadableError:
            raise ParleyError(grpc.StatusCode.DATA_LOSS, "HOOK_UNREADABLE", UNREADABLE) from None
        if stored is None:
            raise not_found("hook", hook_id)
        return stored

    async def delete(self, tenant: str, hook_id: str) -> None:
        """Delete a hook with its deliveries, also one that cannot be read. Raise ParleyError if the tenant has none with this id."""
        if not await self.store.has(tenant, hook_id):
            raise not_found("hook", hook_id)
        # The hook last: as long as it is there, the caller can ask again.
        await self.deliveries.delete_for_hook(tenant, hook_id)
        await self.store.delete(hook_id)
        self.notice()

    async def rotate_secret(
        self, tenant: str, hook_id: str, request_id: str, secret: str
    ) -> tuple[str, datetime]:
        """Give a webhook a new secret. Return it, and until when the one before signs too.

        Raise ParleyError if it is no webhook, the tenant has none with this id, or this request has made its secret before.
        """
        while True:
            stored = await self.get(tenant, hook_id)
            if not is_signed(stored.hook):
                message = f"hook {hook_id} is no webhook: nothing signs what is sent there"
                raise failed_precondition("HOOK_UNSIGNED", message)
            if stored.request_id == request_id:
                message = f"request id {request_id!r} already made the secret of {hook_id}, which is sent once; use a new one"
                raise _exists_error("SECRET_EXISTS", message, hook_id)
            new, now = secret or create_secret(), self.clock.now()
            if await self.store.replace_secret(stored, stored.replace_secret(new, request_id, now)):
                return new, now + SECRET_OVERLAP

    async def test(self, tenant: str, hook_id: str) -> str:
        """Send a test to a hook. Return why it did not arrive, in one line; empty if it did: then a paused hook goes on."""
        stored, now = await self.get(tenant, hook_id), self.clock.now()
        message = write_test(tenant, hook_id, f"dlv-test-{secrets.token_hex(12)}", now)
        try:
            await self.sender.send(stored.receiver(now), message)
        except DeliveryError as error:
            return str(error)
        if stored.hook.paused:
            await self.store.set_paused(hook_id, "")
        return ""

    async def resend(self, tenant: str, delivery_id: str) -> StoredDelivery:
        """Let a delivery be sent again. Raise ParleyError if the tenant has none with this id."""
        found = await self.deliveries.get(delivery_id)
        if found is not None and found.tenant == tenant:
            await self.deliveries.resend(delivery_id, self.clock.now())
            found = await self.deliveries.get(delivery_id)
        if found is None or found.tenant != tenant:
            raise not_found("delivery", delivery_id)
        self.notice()
        return found


def is_signed(hook: Hook) -> bool:
    """Return whether a secret signs what is sent to a hook."""
    return hook.target.WhichOneof("target") == "webhook"


def _exists_error(reason: str, message: str, hook_id: str) -> ParleyError:
    return ParleyError(grpc.StatusCode.ALREADY_EXISTS, reason, message, resource=("hook", hook_id))
