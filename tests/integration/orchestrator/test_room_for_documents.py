"""Debates whose documents find no room at a replica wait, and hold up no others."""

import asyncio
import uuid
from pathlib import Path

from parley.orchestrator.engine.document_limits import DocumentLimits
from parley.orchestrator.log.debate_record import COMPLETED, PENDING
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.event_pb2 import DebateCreated
from tests.support.debate_logs import check_log
from tests.support.orchestration import Replica, backstage, make_debate, with_fields
from tests.support.scripted_gateway import ScriptedGateway

BYTES = 100_000
LIMITS = DocumentLimits(total=3 * BYTES, per_tenant=2 * BYTES)


def _with_documents(name: str, size: int = BYTES) -> DebateCreated:
    text = f"{name} " * (size // (len(name) + 1))
    return make_debate(context=(ContextDocument(path="a.md", text=text),))


async def _accept(replica: Replica, tenant: str, spec: DebateCreated) -> str:
    request = uuid.uuid4().hex
    debate, _ = await replica.intake.create_debate(tenant, with_fields(spec, request_id=request), request)
    return debate


async def test_debates_beyond_the_room_wait_and_then_run_in_order(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    hold = gateway.hold("requirements")
    async with backstage(tmp_path, gateway) as stage, stage.replica(documents=LIMITS) as replica:
        sizes = (BYTES, BYTES, 2 * BYTES, 2 * BYTES)  # the first two together, the others one after another
        debates = [
            await replica.create(_with_documents(f"document {number}", size))
            for number, size in enumerate(sizes)
        ]
        small = await replica.create(make_debate())
        await gateway.wait_for("requirements", 3)
        asked = {call.debate for call in gateway.calls}
        assert asked == {*debates[:2], small}
        assert [(await stage.record(each)).status for each in debates[2:]] == [PENDING, PENDING]
        hold.release()
        for debate in (*debates, small):
            check_log(await stage.comes_to(debate, COMPLETED))
        begun = list(dict.fromkeys(call.debate for call in gateway.calls if call.debate in debates))
    assert set(begun[:2]) == set(debates[:2])
    assert begun[2:] == debates[2:]


async def test_another_tenant_has_room_next_to_one_that_waits(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    gateway.hold("requirements")
    async with backstage(tmp_path, gateway) as stage, stage.replica(documents=LIMITS) as replica:
        for number in range(4):
            await replica.create(_with_documents(f"document {number}"))
        await gateway.wait_for("requirements", 2)
        other = await _accept(replica, "acme", _with_documents("of another tenant"))
        async with asyncio.timeout(30):
            while other not in {call.debate for call in gateway.calls}:
                await gateway.wait_for("requirements", len(gateway.steps("requirements")) + 1)


async def test_a_debate_that_waits_for_room_can_be_cancelled(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    gateway.hold("requirements")
    async with backstage(tmp_path, gateway) as stage, stage.replica(documents=LIMITS) as replica:
        debates = [await replica.create(_with_documents(f"document {number}")) for number in range(3)]
        await replica.intervene(debates[-1], "cancel")
        await stage.comes_to(debates[-1], "CANCELLED")


async def test_a_debate_larger_than_all_room_runs_alone(tmp_path: Path) -> None:
    limits = DocumentLimits(total=10, per_tenant=10)
    async with backstage(tmp_path) as stage, stage.replica(documents=limits) as replica:
        debates = [await replica.create(_with_documents(f"document {number}")) for number in range(2)]
        for debate in debates:
            check_log(await stage.comes_to(debate, COMPLETED))
