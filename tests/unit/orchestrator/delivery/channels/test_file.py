"""Files: a line for each delivery, whole or not at all, below the folder that is allowed and nowhere else."""

import asyncio
import errno
import json
import os
import threading
from pathlib import Path

import pytest

from parley.orchestrator.delivery.channels import file as file_channel
from parley.orchestrator.delivery.channels.file import FileChannel, is_path
from parley.orchestrator.delivery.message import DeliveryError
from tests.support.made_messages import make_message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    return allowed


def channel(folder: Path, path: str = "debates/results.jsonl", tenant: str = "acme") -> FileChannel:
    return FileChannel(folder, tenant, path)


async def refusal(sent: FileChannel) -> str:
    with pytest.raises(DeliveryError) as refused:
        await sent.send(make_message())
    assert not refused.value.permanent
    return str(refused.value)


async def test_each_delivery_is_a_line_that_this_user_alone_reads(folder: Path) -> None:
    for number in range(3):
        await channel(folder).send(make_message(body=f'{{"id":\n {number}}}'.encode()))
    file = folder / "acme" / "debates" / "results.jsonl"
    assert [json.loads(each)["id"] for each in file.read_text().splitlines()] == [0, 1, 2]
    assert file.stat().st_mode & 0o077 == 0


async def test_lines_that_are_written_at_the_same_time_stay_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:1_000]))
    bodies = [json.dumps({"id": number, "text": "x" * 20_000}).encode() for number in range(20)]
    await asyncio.gather(*(channel(folder).send(make_message(body=each)) for each in bodies))
    lines = (folder / "acme/debates/results.jsonl").read_text().splitlines()
    assert sorted(json.loads(each)["id"] for each in lines) == list(range(20))


async def test_the_same_path_of_another_tenant_is_another_file(folder: Path) -> None:
    await channel(folder, "a.jsonl").send(make_message())
    await channel(folder, "a.jsonl", "other").send(make_message())
    for tenant in ("acme", "other"):
        assert (folder / tenant / "a.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../a.jsonl",
        "a/../../b.jsonl",
        "a/..",
        "./a.jsonl",
        "a//b.jsonl",
        "a/",
        "a\\..\\b",
        "a\x00b",
        "a\nb",
        "a\u202eb",
        "x" * 201,
        "\u6f22" * 67,
        "a/" * 10 + "b",
    ],
)
def test_a_path_that_may_lead_elsewhere_is_refused(path: str) -> None:
    assert not is_path(path)


@pytest.mark.parametrize("path", ["a", "a.jsonl", "debates/2027/results.jsonl", "..a", "a b", "\u6f22.jsonl"])
def test_a_path_below_the_folder_is_taken(path: str) -> None:
    assert is_path(path)


@pytest.mark.parametrize("link", ["acme", "acme/debates", "acme/debates/results.jsonl"])
@pytest.mark.parametrize("target_is_there", [True, False])
async def test_no_link_is_followed(folder: Path, tmp_path: Path, link: str, target_is_there: bool) -> None:
    outside, is_file = tmp_path / "outside", link.endswith(".jsonl")
    if target_is_there:
        outside.write_text("mine\n") if is_file else outside.mkdir()
    (folder / link).parent.mkdir(parents=True, exist_ok=True)
    (folder / link).symlink_to(outside)
    assert (await refusal(channel(folder))).startswith("the file could not be written: ")
    assert outside.exists() == target_is_there
    if target_is_there:
        assert outside.read_text() == "mine\n" if is_file else not any(outside.iterdir())


async def test_what_is_no_file_is_not_written(folder: Path) -> None:
    (folder / "acme").mkdir()
    os.mkfifo(folder / "acme" / "pipe")
    (folder / "acme" / "folder").mkdir()
    assert "it is no file" in await refusal(channel(folder, "pipe"))
    assert "could not be written" in await refusal(channel(folder, "folder"))


async def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert "No such file" in await refusal(channel(tmp_path / "unmounted"))
    assert not (tmp_path / "unmounted").exists()


async def test_a_full_disk_leaves_no_half_of_a_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await channel(folder).send(make_message())
    file = folder / "acme/debates/results.jsonl"
    before, write = file.read_bytes(), os.write

    def fill(descriptor: int, data: bytes) -> int:
        if file.stat().st_size > len(before):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:5])

    with monkeypatch.context() as full:
        full.setattr(os, "write", fill)
        assert await refusal(channel(folder)) == "the file could not be written: No space left on device"
    assert file.read_bytes() == before
    await channel(folder).send(make_message())
    assert file.read_bytes() == before * 2


async def test_after_a_line_that_a_dead_process_left_unfinished_a_new_one_begins(folder: Path) -> None:
    (folder / "acme").mkdir()
    file = folder / "acme" / "a.jsonl"
    file.write_bytes(b'{"id": 1}\n{"id":')
    await channel(folder, "a.jsonl").send(make_message(body=b'{"id": 2}'))
    assert file.read_bytes() == b'{"id": 1}\n{"id":\n{"id": 2}\n'


async def test_a_line_is_on_disk_before_it_is_said_to_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append(path.read_bytes() if path.is_file() else path.name.encode())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    await channel(folder).send(make_message(body=b"{}"))
    assert b"{}\n" in synced
    assert synced[-1] == b"debates", "the folder too, since the file is new"


async def test_a_disk_that_does_not_answer_holds_up_no_other_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(file_channel, "_append_line", lambda *_: answers.wait())
    sending = [asyncio.create_task(channel(folder).send(make_message())) for _ in range(64)]
    await asyncio.sleep(0)  # they begin
    try:
        async with asyncio.timeout(10):
            assert await asyncio.to_thread(lambda: "done") == "done"
    finally:
        answers.set()
        await asyncio.gather(*sending)
