"""The embedded system, killed as an answer arrives: what its log or its gateway holds is not paid for again."""

import asyncio
import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from parley.orchestrator.log.reading import read_events
from parley.storage.opening import open_store
from parley.v1.event_pb2 import StepSucceeded
from tests.bench.environment import use_environment
from tests.bench.system import step_of
from tests.support.model_server import Latency, ModelServer

_ANSWERS: Final = 14


async def _start(debate: str = "") -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "tests.chaos.embedded", *([debate] if debate else [])]
    return await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env=dict(os.environ)
    )


async def _read_outcomes(folder: Path, debate: str) -> set[str]:
    """Return the keys of the steps of agents whose outcomes are in the log."""
    async with open_store(f"sqlite:///{folder}", "orchestrator") as store:
        events = await read_events(store.log, "default", debate)
    return {
        each.key
        for each in events
        if isinstance(each.payload, StepSucceeded) and each.payload.HasField("reply")
    }


def _read_stored(folder: Path) -> set[str]:
    """Return the steps whose answers the gateway has stored."""
    with closing(sqlite3.connect(folder / "parley.db")) as store:
        keys = store.execute(
            "SELECT key FROM gateway_documents_calls WHERE json_extract(body, '$.state') = 'answered'"
        ).fetchall()
    return {json.loads(key)[2] for (key,) in keys}


@pytest.mark.parametrize("answers", [3, *(each for each in range(1, _ANSWERS) if each != 3)])
async def test_a_killed_system_pays_for_no_kept_answer_again_and_its_debate_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: int
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    async with ModelServer(latency=Latency(0.05, sigma=0.5), states_positions=True) as models:
        use_environment(tmp_path, models.base_url)
        killed = await _start()
        assert killed.stdout is not None
        debate = (await killed.stdout.readline()).decode().strip()
        await models.ledger.wait_for(lambda ledger: len(ledger.calls) >= answers, 60)
        killed.kill()
        await killed.wait()
        kept = await _read_outcomes(tmp_path, debate) | _read_stored(tmp_path)
        paid = len(models.ledger.calls)
        later = await _start(debate)
        assert await later.wait() == 0
        again = {step_of(each.prompt) for each in models.ledger.calls[paid:]}
        assert not again & kept
        assert len(await _read_outcomes(tmp_path, debate)) == _ANSWERS
