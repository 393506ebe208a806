"""Secrets of hooks: replaced without a gap, and printed nowhere."""

from datetime import timedelta

import pytest

from parley.runtime.errors import ParleyError
from parley.v1.hook_pb2 import HOOK_EVENT_CONCLUDED, CreateHookRequest, HookTarget, WebhookTarget
from tests.integration.orchestrator.delivery.shared import DAY
from tests.support.hook_stage import TENANT, HookStage
from tests.support.manual_clock import ManualClock


async def test_secrets_are_replaced_without_a_gap(stage: HookStage, clock: ManualClock) -> None:
    request = CreateHookRequest(
        request_id="one",
        name="ci",
        target=HookTarget(webhook=WebhookTarget(url="https://example.org/x")),
        events=[HOOK_EVENT_CONCLUDED],
    )
    hooks = stage.replica().hooks
    hook, first = await hooks.create(TENANT, request, "ada")
    second, until_ = await hooks.rotate_secret(TENANT, hook.id, "two", "")
    assert until_ - clock.now() == timedelta(days=1)
    stored = await hooks.get(TENANT, hook.id)
    assert stored.receiver(clock.now()).secrets == (second, first)
    with pytest.raises(ParleyError, match="already made the secret"):
        await hooks.rotate_secret(TENANT, hook.id, "two", "")
    clock.advance(DAY)
    assert stored.receiver(clock.now()).secrets == (second,)


async def test_what_is_printed_of_a_hook_holds_no_secret(stage: HookStage, clock: ManualClock) -> None:
    url = "https://hooks.example.org/T0/very-secret"
    request = CreateHookRequest(
        request_id="one",
        name="ci",
        target=HookTarget(webhook=WebhookTarget(url=url)),
        events=[HOOK_EVENT_CONCLUDED],
    )
    hooks = stage.replica().hooks
    hook, secret = await hooks.create(TENANT, request, "ada")
    stored = await hooks.get(TENANT, hook.id)
    for text in (repr(stored), repr(stored.receiver(clock.now()))):
        assert secret not in text
        assert "very-secret" not in text
