"""Hooks of a tenant and their deliveries, as the client of the orchestrator has them."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from parley.client.connection import OrchestratorConnection, create_request_id
from parley.v1 import hook_pb2

_PAGE: Final = 200


class HookClient(OrchestratorConnection):
    """Hooks of one tenant at an orchestrator."""

    async def create_hook(
        self,
        name: str,
        target: hook_pb2.HookTarget,
        events: Sequence[hook_pb2.HookEvent.ValueType],
        *,
        named_only: bool = False,
        one_time_links: bool = False,
        secret: str = "",
        request_id: str | None = None,
    ) -> hook_pb2.CreateHookResponse:
        """Create a hook of the tenant: these events of its debates are sent to `target` from now on.

        `named_only`: only those of debates that name the hook. `one_time_links`: whoever reads that a debate waits may answer by a link. Return it with the secret that signs a webhook, which is shown only
        once; `secret` gives one of your own. Another call with the same `request_id` fails with HOOK_EXISTS.
        """
        request = hook_pb2.CreateHookRequest(
            request_id=request_id or create_request_id(),
            name=name,
            target=target,
            events=events,
            named_only=named_only,
            one_time_links=one_time_links,
            secret=secret,
        )
        return await self._call(self._stub.CreateHook, request)

    def list_hooks(self, *, page_size: int = _PAGE) -> AsyncGenerator[hook_pb2.Hook, None]:
        """Yield the hooks of the tenant, oldest first, without secrets."""
        request = hook_pb2.ListHooksRequest(page_size=page_size)
        return self._list(self._stub.ListHooks, request, lambda page: page.hooks)

    async def delete_hook(self, hook_id: str) -> None:
        """Delete a hook of the tenant with all its deliveries."""
        await self._call(self._stub.DeleteHook, hook_pb2.DeleteHookRequest(hook_id=hook_id))

    async def rotate_hook_secret(
        self, hook_id: str, *, secret: str = "", request_id: str | None = None
    ) -> hook_pb2.RotateHookSecretResponse:
        """Give a webhook a new secret, which is shown only once. For a day the old one signs too.

        Another call with the same `request_id` fails with SECRET_EXISTS.
        """
        request = hook_pb2.RotateHookSecretRequest(
            request_id=request_id or create_request_id(), hook_id=hook_id, secret=secret
        )
        return await self._call(self._stub.RotateHookSecret, request)

    async def test_hook(self, hook_id: str) -> str:
        """Send a test to a hook. Return why it did not arrive, in one line; empty if it did."""
        return (await self._call(self._stub.TestHook, hook_pb2.TestHookRequest(hook_id=hook_id))).error

    def list_deliveries(
        self,
        *,
        hook_id: str = "",
        state: hook_pb2.DeliveryState.ValueType = hook_pb2.DELIVERY_STATE_UNSPECIFIED,
        page_size: int = _PAGE,
    ) -> AsyncGenerator[hook_pb2.Delivery, None]:
        """Yield the deliveries of the tenant, newest first: those of one hook, or in one state, or all."""
        request = hook_pb2.ListDeliveriesRequest(page_size=page_size, hook_id=hook_id, state=state)
        return self._list(self._stub.ListDeliveries, request, lambda page: page.deliveries)

    async def resend_delivery(self, delivery_id: str) -> hook_pb2.Delivery:
        """Let a delivery be sent again under its id, such as a dead letter."""
        request = hook_pb2.ResendDeliveryRequest(delivery_id=delivery_id)
        return (await self._call(self._stub.ResendDelivery, request)).delivery
