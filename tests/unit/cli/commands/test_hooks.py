"""`parley hooks`: what a person makes, sees and sends again, in the store of this machine."""

import json

import pytest

from parley.cli.__main__ import run


def test_a_hook_is_made_listed_tested_and_deleted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_HOOK_STDOUT", "true")
    assert run(["hooks", "add", "ci", "--stdout", "--event", "failed", "--event", "budget-reached"]) == 0
    said = capsys.readouterr()
    hook = said.out.strip()
    assert hook.startswith("hook-")
    assert said.err == f"Whether it works: parley hooks test {hook}\n"
    assert run(["hooks", "list"]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split()[:2] == [hook, "ci"]
    assert "failed,budget-reached" in line
    assert line.split()[-2:] == ["-", "stdout"]
    assert run(["hooks", "test", hook]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["type"] == "parley.debate.test"
    assert said.err == "The test arrived.\n"
    assert run(["hooks", "rotate", hook]) == 1
    assert "is no webhook" in capsys.readouterr().err
    assert run(["hooks", "deliveries", "--state", "dead"]) == 0
    assert capsys.readouterr().err == "There is no such delivery.\n"
    assert run(["hooks", "remove", hook]) == 0
    assert run(["hooks", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("places", [[], ["--stdout", "--file", "a.jsonl"]])
def test_a_hook_has_one_place(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hooks", "add", "ci", *places]) == 2
    assert "give one of --webhook" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mail", "team@acme.example"], ["--mail: ", "PARLEY_MAIL_SERVER is not set"]),
        (["--webhook", "ftp://acme.example"], ["--webhook: ", "only http:// and https://"]),
        (["--stdout", "--links"], ["--links: ", "PARLEY_LINK_SECRETS"]),
        (["--slack", "ftp://acme.example"], ["--slack: ", "only http:// and https://"]),
    ],
)
def test_a_place_that_is_refused_is_named_by_its_option(
    options: list[str], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["hooks", "add", "ci", *options]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"parley: {said[0]}")
    assert said[1] in line


def test_a_name_that_is_refused_is_named_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hooks", "add", "", "--webhook", "https://acme.example"]) == 2
    assert capsys.readouterr().err.startswith("parley: name: ")
