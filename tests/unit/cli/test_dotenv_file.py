"""Keys from `.env`."""

import os
from pathlib import Path

import pytest

from parley.cli.errors import CONFIGURATION, CommandError
from parley.cli.input.config_file import find_config
from parley.cli.working_folder import load_dotenv, trust_files

NAMES = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "PARLEY_MODEL", "MY_TOKEN", "DATABASE_URL")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PARLEY_TRUST_CONFIG", raising=False)
    for name in NAMES:
        monkeypatch.setenv(name, "")  # so that what is set by a test is gone after it
        monkeypatch.delenv(name)
    return tmp_path


def test_keys_are_taken_and_named_and_what_is_set_wins(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "")
    (folder / ".env").write_text(
        "# keys\nexport OPENAI_API_KEY='a $b'\nOPENROUTER_API_KEY=other\nPARLEY_MODEL=m # why\nDATABASE_URL=x\n"
    )
    with trust_files():
        load_dotenv()
    found = {name: os.environ.get(name) for name in NAMES}
    assert found == {
        "OPENAI_API_KEY": "a $b",
        "OPENROUTER_API_KEY": "",
        "PARLEY_MODEL": "m",
        "MY_TOKEN": None,
        "DATABASE_URL": None,
    }
    load_dotenv()
    assert capsys.readouterr().err == "Read from .env: OPENAI_API_KEY, PARLEY_MODEL\n"


def test_keys_that_the_file_names_are_taken_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".env").write_text("MY_TOKEN=t\n")
    (folder / "parley.yaml").write_text(
        "providers:\n- {name: mine, kind: openai-compatible, base_url: http://h/v1, api_key_env: MY_TOKEN}\n"
    )
    with trust_files():
        find_config(Path("parley.yaml"))
    assert os.environ["MY_TOKEN"] == "t"
    assert capsys.readouterr().err == "Read from .env: MY_TOKEN\n"


def test_without_the_file_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    load_dotenv()
    assert capsys.readouterr().err == ""


def test_a_file_that_cannot_be_read_is_an_error(folder: Path) -> None:
    (folder / ".env").write_bytes(b"OPENAI_API_KEY=\xe9\n")
    with pytest.raises(CommandError, match="is not UTF-8 text") as raised:
        load_dotenv()
    assert raised.value.code == CONFIGURATION
