"""Debates written into a file."""

import base64
import json
import os
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from google.protobuf.any_pb2 import Any

from parley.client import DebateSpec, DebateSummary, Event, ParleyClient, ParleyError, export
from parley.receipts.archive import read_archive
from parley.receipts.verification import verify_log, verify_receipt
from parley.runtime.errors import failed_precondition
from parley.v1.event_pb2 import StepSucceeded
from parley.v1.orchestrator_pb2 import ReadLogResponse
from parley.v1.receipt_pb2 import GetReceiptResponse
from tests.support.receipts import ring, sign_debate
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedOrchestrator, scripted


async def test_the_result_of_a_step_that_only_a_newer_contract_knows_is_written_as_its_bytes(
    tmp_path: Path,
) -> None:
    result = Any(type_url="type.googleapis.com/parley.v9.Newer", value=b"\x08\x01")
    orchestrator = ScriptedOrchestrator(
        script=lambda debate: debate.add(StepSucceeded(digest="x", value=result), key="newer", attempt=1)
    )
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            assert await export(parley, tmp_path / "out.zip", [DEBATE_ID]) == 1
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        lines = archive.read(f"{DEBATE_ID}/events.jsonl").decode().splitlines()
        log = archive.read(f"{DEBATE_ID}/log.pb")
    (line,) = [json.loads(each) for each in lines if '"newer"' in each]
    assert line["step_succeeded"] == {
        "digest": "x",
        "value": {"@type": result.type_url, "value": base64.b64encode(result.value).decode()},
    }
    stored = [Event.FromString(each) for each in ReadLogResponse.FromString(log).events]
    assert [each.step_succeeded.value for each in stored if each.key == "newer"] == [result]


@pytest.mark.parametrize("name", ["../x", "/etc/x", "deb-20260101-000000-aaaaaaaa/..", "C:x", ""])
async def test_what_is_no_id_of_a_debate_names_no_entry_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async def list_debates(_: ParleyClient) -> AsyncGenerator[DebateSummary, None]:
        yield DebateSummary(id=DEBATE_ID)
        yield DebateSummary(id=name)

    monkeypatch.setattr(ParleyClient, "list", list_debates)
    orchestrator = ScriptedOrchestrator()
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address) as parley:
            for named in ((), [DEBATE_ID, name]):
                with pytest.raises(ParleyError, match="is not a debate id"):
                    await export(parley, tmp_path / "out.zip", named)
    assert not (tmp_path / "out.zip").exists()


async def test_a_debate_that_is_named_twice_is_written_once(tmp_path: Path) -> None:
    orchestrator = ScriptedOrchestrator()
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            assert await export(parley, tmp_path / "out.zip", [DEBATE_ID, DEBATE_ID]) == 1
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        files = [
            "README.md",
            "answer.md",
            "log.pb",
            "log-after.pb",
            "report.md",
            "report.html",
            "events.jsonl",
        ]
        assert archive.namelist() == [f"{DEBATE_ID}/{each}" for each in files]
        assert "There is no receipt" in archive.read(f"{DEBATE_ID}/README.md").decode()


async def test_no_receipt_stands_beside_the_log_of_a_debate_that_concludes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debate, (key,) = sign_debate(), ring().keys
    asked: list[str] = []  # by the second question the debate is over

    async def get_receipt(_: ParleyClient, debate_id: str) -> GetReceiptResponse:
        asked.append(debate_id)
        if len(asked) == 1:
            raise failed_precondition("DEBATE_NOT_COMPLETED", "it runs")
        return GetReceiptResponse(receipt=debate.receipt, key=key)

    async def read_log(_: ParleyClient, debate_id: str) -> AsyncGenerator[bytes, None]:
        asked.append(debate_id)
        for each in debate.entries if len(asked) > 1 else debate.entries[:5]:
            yield each

    monkeypatch.setattr(ParleyClient, "get_receipt", get_receipt)
    monkeypatch.setattr(ParleyClient, "read_log", read_log)
    orchestrator = ScriptedOrchestrator()
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            await export(parley, tmp_path / "out.zip", [DEBATE_ID])
    for each in read_archive(tmp_path / "out.zip").debates:
        verify_log(verify_receipt(each.receipt.decode(), [key]).statement, each.entries)


async def test_a_debate_that_was_deleted_since_it_was_listed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = "deb-20260101-000000-aaaaaaaa"

    async def list_debates(_: ParleyClient) -> AsyncGenerator[DebateSummary, None]:
        yield DebateSummary(id=gone)
        yield DebateSummary(id=DEBATE_ID)

    monkeypatch.setattr(ParleyClient, "list", list_debates)
    orchestrator = ScriptedOrchestrator()
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            assert await export(parley, tmp_path / "all.zip") == 1
            with pytest.raises(ParleyError, match=gone):
                await export(parley, tmp_path / "named.zip", [gone])
    assert os.listdir(tmp_path) == ["all.zip"]  # noqa: PTH208


async def test_what_lies_there_already_is_neither_followed_nor_written_to(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "out.zip.partial").symlink_to(victim)
    (tmp_path / "out.zip").symlink_to(victim)
    orchestrator = ScriptedOrchestrator()
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            await export(parley, tmp_path / "out.zip", [DEBATE_ID])
    assert victim.read_text() == "mine"
    assert not (tmp_path / "out.zip").is_symlink()
    assert (tmp_path / "out.zip").stat().st_mode & 0o777 == 0o600
