"""The RPCs about hooks and deliveries: protobuf in and out."""

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Final
from urllib.parse import urlsplit

from parley.orchestrator.api.page_tokens import cut_page, place_form, place_of
from parley.orchestrator.api.requests import check_name, check_request_id
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.delivery.channels.channels import Channels
from parley.orchestrator.delivery.deliveries import DEAD, DELIVERED, PENDING, StoredDelivery
from parley.orchestrator.delivery.tenant_hooks import TenantHooks
from parley.orchestrator.links.tokens import LinkTokens
from parley.orchestrator.model.times import stored_time, timestamp
from parley.orchestrator.outgoing.signing import is_secret
from parley.runtime import audit
from parley.runtime.identity.identity import current_identity, current_tenant
from parley.runtime.validation import Violations
from parley.v1 import hook_pb2, orchestrator_pb2_grpc
from parley.v1.hook_pb2 import (
    DELIVERY_STATE_DEAD,
    DELIVERY_STATE_DELIVERED,
    DELIVERY_STATE_PENDING,
    DELIVERY_STATE_UNSPECIFIED,
    HOOK_EVENT_TEST,
    HOOK_EVENT_UNSPECIFIED,
    HookEvent,
)

HOOK_ID: Final = re.compile(r"hook-[0-9a-f]{12}")
_DELIVERY_ID: Final = re.compile(r"dlv-[0-9a-f]{32}")
_HOOK_PLACE: Final = place_form(HOOK_ID)
_DELIVERY_PLACE: Final = place_form(_DELIVERY_ID)
_MAX_EVENTS: Final = 16
_MAX_NAMED: Final = 8
_STATES: Final = {
    PENDING: DELIVERY_STATE_PENDING,
    DELIVERED: DELIVERY_STATE_DELIVERED,
    DEAD: DELIVERY_STATE_DEAD,
}
_STATE_NAMES: Final = {number: name for name, number in _STATES.items()}
_NOT_HOOK_ID: Final = "must be hook- and 12 hex digits"
_EVENTS: Final = frozenset(HookEvent.values()) - {HOOK_EVENT_UNSPECIFIED, HOOK_EVENT_TEST}


class HookServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for the hooks of the caller's tenant, and their deliveries."""

    __slots__ = ()

    hooks: TenantHooks
    channels: Channels
    links: LinkTokens | None

    async def CreateHook(  # noqa: N802
        self, request: hook_pb2.CreateHookRequest, _context: object
    ) -> hook_pb2.CreateHookResponse:
        """Create a hook."""
        _check_create_request(request, self.channels, allows_links=self.links is not None)
        with map_store_errors():
            hook, secret = await self.hooks.create(current_tenant(), request, current_identity().subject)
        audit.report_act(f"hook {hook.id}")
        return hook_pb2.CreateHookResponse(hook=_without_secrets(hook), secret=secret)

    async def ListHooks(  # noqa: N802
        self, request: hook_pb2.ListHooksRequest, _context: object
    ) -> hook_pb2.ListHooksResponse:
        """Return a page of hooks."""
        violations = Violations()
        size = violations.page_size(request.page_size)
        after = place_of(violations, request.page_token, _HOOK_PLACE)
        violations.refuse()
        with map_store_errors():
            found = await self.hooks.store.list_page(current_tenant(), after, size + 1)
        page, token = cut_page(found, size, attrgetter("created"))
        hooks = [_without_secrets(each.hook) for each in page]
        return hook_pb2.ListHooksResponse(hooks=hooks, next_page_token=token)

    async def DeleteHook(  # noqa: N802
        self, request: hook_pb2.DeleteHookRequest, _context: object
    ) -> hook_pb2.DeleteHookResponse:
        """Delete a hook."""
        _check_hook_id(request.hook_id)
        with map_store_errors():
            await self.hooks.delete(current_tenant(), request.hook_id)
        audit.report_act(f"hook {request.hook_id}")
        return hook_pb2.DeleteHookResponse()

    async def RotateHookSecret(  # noqa: N802
        self, request: hook_pb2.RotateHookSecretRequest, _context: object
    ) -> hook_pb2.RotateHookSecretResponse:
        """Give a webhook a new secret."""
        violations = Violations()
        check_request_id(violations, request.request_id)
        _note_bad_hook_id(violations, request.hook_id)
        _check_secret(violations, request.secret)
        violations.refuse()
        with map_store_errors():
            secret, until = await self.hooks.rotate_secret(
                current_tenant(), request.hook_id, request.request_id, request.secret
            )
        audit.report_act(f"hook {request.hook_id}")
        return hook_pb2.RotateHookSecretResponse(secret=secret, old_until=timestamp(until))

    async def TestHook(  # noqa: N802
        self, request: hook_pb2.TestHookRequest, _context: object
    ) -> hook_pb2.TestHookResponse:
        """Send a test to a hook."""
        _check_hook_id(request.hook_id)
        with map_store_errors():
            error = await self.hooks.test(current_tenant(), request.hook_id)
        return hook_pb2.TestHookResponse(error=error)

    async def ListDeliveries(  # noqa: N802
        self, request: hook_pb2.ListDeliveriesRequest, _context: object
    ) -> hook_pb2.ListDeliveriesResponse:
        """Return a page of deliveries."""
        violations = Violations()
        size = violations.page_size(request.page_size)
        asked = f"{request.hook_id}/{request.state}"
        before = place_of(violations, request.page_token, _DELIVERY_PLACE, asked)
        if request.hook_id:
            _note_bad_hook_id(violations, request.hook_id)
        known = request.state == DELIVERY_STATE_UNSPECIFIED or request.state in _STATE_NAMES
        violations.check(that=known, field="state", otherwise="must be PENDING, DELIVERED or DEAD")
        violations.refuse()
        with map_store_errors():
            found = await self.hooks.deliveries.list_page(
                current_tenant(),
                before,
                size + 1,
                hook=request.hook_id,
                state=_STATE_NAMES.get(request.state, ""),
            )
        page, token = cut_page(found, size, attrgetter("made"), asked)
        return hook_pb2.ListDeliveriesResponse(deliveries=map(_to_proto, page), next_page_token=token)

    async def ResendDelivery(  # noqa: N802
        self, request: hook_pb2.ResendDeliveryRequest, _context: object
    ) -> hook_pb2.ResendDeliveryResponse:
        """Let a delivery be sent again."""
        violations = Violations()
        fine = bool(_DELIVERY_ID.fullmatch(request.delivery_id))
        violations.check(that=fine, field="delivery_id", otherwise="must be dlv- and 32 hex digits")
        violations.refuse()
        with map_store_errors():
            delivery = await self.hooks.resend(current_tenant(), request.delivery_id)
        audit.report_act(f"delivery {delivery.id}")
        return hook_pb2.ResendDeliveryResponse(delivery=_to_proto(delivery))

    async def check_named_hooks(self, hook_ids: Sequence[str]) -> None:
        """Raise ParleyError if a specification names hooks that the caller's tenant does not have."""
        violations = Violations()
        field = "spec.hook_ids"
        violations.check(
            that=len(hook_ids) <= _MAX_NAMED, field=field, otherwise=f"must be at most {_MAX_NAMED}"
        )
        for place, hook_id in enumerate(hook_ids[:_MAX_NAMED]):
            fine = bool(HOOK_ID.fullmatch(hook_id))
            violations.check(that=fine, field=f"{field}[{place}]", otherwise=_NOT_HOOK_ID)
        violations.refuse()
        with map_store_errors():
            for place, hook_id in enumerate(hook_ids):
                known = await self.hooks.store.has(current_tenant(), hook_id)
                violations.check(
                    that=known, field=f"{field}[{place}]", otherwise="names no hook of the tenant"
                )
        violations.refuse()


