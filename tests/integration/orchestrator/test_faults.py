"""What cannot be recorded fails its step, and a fault of the orchestrator never keeps a debate for ever."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.log import envelope
from parley.orchestrator.log.debate_filter import DebateFilter
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.storage.ports import Log, Record
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED
from parley.v1.event_pb2 import DebateFailed, StepFailed
from parley.v1.orchestrator_pb2 import ListDebatesRequest
from tests.support.debate_logs import check_log
from tests.support.orchestration import TENANT, Backstage, make_debate, orchestrating
from tests.support.scripted_gateway import ScriptedGateway

SPEC = make_debate(3, 1)


async def test_an_answer_that_cannot_be_recorded_fails_its_step_and_the_debate_goes_on(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(envelope, "_MAX_BYTES", 20_000)
    stage.gateway.text = lambda step, agent: (
        "x" * 30_000 if step == "round/1/propose/ada" else f"{step} {agent}"
    )
    async with stage.replica() as replica:
        debate = await replica.create(SPEC)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    (failed,) = [each for each in events if isinstance(each.payload, StepFailed)]
    assert isinstance(failed.payload, StepFailed)
    assert failed.payload.reason == "UNRECORDABLE"
    assert failed.payload.message.startswith(f"{failed.key} has 30")
    assert failed.payload.usage.output_tokens > 0, "it was paid for"


class RefusingLog:
    """A log whose store takes no record with some bytes in it."""

    def __init__(self, log: Log, refused: bytes) -> None:
        self.inner, self.refused = log, refused

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        if self.refused and any(self.refused in entry for entry in record.entries):
            raise ValueError("no store keeps this")
        await self.inner.append(log, record, **beside)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def test_a_debate_whose_owner_keeps_dying_is_failed_with_the_reason_and_can_be_resumed(
    stage: Backstage,
) -> None:
    log: Any = RefusingLog(stage.store.log, b"synthesis")
    async with stage.replica(log=log, lease_seconds=0.05) as replica:
        debate = await replica.create(SPEC)
        events = await stage.comes_to(debate, "FAILED")
        failed = events[-1].payload
        assert isinstance(failed, DebateFailed)
        assert failed.failure.reason == "NO_PROGRESS"
        assert "ValueError: no store keeps this; resume the debate to try again" in failed.failure.message
        assert 3 <= sum(each.kind == "claimed" for each in events) <= 6
        log.refused = b""
        await replica.intervene(debate, "resume")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert len(stage.gateway.steps("round/1/propose/*")) == 3, "what was recorded is not asked again"


async def test_a_debate_whose_log_is_damaged_is_marked_as_failed_and_the_others_go_on(
    stage: Backstage,
) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one", lease_seconds=0.05) as one:
        damaged = await one.create(SPEC)
        await hold.reached.wait()

    class Damaged(RefusingLog):
        async def read(self, log: str, after: int, limit: int) -> Any:
            records = await self.inner.read(log, after, limit)
            if damaged not in log:
                return records
            return [Record(each.first, each.append_id, tuple(b"?" for _ in each.entries)) for each in records]

    hold.release()
    broken: Any = Damaged(stage.store.log, b"")
    async with stage.replica("two", log=broken, lease_seconds=0.05) as two:
        other = await two.create(SPEC)
        await stage.comes_to(other, "COMPLETED")
        await stage.comes_to(damaged, "FAILED")


async def test_a_record_that_cannot_be_read_is_passed_over_and_told_of(
    stage: Backstage, capsys: pytest.CaptureFixture[str]
) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one") as one:
        debates = [await one.create(SPEC) for _ in range(2)]
        await stage.gateway.wait_for("synthesis", 2)
    hold.release()
    await stage.store.documents.insert(
        DEBATES,
        f"{TENANT}/deb-odd",
        {
            "tenant": TENANT,
            "request_id": "odd",
            "open": True,
            "owner": None,
            "created": "2000",
            "status": "RUNNING",
        },
    )
    async with stage.replica("two"):
        for debate in debates:
            await stage.comes_to(debate, "COMPLETED")
    page = await DebateIndex(stage.store.documents).list_page(TENANT, DebateFilter())
    assert {each.debate for each in page} == set(debates)
    told = capsys.readouterr()
    assert "cannot be read and is skipped" in told.out + told.err
    assert "deb-odd" in told.out + told.err


@pytest.mark.parametrize("name", ["created", "updated"])
async def test_a_record_with_a_time_that_cannot_be_read_is_passed_over_in_a_list(
    stage: Backstage, gateway: ScriptedGateway, tmp_path: Path, name: str
) -> None:
    async with gateway.served() as served, orchestrating(tmp_path / "listed", served) as orchestrator:
        debates = [await orchestrator.create() for _ in range(3)]
        for debate in debates:
            await orchestrator.status(debate, DEBATE_STATUS_COMPLETED)
        with closing(sqlite3.connect(tmp_path / "listed" / "parley.db")) as store, store:
            changed = store.execute(
                f"UPDATE orchestrator_documents_debates SET body = json_set(body, '$.{name}', ?) WHERE key LIKE ?",
                [f"2026-13-45/{debates[1]}", f"%{debates[1]}"],
            )
            assert changed.rowcount == 1
        listed = await orchestrator.stub.ListDebates(ListDebatesRequest())
    assert {each.id for each in listed.debates} == {debates[0], debates[2]}
