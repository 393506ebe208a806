"""Hooks: who may have them, what they show, and what whole debates send."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from parley.runtime.server import RunningServer
from parley.v1 import hook_pb2 as pb
from parley.v1.debate_pb2 import Clarifications, Continue
from parley.v1.hook_pb2 import HookTarget
from tests.support.orchestration import Orchestrator, failure_of, orchestrating, until
from tests.support.scripted_answers import judgement
from tests.support.scripted_gateway import ScriptedGateway

WITHIN = 30.0
STDOUT = HookTarget(stdout=pb.StdoutTarget())
OTHER = (("parley-tenant", "other"),)


def request(**fields: Any) -> pb.CreateHookRequest:
    given = {
        "request_id": "one",
        "name": "ci",
        "target": STDOUT,
        "events": [pb.HOOK_EVENT_CONCLUDED],
        **fields,
    }
    return pb.CreateHookRequest(**given)


async def hook(orchestrator: Orchestrator, **fields: Any) -> str:
    """Create a hook and return its id."""
    return (await orchestrator.stub.CreateHook(request(**fields), timeout=WITHIN)).hook.id


async def wait_for_deliveries(
    orchestrator: Orchestrator, count: int, state: int = pb.DELIVERY_STATE_DELIVERED
) -> list[pb.Delivery]:
    """Wait for so many deliveries in a state, and return them, newest first."""

    async def list_deliveries() -> list[pb.Delivery] | None:
        asked = pb.ListDeliveriesRequest(state=pb.DeliveryState.ValueType(state))
        found = (await orchestrator.stub.ListDeliveries(asked, timeout=WITHIN)).deliveries
        return list(found) if len(found) >= count else None

    found: list[pb.Delivery] = await until(list_deliveries, f"{count} deliveries")
    return found


def read_printed(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines() if line.startswith('{"')]


async def test_a_debate_that_ends_is_sent_to_a_hook_and_listed(
    tmp_path: Path, gateway_server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    async with orchestrating(tmp_path, gateway_server, hook_stdout=True) as orchestrator:
        created = await hook(orchestrator)
        debate = await orchestrator.create()
        events = await orchestrator.watch(debate)
        [delivery] = await wait_for_deliveries(orchestrator, 1)
    concluded = next(each.event for each in events if each.event.HasField("concluded"))
    assert (delivery.hook_id, delivery.debate_id, delivery.sequence) == (created, debate, concluded.sequence)
    assert delivery.tries == 1
    assert delivery.HasField("end_time")
    [event] = read_printed(capsys)
    assert event["id"] == delivery.id
    assert event["data"]["answer"]
    assert "link" not in event["data"]


class Curious(ScriptedGateway):
    """An agent that asks once."""

    def __init__(self) -> None:
        super().__init__()
        self.judge = self._structured

    def _structured(self, schema: str) -> str:
        if "questions" not in json.loads(schema)["properties"]:
            return judgement(schema)
        first = self.calls[-1].step == "clarify/1/ada"
        return json.dumps({"questions": ["How many users?"] if first else []})


async def test_a_debate_that_waits_for_a_person_is_sent_before_they_act(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        Curious().served() as server,
        orchestrating(tmp_path, server, hook_stdout=True) as orchestrator,
    ):
        await hook(orchestrator, events=[pb.HOOK_EVENT_WAITING, pb.HOOK_EVENT_CONCLUDED])
        debate = await orchestrator.create(clarifications=Clarifications())
        await wait_for_deliveries(orchestrator, 1)
        [event] = read_printed(capsys)
        assert event["type"] == "parley.debate.waiting"
        assert event["data"]["waitsFor"]["questions"]["questions"][0]["text"] == "How many users?"
        await orchestrator.intervene(debate, continue_debate=Continue())
        await wait_for_deliveries(orchestrator, 2)


async def test_a_debate_names_the_hooks_that_are_told_of_it(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server, hook_stdout=True) as orchestrator:
        named = await hook(orchestrator, named_only=True)
        quiet = await orchestrator.create()
        debate = await orchestrator.create(hook_ids=[named])
        await orchestrator.watch(quiet)
        [delivery] = await wait_for_deliveries(orchestrator, 1)
        assert delivery.debate_id == debate
        refused = await failure_of(orchestrator.create(hook_ids=["hook-0123456789ab", "me"]))
        assert "spec.hook_ids[1]: must be hook- and 12 hex digits" in str(refused)
        refused = await failure_of(orchestrator.create(hook_ids=[named, "hook-0123456789ab"]))
        assert str(refused) == "spec.hook_ids[1]: names no hook of the tenant"


async def test_bad_fields_of_a_hook_are_refused_together(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    asked = request(
        request_id="no id", name=" ", target=None, events=[pb.HOOK_EVENT_TEST], secret="whsec_short"
    )
    async with orchestrating(tmp_path, gateway_server, hook_stdout=True) as orchestrator:
        refused = await failure_of(orchestrator.stub.CreateHook(asked, timeout=WITHIN))
    assert {each.field for each in refused.violations} == {
        "request_id",
        "name",
        "target",
        "events[0]",
        "secret",
    }


async def test_a_hook_is_of_its_tenant_alone(tmp_path: Path, gateway_server: RunningServer) -> None:
    async with orchestrating(tmp_path, gateway_server, hook_stdout=True) as orchestrator:
        created = await hook(orchestrator)
        stub = orchestrator.stub
        theirs: list[Callable[[], Any]] = [
            lambda: stub.DeleteHook(pb.DeleteHookRequest(hook_id=created), metadata=OTHER),
            lambda: stub.TestHook(pb.TestHookRequest(hook_id=created), metadata=OTHER),
            lambda: stub.RotateHookSecret(
                pb.RotateHookSecretRequest(request_id="two", hook_id=created), metadata=OTHER
            ),
        ]
        for call in theirs:
            assert (await failure_of(call())).reason == "HOOK_NOT_FOUND"
        assert not (await stub.ListHooks(pb.ListHooksRequest(), metadata=OTHER)).hooks
        await orchestrator.watch(await orchestrator.create())
        [delivery] = await wait_for_deliveries(orchestrator, 1)
        again = pb.ResendDeliveryRequest(delivery_id=delivery.id)
        assert (await failure_of(stub.ResendDelivery(again, metadata=OTHER))).reason == "DELIVERY_NOT_FOUND"


async def test_a_request_creates_a_hook_once(tmp_path: Path, gateway_server: RunningServer) -> None:
    async with orchestrating(tmp_path, gateway_server, hook_stdout=True) as orchestrator:
        await hook(orchestrator)
        again = await failure_of(orchestrator.stub.CreateHook(request(), timeout=WITHIN))
        assert (again.code, again.reason) == (grpc.StatusCode.ALREADY_EXISTS, "HOOK_EXISTS")
        assert len((await orchestrator.stub.ListHooks(pb.ListHooksRequest(), timeout=WITHIN)).hooks) == 1


async def test_hooks_and_deliveries_are_listed_page_by_page(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    async with orchestrating(tmp_path, gateway_server, hook_stdout=True) as orchestrator:
        ids = [await hook(orchestrator, request_id=f"r{number}") for number in range(3)]
        stub = orchestrator.stub
        first = await stub.ListHooks(pb.ListHooksRequest(page_size=2))
        rest = await stub.ListHooks(pb.ListHooksRequest(page_size=2, page_token=first.next_page_token))
        assert [each.id for each in (*first.hooks, *rest.hooks)] == ids
        await orchestrator.watch(await orchestrator.create())
        found = await wait_for_deliveries(orchestrator, 3)
        page = await stub.ListDeliveries(pb.ListDeliveriesRequest(page_size=2))
        other = pb.ListDeliveriesRequest(page_size=2, page_token=page.next_page_token, hook_id=ids[0])
        assert "page_token" in str(await failure_of(stub.ListDeliveries(other)))
        last = await stub.ListDeliveries(
            pb.ListDeliveriesRequest(page_size=2, page_token=page.next_page_token)
        )
        assert {each.id for each in (*page.deliveries, *last.deliveries)} == {each.id for each in found}
        of_one = await stub.ListDeliveries(pb.ListDeliveriesRequest(hook_id=ids[0]))
        assert [each.hook_id for each in of_one.deliveries] == [ids[0]]


async def test_a_deleted_debate_leaves_no_delivery(tmp_path: Path, gateway_server: RunningServer) -> None:
    from parley.v1 import orchestrator_pb2

    async with orchestrating(tmp_path, gateway_server, hook_stdout=True) as orchestrator:
        await hook(orchestrator)
        debate = await orchestrator.create()
        await orchestrator.watch(debate)
        await wait_for_deliveries(orchestrator, 1)

        async def is_deleted() -> bool:
            try:
                await orchestrator.stub.DeleteDebate(orchestrator_pb2.DeleteDebateRequest(debate_id=debate))
            except grpc.aio.AioRpcError as error:
                return error.code() == grpc.StatusCode.NOT_FOUND
            return True

        await until(is_deleted, "it is deleted")
        assert not (await orchestrator.stub.ListDeliveries(pb.ListDeliveriesRequest())).deliveries
