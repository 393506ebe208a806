"""What the command does with a debate that failed, was paused, or whose server is away."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from parley.cli.__main__ import run
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import RoundFinished, RoundStarted, StepFailed
from tests.support.scripted_listings import add_listings
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator
from tests.unit.cli.commands.scripts import ANSWER, OTHER_ID, write_saved_line


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("PROVIDER_AUTH", 3),
        ("PROVIDER_UNAVAILABLE", 3),
        ("NO_ROUTE_AVAILABLE", 3),
        ("CALL_TIMEOUT", 3),
        ("QUORUM_LOST", 1),
    ],
)
def test_a_failed_debate_names_agent_and_phase(
    reason: str, code: int, orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.script = lambda debate: debate.fail(reason, "it said\nno", "ada", "round 1 proposal")
    assert run(["debate", "Which?", "--server", orchestrator.address]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-2:] == [
        f"Saved debate {DEBATE_ID}; go on with: parley debate --resume {DEBATE_ID} --server {orchestrator.address}",
        f"parley: ada in round 1 proposal: {reason}: it said no",
    ]


def test_a_failed_debate_is_resumed_and_followed_to_its_end(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.script = lambda debate: debate.fail("PROVIDER_AUTH", "no", "ada", "round 1 proposal")
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 3
    assert run(["debate", "--resume", DEBATE_ID, "--server", orchestrator.address]) == 0
    out, err = capsys.readouterr()
    assert out == ANSWER
    assert err.splitlines()[-3:] == [
        "resumed",
        write_saved_line(orchestrator.address),
        "0 calls · 0 tokens · 0.0 s",
    ]
    assert [each.intervention.WhichOneof("act") for each in orchestrator.interventions] == ["resume"]


def test_a_resumed_debate_tells_what_is_recorded_and_not_how_it_came(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(debate: ScriptedDebate) -> None:
        for number in (1, 2):
            debate.add(RoundStarted(number=number, total=3))
            debate.step("ada", "proposal", "Use one.", round=number)
            debate.add(RoundFinished(number=number))
        work = Work(activity="proposal", agent_id="ada", round=3)
        debate.add(StepFailed(work=work, reason="X", message="old"), key="k", attempt=1)
        debate.fail("X", "old", "ada", "round 3 proposal")

    def go_on(debate: ScriptedDebate) -> None:
        debate.add(RoundStarted(number=3, total=3))
        debate.conclude()

    orchestrator.script, orchestrator.after_resume = fail, go_on
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", *server]) == 1
    capsys.readouterr()
    assert run(["debate", "--resume", DEBATE_ID, *server]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "2 rounds were recorded; resumed in round 3",
        "resumed",
        "round 3/3",
        write_saved_line(orchestrator.address),
        "m · 2 calls · 240 tokens · 0.0 s",
    ]
    assert run(["debate", "--resume", DEBATE_ID, *server]) == 0
    out, err = capsys.readouterr()
    assert out == ANSWER
    assert err.splitlines() == [
        f"Debate {DEBATE_ID} is already completed.",
        write_saved_line(orchestrator.address),
        "m · 2 calls · 240 tokens · 0.0 s",
    ]


def test_agents_that_failed_alike_are_named_together_with_the_variable_of_their_key(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(debate: ScriptedDebate) -> None:
        for agent in ("ada", "bo"):
            work = Work(activity="proposal", agent_id=agent, round=1)
            failed = StepFailed(work=work, reason="PROVIDER_AUTH", message="house/m: 401 No.")
            debate.add(failed, key=f"round/1/propose/{agent}", attempt=1)
            debate.state.failures.add(work=work, reason="PROVIDER_AUTH", message="house/m: 401 No.")
        debate.fail("PROVIDER_AUTH", "house/m: 401 No.", "ada", "round 1 proposal")

    orchestrator.script = fail
    (folder / "parley.yaml").write_text(
        "agents:\n- {id: ada, role: architect, model: m, provider: house}\n- {id: bo, role: testing}\n"
        "providers: [{name: house, base_url: 'http://localhost/v1', api_key_env: HOUSE_KEY}]\n"
    )
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 3
    err = capsys.readouterr().err.splitlines()
    assert "  ada: round 1 proposal failed: PROVIDER_AUTH: house/m: 401 No." in err
    assert "  bo: round 1 proposal failed in the same way" in err
    assert err[-1] == (
        "parley: ada, bo in round 1 proposal: PROVIDER_AUTH: house/m: 401 No; the key is that of HOUSE_KEY at the gateway: set the right one"
    )
    assert run(["show", DEBATE_ID, "--server", orchestrator.address]) == 0
    shown = capsys.readouterr().out.splitlines()
    told = [each for each in shown if "PROVIDER_AUTH" in each]
    assert told == ["Failed     ada, bo in round 1 proposal: PROVIDER_AUTH: house/m: 401 No."]
    assert shown[-1] == f"Go on      parley debate --resume {DEBATE_ID} --server {orchestrator.address}"


def test_a_server_that_is_not_there_is_told_with_its_address(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["list"], ["debate", "x"]):
        assert run([*arguments, "--server", "127.0.0.1:1"]) == 1
        assert capsys.readouterr().err == (
            "parley: no orchestrator answers at 127.0.0.1:1 (connection refused); start one with: parley up\n"
        )


def test_a_service_that_is_another_is_told_with_its_address(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    add_listings(server)
    server.start()
    try:
        assert run(["agents", "--server", address]) == 1
    finally:
        server.stop(None).wait(5)
    assert capsys.readouterr().err == (
        f"parley: the service at {address} is not the orchestrator; --server takes the orchestrator's HOST:PORT\n"
    )


def test_a_debate_that_is_there_no_more_cannot_be_resumed(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["debate", "--resume", OTHER_ID, "--server", orchestrator.address]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"parley: debate '{OTHER_ID}' not found"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_pauses_the_debate_and_the_command_says_how_to_go_on(
    number: signal.Signals, orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(debate: ScriptedDebate) -> None:
        debate.add(RoundStarted(number=1, total=1))
        os.kill(os.getpid(), number)

    orchestrator.script = interrupt
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    going_on = f"parley debate --resume {DEBATE_ID} --server {orchestrator.address}"
    assert err.splitlines()[-1] == f"Paused. Go on with: {going_on}"
    assert [
        (each.intervention.WhichOneof("act"), each.intervention.pause.stop_calls)
        for each in orchestrator.interventions
    ] == [("pause", True)]
    assert run(["debate", "--resume", DEBATE_ID, "--server", orchestrator.address]) == 0
    assert capsys.readouterr().out == ANSWER


@pytest.mark.parametrize("stderr", ["closed", "full", "no reader"])
def test_a_debate_runs_though_nobody_can_be_told_how(stderr: str, orchestrator: ScriptedOrchestrator) -> None:
    redirected = {"closed": "2>&-", "full": "2>/dev/full", "no reader": "2> >(exec 0<&-; exit)"}[stderr]
    command = f'"{sys.executable}" -m parley.cli debate Which? --server {orchestrator.address} {redirected}'
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, ANSWER)


def test_who_has_hang_ups_ignored_is_not_stopped_by_one(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `nohup` does."""

    def hang_up(debate: ScriptedDebate) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        debate.conclude()

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        orchestrator.script = hang_up
        assert run(["debate", "Which?", "--server", orchestrator.address]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert capsys.readouterr().out == ANSWER


def test_after_the_debate_a_signal_does_what_it_did_before(orchestrator: ScriptedOrchestrator) -> None:
    """Python's own handler of Ctrl-C would print a traceback while Python ends."""

    def handle(*_: object) -> None:
        pass

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, handle) for each in numbers}
    try:
        assert run(["debate", "Which?", "--server", orchestrator.address]) == 0
        assert [signal.getsignal(each) for each in numbers] == [handle] * 3
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
