"""Panel configurations as people have them, each run unmodified to an answer: one system, many files."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
import yaml

from parley.cli.__main__ import run
from parley.config.schema import schema
from parley.local import LocalOptions, local_system
from tests.support.model_server import ModelServer
from tests.support.terminal import CTRL_D, Terminal

FOLDER = Path(__file__).parents[1] / "data" / "configs" / "runs"
QUESTION = "One process or several?"
ASKS = "clarifications.json"
"""Its agents ask the person before they begin."""
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """What a file comes to.

    Attributes:
        agents: Ids of those who debate, in order.
        rounds: Rounds that are held; None where agreement or quality may end them earlier.
        told: What stderr says of the file.
        options: Of the command.
    """

    agents: tuple[str, ...]
    rounds: int | None = 1
    told: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


RUNS: Final = {
    "two-agents.json": Run(
        ("agent-architect", "agent-performance"),
        3,
        (
            "no judge section: a generalist judges",
            "no debate section: rounds as long as something is disputed, 3 at most",
        ),
    ),
    "every-key.json": Run(
        ("agent-architect", "agent-security"),
        2,
        ("debate.orchestratorType: has no effect here", "trace: has no effect here"),
        ("--context", str(FOLDER / "prompts")),
    ),
    "seven-roles.json": Run(("a1", "a2", "a3", "a4", "a5", "a6", "a7")),
    "some-disabled.json": Run(("on-1", "on-2")),
    "prompt-files.json": Run(
        ("found", "missing", "blank"),
        1,
        (
            "agents[1].systemPromptPath: prompts/nowhere.md cannot be read",
            "agents[2].systemPromptPath: prompts/blank.md is blank",
        ),
    ),
    "summaries.json": Run(("long", "never"), 2),
    "tools-by-name.json": Run(("reader", "other"), 1, (), ("--context", str(FOLDER / "prompts"))),
    "openrouter.json": Run(("agent-architect", "agent-kiss")),
    "two-providers.json": Run(("agent-architect", "agent-testing")),
    "convergence.json": Run(("agent-architect", "agent-performance"), None),
    "quality.json": Run(("agent-architect", "agent-simple"), None),
    "voting.json": Run(("agent-architect", "agent-performance", "agent-security")),
    "merge.json": Run(("agent-architect", "agent-data")),
    "own-line-of-work.json": Run(("agent-architect", "agent-security"), 2),
    "passed-over.json": Run(
        ("solo",), 1, ("trace: has no effect here", "orchestratorType: has no effect here")
    ),
    "snake-case.yaml": Run(("ada", "bo"), None),
    "clarifications.json": Run(("agent-architect", "agent-security")),
    "moderated.yaml": Run(("one", "two"), None, ("the debate runs without checkpoints",)),
    "anchors.yaml": Run(("first", "second", "third"), 1, (), ("--context", str(FOLDER / "prompts"))),
}


@contextmanager
def _system(folder: Path) -> Iterator[str]:
    """Run a system with two providers, both at a model server; give the orchestrator's address."""
    answering: list[str] = []
    ready = threading.Event()
    ended: list[asyncio.Event] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        end = asyncio.Event()
        ended.append(end)
        async with ModelServer() as models:
            providers = [
                {"name": name, "kind": name, "base_url": models.base_url, "api_key_env": "A_KEY"}
                for name in ("openai", "openrouter")
            ]
            (folder / "parley.yaml").write_text(yaml.safe_dump({"providers": providers}))
            async with local_system(LocalOptions(config_path=folder / "parley.yaml")) as system:
                answering.append(system.orchestrator_address)
                ready.set()
                await end.wait()

    def serve_in_thread() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            ready.set()

    thread = threading.Thread(target=serve_in_thread)
    thread.start()
    try:
        assert ready.wait(_SECONDS)
        assert answering, "the system did not start"
        yield answering[0]
    finally:
        if ended:
            loop.call_soon_threadsafe(ended[0].set)
        thread.join(_SECONDS)
        loop.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("system")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY"):
            patch.delenv(name, raising=False)
        patch.setenv("PARLEY_STORE", f"sqlite:///{folder / 'data'}")
        patch.setenv("A_KEY", "a-key")
        with _system(folder) as answering:
            yield answering


def hold_debate(arguments: list[str], folder: Path) -> dict[str, Any]:
    """Run the command in a folder and return the debate's state."""
    state = folder / "state.json"
    assert run(["debate", QUESTION, *arguments, "--output", str(state)]) == 0
    found: dict[str, Any] = json.loads(state.read_text())
    return found


@pytest.mark.parametrize("name", sorted(RUNS.keys() - {ASKS}))
def test_a_file_runs_unmodified_to_an_answer(
    name: str,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = RUNS[name]
    monkeypatch.chdir(tmp_path)
    state = hold_debate(["--config", str(FOLDER / name), "--server", address, *expected.options], tmp_path)
    told = capsys.readouterr().err
    assert state["status"] == "completed"
    assert state["outcome"]["description"]
    assert not state.get("failures")
    assert [each["agent"]["id"] for each in state["spec"]["agents"]] == list(expected.agents)
    assert all(each in told for each in expected.told), told
    if expected.rounds is not None:
        rounds, count = expected.rounds, len(expected.agents)
        made = [each["work"]["activity"] for each in state["contributions"]]
        assert made.count("proposal") == made.count("refinement") == rounds * count
        assert made.count("critique") == rounds * count * (count - 1)


def test_a_file_whose_agents_ask_runs_to_an_answer_on_a_terminal(address: str, tmp_path: Path) -> None:
    arguments = ["debate", QUESTION, "--config", str(FOLDER / ASKS), "--server", address]
    with Terminal([*arguments, "--output", "x.json"], tmp_path, {"TERM": "dumb"}) as terminal:
        terminal.wait_until_written("> ")
        terminal.type(b"ten a second\n")
        terminal.wait_until_written("> ", 2)
        terminal.type(CTRL_D)
        code, shown = terminal.end(), terminal.written
    assert code == 0, shown
    state = json.loads((tmp_path / "x.json").read_text())
    assert state["status"] == "completed"
    assert "ten a second" in json.dumps(state["clarifications"])
    (prompt, _) = (each["agent"]["clarification_prompt"] for each in state["spec"]["agents"])
    assert prompt["source"] == str(FOLDER / "prompts/clarify.md")


def test_every_file_is_run() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_file()} == RUNS.keys()


@pytest.mark.parametrize("name", RUNS)
def test_the_published_schema_takes_every_file(name: str) -> None:
    parse = json.loads if name.endswith(".json") else yaml.safe_load
    jsonschema.Draft202012Validator(schema()).validate(parse((FOLDER / name).read_text()))


def test_a_file_of_the_usual_name_is_found_where_the_command_runs(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "debate-config.json").write_text((FOLDER / "some-disabled.json").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state = hold_debate(["--server", address, "--trust-config"], tmp_path)
    assert [each["agent"]["id"] for each in state["spec"]["agents"]] == ["on-1", "on-2"]


def test_prompt_files_are_used_and_recorded(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = hold_debate(["--config", str(FOLDER / "prompt-files.json"), "--server", address], tmp_path)
    sources = [
        (each["agent"]["system_prompt"] or {"source": "built-in"})["source"]
        for each in state["spec"]["agents"]
    ]
    assert sources == [str(FOLDER / "prompts/architect.md"), "built-in", "built-in"]
