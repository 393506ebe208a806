"""The `parley` command as people run it: a process, a whole system in it, and a model over HTTP."""

import asyncio
import json
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.e2e.harness import model_server as models
from tests.support.command import Command, Ended
from tests.support.model_server import Call, Match, ModelServer, Rule, ToolCall, ToolCalls

TWO = ["--agents", "architect,security", "--rounds", "1"]


def debate(folder: Path, url: str, *arguments: str) -> Command:
    return Command(["debate", *arguments], folder, {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"})


def debate_id(ended: Ended) -> str:
    found = re.search(r"deb-\d{8}-\d{6}-[a-z0-9]{8}", "\n".join(ended.err))
    assert found is not None, ended.err
    return found[0]


def test_a_debate_ends_with_its_answer_on_stdout_and_can_be_looked_at(tmp_path: Path) -> None:
    with models() as url:
        ended = debate(tmp_path, url, "Which?", *TWO, "--output", "x.json", "--report", "r").end()
        assert (ended.code, ended.out) == (0, "")
        state = json.loads((tmp_path / "x.json").read_text())
        again = debate(tmp_path, url, "--resume", state["id"]).end()
    assert state["status"] == "completed"
    assert len([each for each in state["contributions"] if each["work"]["activity"] == "critique"]) == 2
    assert "Which?" in (tmp_path / "r.md").read_text()
    assert again.code == 0
    assert f"\n## Answer\n\n{state['outcome']['description'].strip()}\n" in again.out
    assert state["id"] in Command(["list"], tmp_path).end().out
    shown = Command(["show", state["id"], "--json"], tmp_path).end()
    assert json.loads(shown.out) == state
    watched = Command(["watch", state["id"]], tmp_path).end()
    assert watched.out.splitlines()[-1] == f"{state['last_sequence']} closed"
    assert "### What the answer rests on" in Command(["analysis", state["id"]], tmp_path).end().out
    data = json.loads(Command(["analysis", state["id"], "--json"], tmp_path).end().out)
    assert data["analysis"] == state["analysis"]
    assert Command(["report", state["id"]], tmp_path).end().out == (tmp_path / "r.md").read_text()


async def test_an_agent_with_tools_looks_a_document_up_and_one_without_is_shown_it(tmp_path: Path) -> None:
    (tmp_path / "docs/old").mkdir(parents=True)
    (tmp_path / "docs/limits.md").write_text("# Limits\nA log file is rotated at 7 GiB.\n")
    (tmp_path / "docs/old/notes.md").write_text("Nothing here.\n")
    (tmp_path / "parley.yaml").write_text(
        "agents:\n"
        "- {id: ada, role: architect, tools: [file_read, list_files]}\n"
        "- {id: bo, role: security}\n"
        "debate: {rounds: 1}\n"
    )
    shown: dict[str, list[str]] = {"first": [], "last": [], "without": []}

    def look_up(call: Call) -> ToolCalls:
        shown["first"].append(call.prompt)
        return ToolCalls([ToolCall("file_read", {"path": "limits.md"})])

    def tell(call: Call) -> str:
        shown["last"].append(call.prompt)
        return f"I read:\n{call.tool_results[-1]}\nPosition: as it says."

    def propose(call: Call) -> str:
        shown["without"].append(call.prompt)
        return "At 7 GiB.\nPosition: at 7 GiB."

    rules = [
        Rule(Match(tools=True, tool_results=0), answer=look_up),
        Rule(Match(tools=True, tool_results=1), answer=tell),
        Rule(Match(tools=False, prompt="Write your proposal: your own answer"), answer=propose),
    ]
    async with ModelServer(rules=rules) as server:
        command = debate(
            tmp_path,
            server.base_url,
            "When is a log rotated?",
            *("--context", "docs", "--output", "x.json", "--report", "r.md", "--verbose"),
        )
        ended = await asyncio.to_thread(command.end)
    assert ended.code == 0, ended.err
    state = json.loads((tmp_path / "x.json").read_text())
    assert [each["path"] for each in state["spec"]["context"]] == ["limits.md", "old/notes.md"]
    made = [each for each in state["contributions"] if each["work"]["agent_id"] == "ada"]
    assert made
    for each in made:
        if each["work"]["activity"] != "critique":  # which has a form that the model server fills
            assert "A log file is rotated at 7 GiB." in each["reply"]["text"]
        assert [(call["name"], call["failed"]) for call in each["reply"]["tool_calls"]] == [
            ("file_read", False)
        ]
    others = [
        each["reply"]["tool_calls"] for each in state["contributions"] if each["work"]["agent_id"] != "ada"
    ]
    assert not any(others)
    assert len(shown["first"]) == len(shown["last"]) == len(made)
    (first,) = [prompt for prompt in shown["first"] if "Write your proposal: your own answer" in prompt]
    assert "limits.md" in first
    assert "7 GiB" not in first
    assert ["# Limits\nA log file is rotated at 7 GiB." in prompt for prompt in shown["without"]] == [True]
    report = (tmp_path / "r.md").read_text()
    assert report.count("Looked up: file\\_read limits.md") == len(made)
    assert "> 2: A log file is rotated at 7 GiB." in report
    assert "    looked up: file_read" in ended.err


def test_a_key_that_is_missing_is_exit_3_with_agent_and_phase(tmp_path: Path) -> None:
    with models("--require-key", "right") as url:
        ended = debate(tmp_path, url, "Which?", "--agents", "architect", "--rounds", "1").end()
    assert (ended.code, ended.out) == (3, "")
    assert re.fullmatch(
        r"parley: (architect in round 1 proposal|judge in list of requirements): PROVIDER_AUTH: .*; no key is set: export OPENAI_API_KEY=…",
        ended.err[-1],
    )
    assert ended.err[-2].endswith(f"parley debate --resume {debate_id(ended)}")


def test_no_provider_within_reach_is_exit_3(tmp_path: Path) -> None:
    (tmp_path / "parley.yaml").write_text("debate: {waiting_seconds: 1}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        ended = debate(tmp_path, url, "Which?", "--agents", "architect", "--rounds", "1").end()
    assert ended.code == 3
    assert re.match(
        r"parley: (architect in round 1 proposal|judge in list of requirements): (PROVIDER_|NO_ROUTE|CALL_)",
        ended.err[-1],
    )


def test_a_debate_whose_system_ends_with_an_error_is_named_with_how_to_go_on(tmp_path: Path) -> None:
    with models("--require-key", "right") as url:
        failed = debate(tmp_path, url, "Which?", *TWO).end()
    with models("--latency-ms", "60000") as url:
        # Of a service that starts once the debate has asked it, or soon: one that starts before may end the command first.
        given = {
            "OPENAI_BASE_URL": url,
            "PARLEY_MODEL": "test",
            "PARLEY_EMBEDDING_FINE": "endpoint",
            "PARLEY_EMBEDDING_BASE_URL": url,
            "PARLEY_EMBEDDING_API_KEY_FILE": "missing",
        }
        ended = Command(["debate", "--resume", debate_id(failed)], tmp_path, given).end()
    assert (ended.code, ended.out) == (4, "")
    assert ended.err[-2].endswith(f"go on with: parley debate --resume {debate_id(failed)}")
    assert ended.err[-1].startswith("parley: PARLEY_EMBEDDING_API_KEY_FILE: ")


@contextmanager
def lists_models_once() -> Iterator[str]:
    """A model server that is gone once it has listed its models; gives its URL."""
    listing = b'{"data": [{"id": "test"}]}'
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(listing)}\r\nConnection: close\r\n\r\n"

    def serve() -> None:
        with listening:
            connection, _ = listening.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(head.encode() + listing)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        thread.join()


def test_a_model_server_that_was_there_a_moment_ago_is_waited_for_a_minute_at_least_and_that_is_said(
    tmp_path: Path,
) -> None:
    with lists_models_once() as url:
        arguments = ["debate", "Which?", "--agents", "architect", "--rounds", "1"]
        held = Command(arguments, tmp_path, {"OPENAI_BASE_URL": url})
        held.wait_for("waiting for architect in round 1 proposal until ")
    held.signal(signal.SIGINT)
    state = json.loads(Command(["show", debate_id(held.end()), "--json"], tmp_path).end().out)
    assert state["spec"]["limits"]["waiting"] >= 60


def test_an_unknown_role_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with models() as url:
        ended = debate(tmp_path, url, "Which?", "--agents", "architect,wizard").end()
        assert ended.code == 2
        assert re.fullmatch(
            r"parley: --agents: unknown role 'wizard'; known roles: .*security.*", ended.err[-1]
        )
        (tmp_path / "parley.yaml").write_text("agents:\n- role: architect\n- role: wizard\n")
        placed = debate(tmp_path, url, "Which?").end()
    assert placed.code == 4
    assert placed.err[-1].startswith(
        "parley: parley.yaml:3: agents[1].role: unknown role 'wizard'; known roles: "
    )


def test_ctrl_c_stops_the_calls_and_leaves_a_debate_that_is_finished_later(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    with models("--latency-ms", "30000", "--ledger", str(ledger)) as slow:
        running = debate(tmp_path, slow, "Which?", *TWO)
        running.wait_for("proposal: 2 to come")
        running.signal(signal.SIGINT)
        paused = running.end()
    assert (paused.code, paused.out) == (130, "")
    identity = debate_id(paused)
    assert paused.err[-1] == f"Paused. Go on with: parley debate --resume {identity}"
    assert "Status     paused" in Command(["show", identity], tmp_path).end().out
    with models() as url:
        resumed = debate(tmp_path, url, "--resume", identity).end()
    assert resumed.code == 0
    assert "**Confidence:**" in resumed.out


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    with models("--latency-ms", "30000") as slow:
        running = debate(tmp_path, slow, "Which?", *TWO)
        running.wait_for("proposal: 2 to come")
        running.signal(signal.SIGINT)
        running.signal(signal.SIGINT)
        assert running.end().code == 130


def test_a_debate_whose_process_was_killed_is_finished_later(tmp_path: Path) -> None:
    with models("--latency-ms", "300") as url:
        running = debate(tmp_path, url, "Which?", *TWO)
        running.wait_for("proposal: 2/2")
        running.signal(signal.SIGKILL)
        running.end()
        listed = Command(["list"], tmp_path).end().out.splitlines()
        identity, status = listed[1].split()[:2]
        shown = Command(["show", identity], tmp_path).end().out
        watched = Command(["watch", identity], tmp_path).end()
        resumed = debate(tmp_path, url, "--resume", identity).end()
    assert status == "interrupted"
    assert shown.splitlines()[1].startswith("Status     interrupted")
    assert f"Go on      parley debate --resume {identity}" in shown
    assert watched.err == [f"Nothing runs this debate now; go on with: parley debate --resume {identity}"]
    assert resumed.code == 0
    assert "**Confidence:**" in resumed.out
    assert not any("proposal: 2 to come" in line for line in resumed.err)
    assert any(line.startswith("no round was complete; resumed in round 1") for line in resumed.err)


def start_two(folder: Path, url: str) -> tuple[Command, Command]:
    """Start two debates, the second one in the system of the first; both are in their first round."""
    first = debate(folder, url, "First?", *TWO)
    first.wait_for("round 1/1")
    second = debate(folder, url, "Second?", *TWO)
    second.wait_for("round 1/1")
    return first, second


def test_a_second_command_uses_the_system_of_the_first_and_goes_on_when_that_ends(tmp_path: Path) -> None:
    with models("--latency-ms", "2500") as url:
        first, second = start_two(tmp_path, url)
        assert first.process.poll() is None, "the second had no system to borrow"
        assert first.end().code == 0
        ended = second.end()
    assert ended.code == 0
    assert len([line for line in ended.err if line.startswith("using the running Parley at ")]) == 1
    assert "**Confidence:**" in ended.out


def test_a_command_whose_system_was_killed_says_so_and_goes_on_without_it(tmp_path: Path) -> None:
    with models("--latency-ms", "1000") as url:
        first, second = start_two(tmp_path, url)
        first.signal(signal.SIGKILL)
        first.end()
        ended = second.end()
    (used,) = [line for line in ended.err if line.startswith("using the running Parley at ")]
    address = used.removeprefix("using the running Parley at ").partition(",")[0]
    at = ended.err.index(f"The Parley at {address} has ended; going on without it.")
    assert any(line.startswith("Model: ") for line in ended.err[at:]), "nobody said who answers from there on"
    assert ended.code == 0
    assert "**Confidence:**" in ended.out


@pytest.mark.usefixtures("fixed_ports")
def test_up_says_which_debates_it_cuts_off(tmp_path: Path) -> None:
    with models("--latency-ms", "30000") as url:
        system = Command(["up"], tmp_path, {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"})
        system.wait_for("Ctrl-C stops")
        running = Command(["debate", "Which?", *TWO, "--server", "127.0.0.1:7401"], tmp_path)
        running.wait_for("proposal: 2 to come")
        system.signal(signal.SIGTERM)
        stopped = system.end()
        running.process.kill()
    identity = debate_id(stopped)
    assert f"Cut off: {identity}. The next parley up goes on with it." in stopped.err
    assert f"{identity}  interrupted" in Command(["list"], tmp_path).end().out


@pytest.mark.usefixtures("fixed_ports")
def test_up_runs_the_whole_system_until_stopped(tmp_path: Path) -> None:
    with models() as url:
        system = Command(["up"], tmp_path, {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"})
        system.wait_for("Ctrl-C stops")
        system.signal(signal.SIGHUP)  # the terminal is gone
        ended = Command(["debate", "Which?", *TWO, "--server", "127.0.0.1:7401"], tmp_path).end()
        listed = Command(["agents", "--server", "127.0.0.1:7401"], tmp_path).end()
        with urlopen("http://127.0.0.1:7400/readyz", timeout=30) as answer:
            ready = answer.read()
        opened = Command(["open", "--print", debate_id(ended)], tmp_path).end()
        page, _, ticket = opened.out.strip().partition("#ticket=")
        signed_in = urlopen(
            Request(
                "http://127.0.0.1:7400/console/session",
                json.dumps({"ticket": ticket}).encode(),
                {"Content-Type": "application/json"},
            ),
            timeout=30,
        )
        system.signal(signal.SIGTERM)
        stopped = system.end()
    assert ended.code == 0
    assert "**Confidence:**" in ended.out
    assert "architect" in listed.out
    assert "openai/test" in listed.out
    assert stopped.code == 0
    assert ready == b"ready\n"
    assert {"orchestrator  127.0.0.1:7401", "gateway       127.0.0.1:7402"} <= {*stopped.out.splitlines()}
    assert stopped.out.splitlines()[-2] == "edge          http://127.0.0.1:7400"
    assert stopped.out.splitlines()[-1].startswith("console       http://127.0.0.1:7400/login?next=/#ticket=")
    assert page == f"http://127.0.0.1:7400/login?next=/debates/{debate_id(ended)}"
    assert signed_in.status == 204


def _find_six_free_ports() -> int:
    """Return the first of six ports in a row that are free, below those that the system hands out."""
    for first in range(10_000 + os.getpid() % 1_000 * 10, 32_000, 10):
        with ExitStack() as sockets, suppress(OSError):
            for port in range(first, first + 6):
                sockets.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("there are no six free ports in a row")


def test_up_names_the_option_where_a_port_is_taken(tmp_path: Path) -> None:
    edge = _find_six_free_ports()
    with socket.create_server(("127.0.0.1", edge + 2)):
        ended = Command(["up", "--port", str(edge + 1)], tmp_path, {"PARLEY_LOCAL_MODEL": "off"}).end()
    assert ended.code == 4
    assert ended.err[-1] == (
        f"parley: cannot listen on 127.0.0.1:{edge + 2}: Address already in use; choose six other ports with --port"
    )


def test_up_takes_five_ports_from_the_one_it_is_given_and_the_one_before_for_the_edge(tmp_path: Path) -> None:
    edge = _find_six_free_ports()
    first = edge + 1
    with models() as url:
        system = Command(
            ["up", "--port", str(first), "--advertise", f"127.0.0.1:{first}"],
            tmp_path,
            {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"},
        )
        system.wait_for("Ctrl-C stops")
        listed = Command(["agents", "--json", "--server", f"127.0.0.1:{first}"], tmp_path).end()
        system.signal(signal.SIGTERM)
        stopped = system.end()
    assert json.loads(listed.out)["default_routes"] == ["openai/test"]
    addresses = stopped.out.split()[1::2]
    assert addresses.pop().startswith(f"http://127.0.0.1:{edge}/login")
    assert addresses.pop() == f"http://127.0.0.1:{edge}"
    assert sorted(addresses) == [f"127.0.0.1:{port}" for port in range(first, first + 5)]


def test_up_runs_without_a_link_to_the_console_where_callers_do_not_authenticate(tmp_path: Path) -> None:
    first = _find_six_free_ports() + 1
    with models() as url:
        variables = {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test", "PARLEY_AUTH": "none"}
        system = Command(["up", "--port", str(first)], tmp_path, variables)
        system.wait_for("Ctrl-C stops")
        listed = Command(["list", "--server", f"127.0.0.1:{first}"], tmp_path).end()
        system.signal(signal.SIGTERM)
        stopped = system.end()
    assert (listed.code, stopped.code) == (0, 0)
    assert any(line.startswith("warning: no link to the console: ") for line in stopped.err)


def test_one_model_answers_for_all_agents_of_a_debate(tmp_path: Path) -> None:
    with models() as url:
        ended = debate(tmp_path, url, "Which?", *TWO, "--model", "other", "--output", "x.json").end()
    assert ended.code == 0, ended.err
    state = json.loads((tmp_path / "x.json").read_text())
    assert {each["reply"]["route"] for each in state["contributions"]} == {"openai/other"}


def test_a_model_needs_a_provider(tmp_path: Path) -> None:
    ended = Command(["debate", "Which?", *TWO, "--model", "gpt-5"], tmp_path).end()
    assert ended.code == 4
    assert ended.err[-1].startswith("parley: --model gpt-5: no provider is set up; set OPENAI_API_KEY")
