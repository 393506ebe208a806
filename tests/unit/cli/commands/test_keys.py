"""API keys on the command line: made, listed and revoked in the store that PARLEY_STORE names."""

import json
from pathlib import Path

import pytest

from parley.cli.__main__ import run


@pytest.fixture(autouse=True)
def store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{folder / 'data'}")


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    capsys.readouterr()
    assert run(["keys", "list", "--json", *arguments]) == 0
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return found


def test_a_key_is_shown_once_and_listed_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "add", "ci", "--tenant", "acme", "--role", "read"]) == 0
    key = capsys.readouterr().out.strip()
    assert key.startswith("parley_")
    (shown,) = listed(capsys)
    assert {shown[name] for name in ("tenant", "name", "roles", "revoked")} == {"acme", "ci", "read", "-"}
    assert key.split("_", 2)[2] not in str(shown)
    assert listed(capsys, "--tenant", "other") == []


def test_a_key_is_revoked_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "add", "ci"]) == 0
    (shown,) = listed(capsys)
    assert run(["keys", "revoke", shown["id"]]) == 0
    assert listed(capsys)[0]["revoked"] != "-"
    assert run(["keys", "revoke", "nobody"]) == 1
    assert "no key 'nobody'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["a\nb"], [" "], ["ci", "--tenant", "a/b"], ["ci", "--role", "service"], ["ci", "--role", "root"]],
)
def test_what_no_key_can_be_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "add", *arguments]) == 2
    assert listed(capsys) == []
