"""Debates written into a file."""

import base64
import json
import zipfile
from pathlib import Path

from google.protobuf.any_pb2 import Any

from parley.client import DebateSpec, Event, ParleyClient, export
from parley.v1.event_pb2 import StepSucceeded
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
    (line,) = [json.loads(each) for each in lines if '"newer"' in each]
    assert line["event"]["step_succeeded"] == {
        "digest": "x",
        "value": {"@type": result.type_url, "value": base64.b64encode(result.value).decode()},
    }
    assert Event.FromString(base64.b64decode(line["stored"])).step_succeeded.value == result