def _check_create_request(
    request: hook_pb2.CreateHookRequest, channels: Channels, *, allows_links: bool
) -> None:
    violations = Violations()
    check_request_id(violations, request.request_id)
    check_name(violations, request.name)
    kind = request.target.WhichOneof("target")
    if kind is None:
        violations.add("target", "must be a webhook, a chat, a file, stdout or mail")
    else:
        for path, wrong in channels.check_new(request.target):
            violations.add(".".join(filter(None, ("target", path))), wrong)
    violations.check(
        that=1 <= len(request.events) <= _MAX_EVENTS,
        field="events",
        otherwise=f"must be 1 to {_MAX_EVENTS} events",
    )
    for place, event in enumerate(request.events[:_MAX_EVENTS]):
        otherwise = "must be CONCLUDED, FAILED, WAITING, BUDGET_REACHED or DECISION_REVERSED"
        violations.check(that=event in _EVENTS, field=f"events[{place}]", otherwise=otherwise)
    violations.check(
        that=allows_links or not request.one_time_links,
        field="one_time_links",
        otherwise="are not allowed here: the operator has to set PARLEY_LINK_SECRETS",
    )
    _check_secret(violations, request.secret)
    if request.secret and kind != "webhook":
        violations.add("secret", "is for webhooks alone")
    violations.refuse()


def _check_secret(violations: Violations, secret: str) -> None:
    fine = not secret or is_secret(secret)
    violations.check(that=fine, field="secret", otherwise="must be whsec_ and 24 to 64 bytes in base64")


def _check_hook_id(hook_id: str) -> None:
    violations = Violations()
    _note_bad_hook_id(violations, hook_id)
    violations.refuse()


def _note_bad_hook_id(violations: Violations, hook_id: str) -> None:
    fine = bool(HOOK_ID.fullmatch(hook_id))
    violations.check(that=fine, field="hook_id", otherwise=_NOT_HOOK_ID)


def _without_secrets(hook: hook_pb2.Hook) -> hook_pb2.Hook:
    """Return a hook as callers see it: of URLs nothing that may let its reader write there."""
    shown = hook_pb2.Hook()
    shown.CopyFrom(hook)
    kind = shown.target.WhichOneof("target")
    if kind in {"webhook", "chat"}:
        target = getattr(shown.target, kind)
        target.url = _mask_url(target.url)
    return shown


def _mask_url(url: str) -> str:
    """Return scheme and host of a URL. What follows is often the secret by which a receiver knows its senders."""
    parts = urlsplit(url)
    hidden = "…" if parts.path.strip("/") or parts.query or parts.fragment else ""
    return f"{parts.scheme}://{parts.netloc}/{hidden}"


def _to_proto(delivery: StoredDelivery) -> hook_pb2.Delivery:
    return hook_pb2.Delivery(
        id=delivery.id,
        hook_id=delivery.hook,
        debate_id=delivery.debate,
        event=HookEvent.ValueType(delivery.event),
        sequence=delivery.sequence,
        state=_STATES[delivery.state],
        tries=delivery.tries,
        create_time=stored_time(delivery.made.partition("/")[0]),
        next_try_time=stored_time(delivery.due),
        last_error=delivery.error,
        end_time=stored_time(delivery.ended),
    )
