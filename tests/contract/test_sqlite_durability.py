import subprocess
import sys
from pathlib import Path

import pytest

from parley.storage.opening import open_store
from tests.contract.sqlite_writer import EARLIER

LOGS = 8


def write_until_killed(url: str, lines: int) -> dict[str, int]:
    """Run a writer, kill it once it has said `lines` lines, and return the last sequence it was told of, by log."""
    command = [sys.executable, "-m", "tests.contract.sqlite_writer", url, str(LOGS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        heard = [writer.stdout.readline() for _ in range(lines)]
        writer.kill()
        heard += writer.stdout.readlines()
    whole = [line.split() for line in heard if line.endswith("\n")]
    return {log: int(last) for log, last in whole}


@pytest.mark.parametrize("lines", [LOGS, 100, 500])
async def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path, lines: int) -> None:
    url = f"sqlite:///{tmp_path}"
    acknowledged = write_until_killed(url, lines)
    assert acknowledged
    async with open_store(url, "durability") as store:
        for log, last in acknowledged.items():
            records = await store.log.read(log, limit=100_000)
            entries = [entry for record in records for entry in record.entries]
            assert entries == [f"{log} {sequence}".encode() for sequence in range(1, len(entries) + 1)]
            assert len(entries) >= last
            assert len(records) <= len(entries)
            for record in records:
                assert await store.documents.get(EARLIER, f"{log} {record.first}"), "it was asked for before"
            follow_up = records[-1].last + 1
            assert follow_up == len(entries) + 1
