"""A debate as files of an archive: with common tools alone it is verified, and an archive that was tampered with is refused."""

import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from parley.receipts import archive
from parley.receipts.archive import VERIFY_SCRIPT, document_name, read_archive, split_log, write_files
from parley.receipts.errors import VerificationError
from parley.receipts.keys import write_key_list
from parley.v1.event_pb2 import Event
from tests.support.openssl import needs_openssl
from tests.support.receipts import OLD, pem_of, ring, sign_debate

DEBATE = Event.FromString(sign_debate().entries[0]).debate_id


def files_of(name: str = "panel@1-voting") -> dict[str, bytes]:
    debate = sign_debate(name)
    answer, log = split_log(debate.entries)
    assert answer == debate.answer
    return {
        archive.ANSWER: answer.encode(),
        **log,
        archive.RECEIPT: debate.receipt.encode(),
        archive.KEY: pem_of(OLD, private=False).encode(),
        archive.KEYS: write_key_list(ring(OLD).keys).encode(),
    }


def write(path: Path, files: Mapping[str, bytes], folder: str = DEBATE) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        write_files(made, folder, files.items())
    return path


def run_script(folder: Path) -> tuple[int, str]:
    """What an auditor sees who types what the README says."""
    done = subprocess.run(
        ["sh", "-euc", VERIFY_SCRIPT], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


@needs_openssl
@pytest.mark.parametrize("name", ["panel@1-voting", "arena@1-adversarial", "moderated@1-steered"])
def test_openssl_and_sha256sum_verify_an_archive_as_its_readme_says(name: str, tmp_path: Path) -> None:
    for file, content in files_of(name).items():
        (tmp_path / file).write_bytes(content)
    code, said = run_script(tmp_path)
    assert code == 0, said
    assert "Signature Verified Successfully" in said
    assert "log.pb: OK" in said
    assert "answer.md: OK" in said
    assert VERIFY_SCRIPT in archive.describe_archive(DEBATE, is_signed=True)


@needs_openssl
@pytest.mark.parametrize("file", ["answer.md", "log.pb", "receipt.json"])
def test_openssl_and_sha256sum_notice_a_changed_file(file: str, tmp_path: Path) -> None:
    for name, content in files_of().items():
        (tmp_path / name).write_bytes(content)
    changed = bytearray((tmp_path / file).read_bytes())
    changed[len(changed) // 2] ^= 1
    (tmp_path / file).write_bytes(changed)
    code, said = run_script(tmp_path)
    assert code != 0, said


def test_an_archive_is_the_same_whenever_it_is_written(tmp_path: Path) -> None:
    first, second = (write(tmp_path / name, files_of()) for name in ("a.zip", "b.zip"))
    assert first.read_bytes() == second.read_bytes()


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    (found,) = read_archive(write(tmp_path / "a.zip", files_of())).debates
    debate = sign_debate()
    assert found.debate_id == DEBATE
    assert list(found.entries) == list(debate.entries)
    assert found.answer.decode() == debate.answer
    assert found.receipt.decode() == debate.receipt


def test_a_debate_without_a_receipt_is_no_proof(tmp_path: Path) -> None:
    found = read_archive(write(tmp_path / "a.zip", {archive.LOG: b""}))
    assert (found.debates, found.unsigned) == ([], [DEBATE])


def test_a_log_without_an_answer_is_one_file() -> None:
    entries = sign_debate().entries[:5]
    answer, files = split_log(entries)
    assert (answer, list(files)) == (None, [archive.LOG])


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("..", "receipt.json"),
        ("/etc", "passwd"),
        ("", "etc/passwd"),
        (DEBATE, "../../x"),
        (DEBATE, "documents/../../../x"),
        ("C:", "x"),
    ],
)
def test_a_file_that_leads_out_of_its_folder_is_refused(folder: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="is in no folder of a debate"):
        read_archive(write(tmp_path / "a.zip", {name: b"x"}, folder))


def test_a_compressed_file_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(f"{DEBATE}/log.pb", bytes(2_000_000))
    assert (tmp_path / "a.zip").stat().st_size < 10_000
    with pytest.raises(VerificationError, match="is compressed, and nothing in an archive of Parley is"):
        read_archive(tmp_path / "a.zip")


def test_files_that_claim_more_than_an_archive_may_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.zip", files_of())
    monkeypatch.setattr(archive, "MAX_BYTES", path.stat().st_size - 1)
    with pytest.raises(VerificationError, match="it has more than"):
        read_archive(path)


def test_files_that_stand_for_the_same_bytes_count_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.zip", files_of())
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as one:
        start, count = one.start_dir, len(one.infolist()) * 3
    central, end = whole[start:-22] * 3, bytearray(whole[-22:])
    end[8:10] = end[10:12] = count.to_bytes(2, "little")
    end[12:16] = len(central).to_bytes(4, "little")
    path.write_bytes(whole[:start] + central + bytes(end))
    monkeypatch.setattr(archive, "MAX_BYTES", path.stat().st_size)
    with pytest.raises(VerificationError, match="its files have more than"):
        read_archive(path)


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MAX_FILES", 4)
    with pytest.raises(VerificationError, match="it has more than 4 files"):
        read_archive(write(tmp_path / "a.zip", files_of()))


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", files_of())
    with zipfile.ZipFile(path, "a") as made, pytest.warns(UserWarning, match="Duplicate name"):
        write_files(made, DEBATE, [(archive.ANSWER, b"another")])
    with pytest.raises(VerificationError, match="is in it twice"):
        read_archive(path)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04" + bytes(100)])
def test_a_file_that_is_no_archive_is_refused_in_words(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(VerificationError, match="it is no archive that can be read"):
        read_archive(tmp_path / "a.zip")


def test_whatever_byte_of_an_archive_was_changed_what_is_proved_by_it_is_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", files_of())
    proof, content, refused = read_archive(path).debates, path.read_bytes(), 0
    list_of_files = content.index(b"PK\x01\x02")
    places = [*range(0, list_of_files, list_of_files // 60), *range(list_of_files, len(content))]
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            assert read_archive(path).debates == proof, "a field of the ZIP file that means nothing"
        except VerificationError:
            refused += 1
    assert refused > len(places) / 2


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("notes/a b.md", "documents/notes/a b.md"),
        ("../x", "documents/document-1.txt"),
        ("/etc/passwd", "documents/document-1.txt"),
        ("a\\..\\b", "documents/document-1.txt"),
        ("C:x", "documents/document-1.txt"),
        ("a\x1bb", "documents/document-1.txt"),
        ("", "documents/document-1.txt"),
    ],
)
def test_a_document_stays_in_the_folder_of_documents(path: str, name: str) -> None:
    assert document_name(1, path) == name
