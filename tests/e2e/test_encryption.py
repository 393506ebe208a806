"""A system on one machine with PARLEY_ENCRYPTION_KEYS: no word of a debate is in its files, and all commands work as without."""

import json
from pathlib import Path

from tests.support.command import Command, Ended
from tests.support.encryption import write_key

WORD = "heptadecagon"


def run(folder: Path, url: str, keys: str, *arguments: str) -> Ended:
    variables = {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test", "PARLEY_ENCRYPTION_KEYS": keys}
    return Command(arguments, folder, variables).end()


def debate(folder: Path, url: str, keys: str) -> tuple[str, str]:
    """Have a debate whose question has the word; return its id, and the first words of its answer."""
    folder.mkdir()
    question = f"A {WORD} or a circle?"
    ended = run(folder, url, keys, "debate", question, "--agents", "architect,security", "--rounds", "1")
    assert ended.code == 0, ended.err
    (listed,) = json.loads(run(folder, url, keys, "list", "--json").out)
    return str(listed["id"]), ended.out.partition("## Answer\n\n")[2].splitlines()[0]


def list_files(folder: Path, *texts: str) -> set[str]:
    """Return the files of the data folder that hold a text."""
    files = [each for each in (folder / "data").rglob("*") if each.is_file()]
    return {each.name for each in files if any(text.encode() in each.read_bytes() for text in texts)}


def test_no_word_of_a_debate_is_on_the_disk_and_its_commands_work(tmp_path: Path, models: str) -> None:
    plain, folder = tmp_path / "plain", tmp_path / "encrypted"
    _, answer = debate(plain, models, "")
    assert list_files(plain, WORD) >= {"parley.db"}
    assert list_files(plain, answer) >= {"parley.db"}

    old, new = str(write_key(tmp_path / "old.key")), str(write_key(tmp_path / "new.key"))
    found, answer = debate(folder, models, old)
    assert list_files(folder, WORD, answer) == set()

    check_reading(folder, models, old, found)
    for keys in ("", new):
        refused = run(folder, models, keys, "show", found)
        assert refused.code != 0
        assert "PARLEY_ENCRYPTION_KEYS: stored data is encrypted by the key " in refused.err[-1], refused.err
        assert WORD not in refused.out

    ended = run(folder, models, f"{new},{old}", "rewrap")
    assert (ended.code, "orchestrator: " in ended.out) == (0, True), ended.err
    check_reading(folder, models, new, found)


def check_reading(folder: Path, url: str, keys: str, found: str) -> None:
    """Receipt, export and verification are as of any debate, and show the word."""
    assert WORD in run(folder, url, keys, "show", found).out
    exported = run(folder, url, keys, "export", found, "-o", f"{Path(keys).stem}.zip")
    assert exported.code == 0, exported.err
    verified = run(folder, url, keys, "verify", f"{Path(keys).stem}.zip")
    assert verified.code == 0, verified.err
