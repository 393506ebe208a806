"""Deleting, exporting, backing up and restoring by the command, on this machine."""

import json
import sqlite3
import zipfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from parley.v1.orchestrator_pb2 import ReadLogResponse
from tests.support.command import Command, Ended


def run(folder: Path, url: str, *arguments: str) -> Ended:
    return Command(arguments, folder, {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"}).end()


def list_debates(folder: Path, url: str) -> list[str]:
    return [each["id"] for each in json.loads(run(folder, url, "list", "--json").out)]


@pytest.mark.long
def test_debates_are_backed_up_exported_deleted_and_restored(tmp_path: Path, models: str) -> None:
    for question in ("Tabs or spaces?", "One process or several?"):
        ended = run(tmp_path, models, "debate", question, "--agents", "architect,security", "--rounds", "1")
        assert ended.code == 0, ended.err
    first, second = list_debates(tmp_path, models)
    (database,) = tmp_path.rglob("parley.db")
    assert has_compressed_records(database)

    ended = run(tmp_path, models, "backup", "kept")
    assert (ended.code, "parley.db" in ended.out) == (0, True)
    ended = run(tmp_path, models, "export", "-o", "all.zip")
    assert (ended.code, ended.out) == (0, "Wrote 2 debates to all.zip.\n")
    check_export(tmp_path / "all.zip", {first: "One process or several?", second: "Tabs or spaces?"})

    refused = run(tmp_path, models, "delete", first)
    assert (refused.code, refused.err[-1]) == (
        2,
        "parley: there is no terminal to confirm on; use --yes",
    )
    deleted = run(tmp_path, models, "delete", first, "--yes")
    assert (deleted.code, deleted.out) == (0, f"Deleted {first}.\n")
    gone = run(tmp_path, models, "export", first, "-o", "gone.zip")
    assert (gone.code, gone.err[-1]) == (1, f"parley: debate '{first}' not found")
    assert not list(tmp_path.glob("gone.zip*")), "nothing half written is left"
    databases = [each for each in tmp_path.rglob("*.db*") if "kept" not in each.parts]
    left = b"".join(each.read_bytes() for each in databases)
    assert (b"One process or several?" in left, b"Tabs or spaces?" in left) == (False, True)

    refused = run(tmp_path, models, "restore", "kept")
    assert (refused.code, "restore into an empty folder" in refused.err[-1]) == (4, True)
    other = tmp_path / "other"
    other.mkdir()
    restored = run(other, models, "restore", str(tmp_path / "kept"))
    assert restored.code == 0, restored.err
    assert list_debates(other, models) == [first, second]
    ended = run(other, models, "export", first, "-o", "again.zip")
    assert ended.code == 0, ended.err
    check_export(other / "again.zip", {first: "One process or several?"})


def has_compressed_records(database: Path) -> bool:
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute("SELECT entries FROM orchestrator_log").fetchall()
    return any(entries.startswith(b"\x28\xb5\x2f\xfd") for (entries,) in found)


def check_export(file: Path, questions: dict[str, str]) -> None:
    """Each debate's report is there, and its log can be checked by its hashes."""
    assert file.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(file) as archive:
        for debate, question in questions.items():
            assert question in archive.read(f"{debate}/report.md").decode()
            before = bytes(32)
            log = archive.read(f"{debate}/log.pb") + archive.read(f"{debate}/log-after.pb")
            for stored in ReadLogResponse.FromString(log).events:
                assert sha256(before + stored[:-34]).digest() == stored[-32:]
                before = stored[-32:]
            lines = [json.loads(line) for line in archive.read(f"{debate}/events.jsonl").splitlines()]
            assert "closed" in lines[-1]
