"""`parley receipt` and `parley verify`: what is printed, and what is said where something is not as it was signed."""

import json
import zipfile
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.receipts.archive import ANSWER, KEYS, RECEIPT, split_log, write_files
from parley.receipts.envelope import sign_envelope
from parley.receipts.keys import write_key_list
from parley.receipts.statement import canonical_json, write_statement
from parley.receipts.verification import verify_receipt
from parley.v1.event_pb2 import Event
from tests.support.hostile_services import HOSTILE
from tests.support.receipts import NEW, OLD, pem_of, ring, sign_debate


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    debate = sign_debate()
    Path("r.json").write_text(debate.receipt)
    Path("debate.log").write_bytes(debate.log_file)
    Path("answer.md").write_text(debate.answer)
    Path("keys.json").write_text(write_key_list(ring(OLD).keys))


OFFLINE = ["verify", "r.json", "--keys", "keys.json"]


def test_a_receipt_is_verified_without_any_parley(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*OFFLINE, "--log", "debate.log", "--answer", "answer.md"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == f"receipt  signed by the key {ring(OLD).keys[0].id}"
    assert "debate deb-" in out
    assert "events that were signed are as they were" in out
    assert "the text is the answer that was signed" in out
    assert err == ""


def test_a_public_key_in_pem_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    Path("key.pem").write_text(pem_of(OLD, private=False))
    assert run(["verify", "r.json", "--keys", "key.pem"]) == 0
    assert "the log was not checked; name it with --log" in capsys.readouterr().err


def swap(path: str) -> None:
    entries = list(sign_debate().entries)
    entries[2], entries[3] = entries[3], entries[2]
    from parley.receipts.log_file import frame

    Path(path).write_bytes(b"".join(map(frame, entries)))


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("r.json", '"sig":"', '"sig":"A', "parley: r.json: it "),
        ("debate.log", "e", "f", "parley: debate.log: "),
        ("answer.md", " ", "\t", "parley: answer.md: it is not the answer that was signed"),
    ],
)
def test_a_changed_file_is_named_and_fails(
    file: str, old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = Path(file).read_bytes()
    assert old.encode() in content
    Path(file).write_bytes(content.replace(old.encode(), new.encode(), 1))
    assert run([*OFFLINE, "--log", "debate.log", "--answer", "answer.md"]) == 1
    assert capsys.readouterr().err.startswith(said)


def write_archive(receipt: str, keys: str = "{}", *, unsigned: str = "") -> None:
    debate = sign_debate()
    _, log = split_log(debate.entries)
    files = {ANSWER: debate.answer.encode(), **log, RECEIPT: receipt.encode(), KEYS: keys.encode()}
    debate_id = Event.FromString(debate.entries[0]).debate_id
    with zipfile.ZipFile("debate.zip", "w") as archive:
        write_files(archive, debate_id, files.items())
        if unsigned:
            write_files(archive, unsigned, [(ANSWER, b"forged")])


def test_an_archive_is_verified_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(sign_debate().receipt)
    assert run(["verify", "debate.zip", "--keys", "keys.json"]) == 0
    said = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert said == ["receipt", "debate", "log", "answer"]
    assert run(["verify", "debate.zip", "--keys", "keys.json", "--log", "debate.log"]) == 2


def test_a_debate_of_an_archive_that_has_no_receipt_is_named_as_not_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_archive(sign_debate().receipt, unsigned="deb-20300101-000000-aaaaaaaa")
    assert run(["verify", "debate.zip", "--keys", "keys.json"]) == 0
    said = capsys.readouterr().err
    assert "deb-20300101-000000-aaaaaaaa has no receipt: nothing of it was checked" in said
    assert "reports and all other files of the archive were not checked" in said


def test_no_key_of_an_archive_takes_the_place_of_those_that_are_trusted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_archive(sign_debate().receipt, Path("keys.json").read_text())
    Path("trusted.json").write_text('{"keys":[]}')
    assert run(["import", "debate.zip", "--keys", "trusted.json"]) == 2
    assert "--keys trusted.json: the list of keys (JWKS) has no Ed25519 key" in capsys.readouterr().err


def test_an_archive_with_the_receipt_of_another_debate_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_archive(sign_debate("panel@1-merge").receipt)
    assert run(["verify", "debate.zip", "--keys", "keys.json"]) == 1
    assert "receipt.json: it is about another debate" in capsys.readouterr().err


def test_swapped_events_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    swap("debate.log")
    assert run([*OFFLINE, "--log", "debate.log"]) == 1
    assert capsys.readouterr().err == "parley: debate.log: event 4 stands where event 3 should be\n"


def test_a_key_that_is_not_trusted_fails(capsys: pytest.CaptureFixture[str]) -> None:
    Path("keys.json").write_text(write_key_list(ring(NEW).keys))
    assert run(OFFLINE) == 1
    said = capsys.readouterr().err
    assert "which is not known" in said
    assert "--server HOST:PORT asks the Parley that signed it" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["verify", "none.json", "--keys", "keys.json"],
            "none.json: cannot be read: No such file or directory",
        ),
        (["verify", "r.json", "--keys", "r.json"], "--keys r.json: there is neither a list of keys (JWKS)"),
        ([*OFFLINE, "--server", "127.0.0.1:1"], "--keys and --server: name one of them"),
    ],
)
def test_a_mistake_of_the_user_is_said_in_a_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert said in capsys.readouterr().err


def sign_anew(**fields: str) -> str:
    """The receipt with these fields of what it says, signed by the same key."""
    statement = verify_receipt(sign_debate().receipt, ring(OLD).keys).statement
    for name, value in fields.items():
        setattr(statement.receipt, name, value)
    return sign_envelope(write_statement(statement), OLD)


def test_a_receipt_of_hostile_texts_verifies_and_none_of_them_reaches_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("r.json").write_text(sign_anew(question=HOSTILE, format=HOSTILE, requested_by=HOSTILE))
    assert run([*OFFLINE, "--log", "debate.log", "--answer", "answer.md"]) == 0
    said = "".join(capsys.readouterr())
    assert "events that were signed are as they were" in said
    assert not set(said.replace("\n", "")) & set(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x202E)))


def test_no_text_of_a_forged_receipt_reaches_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    envelope = json.loads(sign_debate().receipt)
    envelope["signatures"][0]["keyid"] = HOSTILE
    Path("r.json").write_bytes(canonical_json(envelope) + b"\n")
    assert run(OFFLINE) == 1
    assert "which is not known" in (said := capsys.readouterr().err)
    assert "\x1b" not in said
