"""The command where nobody said who is to answer."""

import json
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.harness import model_server as models
from tests.support.command import Command


def test_a_model_server_on_this_machine_answers_and_is_named_in_a_line(tmp_path: Path) -> None:
    with models() as url:
        port = str(urlsplit(url).port)
        asked = ["debate", "Which?", "--agents", "architect,security", "--rounds", "1", "--output", "x.json"]
        ended = Command(asked, tmp_path, {"PARLEY_LOCAL_SERVERS": port}).end()
    assert ended.code == 0
    (line,) = [line for line in ended.err if "No key" in line]
    assert f"this machine runs a model server (http://127.0.0.1:{port}/v1): port-{port}/" in line
    assert "PARLEY_LOCAL_SERVERS=off leaves it alone." in line
    assert json.loads((tmp_path / "x.json").read_text())["demonstration"] is False


def test_ports_that_are_none_are_refused_by_name(tmp_path: Path) -> None:
    ended = Command(["debate", "Which?"], tmp_path, {"PARLEY_LOCAL_SERVERS": "11434;1234"}).end()
    assert ended.code == 4
    assert "PARLEY_LOCAL_SERVERS" in ended.err[-1]


def test_a_model_that_was_not_fetched_is_missed_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    variables = {"PARLEY_LOCAL_MODEL": "qwen2.5-0.5b", "XDG_CACHE_HOME": str(tmp_path)}
    ended = Command(["debate", "Which?"], tmp_path, variables).end()
    assert ended.code == 4
    assert ended.err[-1].endswith("-m parley.gateway.local_model.fetch qwen2.5-0.5b")
