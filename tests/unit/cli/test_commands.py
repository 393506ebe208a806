"""The command line in this process, against a scripted orchestrator: outputs, errors and exit codes."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.v1 import orchestrator_pb2 as pb
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator, scripted

SAVED = f"Saved debate {DEBATE_ID}; parley show {DEBATE_ID}"
SAVED_FAILED = f"Saved debate {DEBATE_ID}; go on with: parley debate --resume {DEBATE_ID}"
NO_FILE = "No parley.yaml or debate-config.json here: the default team debates."
ROLES = "known roles: architect, data-modeling, generalist, performance, security, simplicity, testing"
OTHER_ID = "deb-20260102-030405-zzzzzzzz"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path / 'data'}")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def orchestrator() -> Iterator[ScriptedOrchestrator]:
    with scripted(ScriptedOrchestrator(script=one_round)) as serving:
        yield serving


def one_round(debate: ScriptedDebate) -> None:
    debate.add("round_started", {"number": 1, "total": 1})
    debate.add("phase_started", {"name": "proposal", "round": 1, "expected": 1})
    debate.step("ada", "proposal", "\nUse one.\nBecause.")
    debate.add("phase_finished", {"name": "proposal", "round": 1})
    debate.conclude()


ANSWER = "Use a monolith.\n\nConfidence: 72 of 100\n"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["debate", "--clarify", "x"], 2, "no such option: --clarify"),
        (["debate", "--round", "1", "x"], 2, "no such option: --round; did you mean --rounds?"),
        (["debate", "--foo", "x"], 2, "no such option: --foo"),
        (["debate", "--config-file", "a", "x"], 2, "no such option: --config-file"),
        (["frobnicate"], 2, "no such command: frobnicate"),
        (["lst"], 2, "no such command: lst; did you mean list?"),
        (["debate", "a", "b"], 2, "got unexpected extra argument (b)"),
        (["debate"], 2, "give a question, or a file that holds it with --problem-description FILE"),
        (
            ["debate", " \n "],
            2,
            "the question is empty; give one, or a file with --problem-description FILE",
        ),
        (
            ["debate", "x", "--problem-description", "q.md"],
            2,
            "give a question or --problem-description q.md, not both",
        ),
        (["debate", "--problem-description", "q.md"], 2, "--problem-description q.md: there is no such file"),
        (["debate", "--problemDescription", "."], 2, "--problem-description .: is not a file"),
        (["debate", "--problem-description", "blank.md"], 2, "--problem-description blank.md: is empty"),
        (
            ["debate", "--problem-description", "latin.md"],
            2,
            "--problem-description latin.md: is not UTF-8 text",
        ),
        (["debate", "x", "--rounds", "0"], 2, "--rounds: must be a whole number, 1 to 100"),
        (["debate", "x", "--rounds", "abc"], 2, "--rounds: must be a whole number, 1 to 100"),
        (["show", "deb-nope"], 2, "'deb-nope' is not a debate id; parley list shows them"),
        (["list", "--server", "foo"], 2, "--server: must be HOST:PORT, such as 127.0.0.1:7401, not 'foo'"),
        (
            ["list", "--server", "localhost:70000"],
            2,
            "--server: must be HOST:PORT, such as 127.0.0.1:7401, not 'localhost:70000'",
        ),
        (["debate", "x", "--rounds"], 2, "option '--rounds' requires an argument"),
        (["debate", "x", "--config", "none.yaml"], 4, "none.yaml: cannot be read: No such file or directory"),
        (
            ["debate", "x", "--config", "bad.yaml"],
            4,
            "bad.yaml:2: is not YAML: expected the node content, but found '<stream end>'",
        ),
        (["debate", "x", "--agents", "a,,b"], 2, "--agents a,,b: has an empty name"),
        (["debate", "x", "--agents", "a b"], 2, "--agents a b: 'a b' is neither an id nor a role"),
        (
            ["debate", "x", "--agents", "kiss,simplicity"],
            2,
            "--agents kiss,simplicity: simplicity is there twice",
        ),
        (["debate", "x", "--agents", "judge,judge"], 2, "--agents judge,judge: the judge cannot debate"),
        (
            ["debate", "x", "--agents", "security,wizard"],
            2,
            f"--agents: unknown role 'wizard'; {ROLES}",
        ),
        (
            ["debate", "x", "--format", "opera"],
            2,
            "--format: unknown format 'opera'; known formats: panel",
        ),
        (["debate", "x", "--context", "gone"], 2, "--context gone: there is no such file or folder"),
        (["debate", "x", "--context", "latin.md"], 2, "--context latin.md: is not UTF-8 text"),
        (
            ["debate", "--resume", DEBATE_ID, "--context", "blank.md"],
            2,
            "--resume goes on with a debate as it was begun; leave out --context",
        ),
        (["debate", "x", "--output", "."], 2, "--output .: is a folder; name a file in it"),
        (
            ["debate", "x", "--resume", DEBATE_ID],
            2,
            "--resume goes on with a debate as it was begun; leave out a question",
        ),
        (["serve", "nothing"], 2, None),
        (["show"], 2, "missing argument 'ID'"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_a_code(
    arguments: list[str], code: int, line: str | None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "blank.md").write_text(" \n")
    (folder / "latin.md").write_bytes(b"\xe9t\xe9")
    (folder / "bad.yaml").write_text("agents: [\n")
    assert run(arguments) == code
    out, err = capsys.readouterr()
    told = err.splitlines()
    assert out == ""
    assert len(told) == 1
    assert told[0].startswith("parley: ")
    if line is not None:
        assert told[0] == f"parley: {line}"


def test_a_config_with_a_key_that_nobody_set_is_refused_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "parley.yaml").write_text("agents:\n- {role: architect, provider: openai, model: gpt-4}\n")
    assert run(["debate", "x"]) == 4
    assert capsys.readouterr().err.splitlines()[-1] == (
        "parley: parley.yaml:2: agents[0].provider: provider openai needs OPENAI_API_KEY, which is not set"
    )


def test_every_mistake_of_a_file_is_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "parley.yaml").write_text("debate:\n  rounds: 0\n  domain: ''\nroutes: 3\n")
    assert run(["debate", "x"]) == 4
    assert capsys.readouterr().err.splitlines() == [
        "parley: parley.yaml:2: debate.rounds: must be at least 1",
        "parley: parley.yaml:3: debate.domain: must not be empty",
        "parley: parley.yaml:4: routes: must be a list",
    ]


def test_unfit_roles_of_a_file_are_refused_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "parley.yaml").write_text("agents:\n- role: wizard\n- {id: ju, role: judge}\n")
    assert run(["debate", "x"]) == 4
    assert capsys.readouterr().err.splitlines() == [
        f"parley: parley.yaml:2: agents[0].role: unknown role 'wizard'; {ROLES}",
        f"parley: parley.yaml:3: agents[1].role: role 'judge' judges and cannot debate; {ROLES}",
    ]


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: parley ")
    assert "ratings" in out
    assert err == ""


def test_the_notice_of_defaults_comes_only_where_they_hold(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", "--agents", "ada", *server]) == 0
    assert NO_FILE not in capsys.readouterr().err
    (folder / "parley.yaml").write_text("judge: {role: generalist}\n")
    assert run(["debate", "Which?", *server]) == 0
    assert capsys.readouterr().err.splitlines()[:2] == [
        "parley.yaml: no agents section: architect and performance debate",
        "parley.yaml: no debate section: 3 rounds, as always",
    ]
    assert run(["debate", "Which?", "--agents", "ada", "--rounds", "1", *server]) == 0
    assert " section: " not in capsys.readouterr().err


def test_the_answer_alone_is_on_stdout(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["debate", "  Which?  ", "--server", orchestrator.address, "--rounds", "2"]) == 0
    out, err = capsys.readouterr()
    assert out == ANSWER
    assert err.splitlines() == [NO_FILE, "round 1/1", "  proposal: 1 to come", "  proposal: 1/1", SAVED]
    spec = orchestrator.created[0].spec
    assert (spec.question, spec.rounds, len(spec.agents), spec.HasField("judge")) == ("Which?", 2, 0, False)


def test_a_question_from_a_file_is_kept_as_written(orchestrator: ScriptedOrchestrator, folder: Path) -> None:
    (folder / "q.md").write_bytes(b"\n  Which?\r\n")
    assert run(["debate", "--problem-description", "q.md", "--server", orchestrator.address]) == 0
    assert orchestrator.created[0].spec.question == "\n  Which?\r\n"


def test_context_travels_with_the_debate_and_what_was_left_out_is_told_once(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "docs").mkdir()
    (folder / "docs/b.md").write_text("two")
    (folder / "docs/a.md").write_text("one")
    (folder / "docs/c.png").write_bytes(b"\x89PNG\0")
    (folder / "docs/.d").write_text("hidden")
    assert run(["debate", "Which?", "--context", "docs", "--server", orchestrator.address]) == 0
    spec = orchestrator.created[0].spec
    assert [(each.path, each.text) for each in spec.context] == [("a.md", "one"), ("b.md", "two")]
    told = [line for line in capsys.readouterr().err.splitlines() if "--context" in line]
    assert told == ["--context docs: left out 2 (hidden: 1, not UTF-8 text: 1)"]


def test_outputs_go_to_files(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", "--output", "new/x.json", "--report", "new/r", *server]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert {"Report: new/r.md", "Answer: new/x.json"} <= set(err.splitlines())
    assert json.loads((folder / "new/x.json").read_text())["solution"]["confidence"] == 72
    assert (folder / "new/r.md").read_text() == "# Report\n"
    assert run(["debate", "Which?", "--output", "x.txt", *server]) == 0
    assert (folder / "x.txt").read_text() == ANSWER


def test_a_report_that_cannot_be_written_is_a_warning_only(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "file").write_text("")
    assert run(["debate", "Which?", "--report", "file/r.md", "--server", orchestrator.address]) == 0
    out, err = capsys.readouterr()
    assert out == ANSWER
    assert any(
        line.startswith("warning: --report file/r.md: cannot be written:") for line in err.splitlines()
    )


def test_an_output_that_cannot_be_written_is_refused_before_the_debate(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "file").write_text("")
    assert run(["debate", "Which?", "--output", "file/x.txt", "--server", orchestrator.address]) == 2
    assert capsys.readouterr().err == (
        f"parley: --output file/x.txt: cannot be written: {folder / 'file'} is not a folder\n"
    )
    assert orchestrator.created == []


def test_an_answer_that_could_not_be_written_is_printed(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoiled(debate: ScriptedDebate) -> None:
        (folder / "x.txt").mkdir()
        debate.conclude()

    orchestrator.script = spoiled
    assert run(["debate", "Which?", "--output", "x.txt", "--server", orchestrator.address]) == 1
    out, err = capsys.readouterr()
    assert out == ANSWER
    assert err.splitlines()[-1] == "parley: --output x.txt: cannot be written: Is a directory"


def test_verbose_tells_round_by_round(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["debate", "Which?", "--verbose", "--server", orchestrator.address]) == 0
    err = capsys.readouterr().err.splitlines()
    assert "Round 1" in err
    assert "  ada, proposal: Use one." in err
    assert "    1.2 s, 120 tokens" in err
    assert "  1 round, 1 calls, 0.0 s" in err


def test_a_panel_config_reaches_the_orchestrator(orchestrator: ScriptedOrchestrator, folder: Path) -> None:
    panel = {
        "agents": [
            {"id": "agent-a", "name": "A", "role": "architect", "model": "gpt-4", "provider": "openai"},
            {
                "id": "agent-k",
                "name": "K",
                "role": "kiss",
                "model": "gpt-4",
                "provider": "openai",
                "enabled": False,
            },
        ],
        "judge": {"id": "j", "name": "J", "role": "generalist", "model": "gpt-4", "provider": "openai"},
        "debate": {"rounds": 2, "synthesisMethod": "judge"},
        "trace": "x",
    }
    (folder / "debate-config.json").write_text(json.dumps(panel))
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 0
    spec = orchestrator.created[0].spec
    assert [each.agent.id for each in spec.agents] == ["agent-a"]
    assert list(spec.agents[0].agent.routes) == ["openai/gpt-4"]
    assert (spec.judge.agent.id, spec.rounds) == ("j", 2)


def test_agents_are_chosen_by_id_and_by_role(orchestrator: ScriptedOrchestrator, folder: Path) -> None:
    (folder / "parley.yaml").write_text(
        "agents: [{id: ada, role: kiss}, {id: bo, role: testing}, {role: security}]\n"
    )
    assert (
        run(["debate", "Which?", "--agents", "bo, simplicity,other", "--server", orchestrator.address]) == 0
    )
    agents = orchestrator.created[0].spec.agents
    assert [each.agent.id or each.agent_id for each in agents] == ["bo", "ada", "other"]


def refusing(
    check: Callable[[pb.DebateSpec], list[FieldViolation]],
) -> Callable[[pb.CreateDebateRequest], ParleyError | None]:
    def refusal(request: pb.CreateDebateRequest) -> ParleyError | None:
        violations = check(request.spec)
        return invalid_argument(violations) if violations else None

    return refusal


def unknown_names(spec: pb.DebateSpec) -> list[FieldViolation]:
    ids = [
        FieldViolation(f"spec.agents[{place}].agent_id", "unknown agent; known agents: ada")
        for place, each in enumerate(spec.agents)
        if each.agent_id not in {"", "ada"}
    ]
    return ids + [
        FieldViolation(
            f"spec.agents[{place}].agent.role", f"unknown role {each.agent.role}; known roles: security"
        )
        for place, each in enumerate(spec.agents)
        if each.agent.role not in {"", "security"}
    ]


def test_a_name_that_is_no_agents_is_taken_as_a_role(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.refusal = refusing(unknown_names)
    assert run(["debate", "Which?", "--agents", "ada,security", "--server", orchestrator.address]) == 0
    ada, security = orchestrator.created[-1].spec.agents
    assert (ada.agent_id, security.agent.id, security.agent.role) == ("ada", "security", "security")


def test_an_unknown_role_is_refused_with_the_known_ones(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.refusal = refusing(unknown_names)
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", "--agents", "security,wizard", *server]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "parley: --agents: unknown role wizard; known roles: security"
    )
    (folder / "parley.yaml").write_text("agents:\n- role: security\n- role: wizard\n")
    assert run(["debate", "Which?", *server]) == 4
    assert capsys.readouterr().err.splitlines()[-1] == (
        "parley: parley.yaml:3: agents[1].role: unknown role wizard; known roles: security"
    )


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("spec.context[0].path", "parley: --context: 'a.md' must be otherwise"),
        ("spec.context", "parley: --context: must be otherwise"),
    ],
)
def test_documents_that_the_system_refuses_are_refused_at_their_option(
    field: str,
    line: str,
    orchestrator: ScriptedOrchestrator,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orchestrator.refusal = refusing(lambda spec: [FieldViolation(field, "must be otherwise")])
    (folder / "a.md").write_text("one")
    assert run(["debate", "Which?", "--context", "a.md", "--server", orchestrator.address]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == line


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
        SAVED_FAILED,
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
    assert err.splitlines()[-2:] == ["resumed", SAVED]
    assert [wish.WhichOneof("wish") for wish in orchestrator.wishes] == ["resume"]


def test_a_resumed_debate_tells_what_is_recorded_and_not_how_it_came(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(debate: ScriptedDebate) -> None:
        for number in (1, 2):
            debate.add("round_started", {"number": number, "total": 3})
            debate.step("ada", "proposal", "Use one.", round=number)
            debate.add("round_finished", {"number": number})
        work = {"activity": "proposal", "agent": "ada", "round": 3}
        debate.add("step_failed", {"work": work, "reason": "X", "message": "old"}, key="k", attempt=1)
        debate.fail("X", "old", "ada", "round 3 proposal")

    def going_on(debate: ScriptedDebate) -> None:
        debate.add("round_started", {"number": 3, "total": 3})
        debate.conclude()

    orchestrator.script, orchestrator.after_resume = failing, going_on
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", *server]) == 1
    capsys.readouterr()
    assert run(["debate", "--resume", DEBATE_ID, *server]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "2 rounds are recorded; going on in round 3",
        "resumed",
        "round 3/3",
        SAVED,
    ]
    assert run(["debate", "--resume", DEBATE_ID, *server]) == 0
    out, err = capsys.readouterr()
    assert out == ANSWER
    assert err.splitlines() == [f"Debate {DEBATE_ID} is already completed.", SAVED]


def test_agents_that_failed_alike_are_named_together_with_the_variable_of_their_key(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(debate: ScriptedDebate) -> None:
        for agent in ("ada", "bo"):
            work = {"activity": "proposal", "agent": agent, "round": 1}
            failed = {"work": work, "reason": "PROVIDER_AUTH", "message": "401"}
            debate.add("step_failed", failed, key=f"round/1/propose/{agent}", attempt=1)
            debate.state.failures.add(
                agent_id=agent,
                kind=pb.CONTRIBUTION_KIND_PROPOSAL,
                round=1,
                reason="PROVIDER_AUTH",
                message="401",
            )
        debate.fail("PROVIDER_AUTH", "401", "ada", "round 1 proposal")

    orchestrator.script = failing
    (folder / "parley.yaml").write_text(
        "agents:\n- {id: ada, role: architect, model: m, provider: house}\n- {id: bo, role: testing}\n"
        "providers: [{name: house, base_url: 'http://localhost/v1', api_key_env: HOUSE_KEY}]\n"
    )
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 3
    err = capsys.readouterr().err.splitlines()
    assert "  ada: round 1 proposal failed: PROVIDER_AUTH: 401" in err
    assert "  bo: round 1 proposal failed in the same way" in err
    assert err[-1] == "parley: ada, bo in round 1 proposal: PROVIDER_AUTH: 401; check HOUSE_KEY"
    assert run(["show", DEBATE_ID, "--server", orchestrator.address]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "Failed     ada, bo in round 1 proposal: PROVIDER_AUTH: 401" in shown
    assert shown[-1] == f"Go on      parley debate --resume {DEBATE_ID}"


def agreeing(debate: ScriptedDebate) -> None:
    debate.add("round_started", {"number": 1, "total": 3})
    work = {"activity": "convergence", "round": 1}
    value = {"verdict": "CONVERGED", "agreement_percent": 94.2, "reason": ""}
    debate.add("step_succeeded", {"work": work, "value": value}, key="round/1/convergence", attempt=1)
    debate.state.spec.rounds = 3
    debate.conclude()


def test_rounds_that_ended_early_say_why(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.script = agreeing
    assert run(["debate", "Which?", "--verbose", "--server", orchestrator.address]) == 0
    why = "ended after round 1: the agents agree (94 %, threshold 90 %)"
    err = capsys.readouterr().err.splitlines()
    assert why in err
    assert f"  {why}" in err
    assert run(["show", DEBATE_ID, "--server", orchestrator.address]) == 0
    assert f"Rounds     1 of 3; {why}" in capsys.readouterr().out.splitlines()


def test_a_server_that_is_not_there_is_told_with_its_address(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["list"], ["debate", "x"]):
        assert run([*arguments, "--server", "127.0.0.1:1"]) == 1
        assert capsys.readouterr().err == (
            "parley: no orchestrator answers at 127.0.0.1:1 (connection refused); start one with: parley up\n"
        )


def test_a_service_that_is_another_is_told_with_its_address(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["agents", "--server", orchestrator.address]) == 1
    assert capsys.readouterr().err == (
        f"parley: what answers at {orchestrator.address} is no gateway; --server takes the gateway's HOST:PORT\n"
    )


def test_a_debate_that_is_there_no_more_cannot_be_resumed(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["debate", "--resume", OTHER_ID, "--server", orchestrator.address]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"parley: debate '{OTHER_ID}' not found"


def test_ctrl_c_pauses_the_debate_and_says_how_to_go_on(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(debate: ScriptedDebate) -> None:
        debate.add("round_started", {"number": 1, "total": 1})
        os.kill(os.getpid(), signal.SIGINT)

    orchestrator.script = interrupted
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == f"Paused. Go on with: parley debate --resume {DEBATE_ID}"
    assert [(wish.WhichOneof("wish"), wish.pause.stop_calls) for wish in orchestrator.wishes] == [
        ("pause", True)
    ]
    assert run(["debate", "--resume", DEBATE_ID, "--server", orchestrator.address]) == 0
    assert capsys.readouterr().out == ANSWER


def test_list_show_watch_and_report(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--server", orchestrator.address]
    run(["debate", "Which?", *server])
    capsys.readouterr()
    assert run(["list", "--limit", "3", *server]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "ID",
        "deb-0-0",
        "deb-0-1",
        "deb-1-0",
    ]
    assert run(["show", DEBATE_ID, *server]) == 0
    shown = capsys.readouterr().out
    assert "Status     completed" in shown
    assert shown.endswith(ANSWER)
    assert run(["show", DEBATE_ID, "--json", *server]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "completed"
    assert run(["watch", DEBATE_ID, "--after", "2", *server]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "3 round 1/1",
        "4 round 1 proposal: 1 to come",
        "5 ada proposes",
        "6 ada proposal: done (1.2 s, 120 tokens)",
        "7 round 1 proposal: done",
        "8 completed",
        "9 closed",
    ]
    assert run(["report", DEBATE_ID, *server]) == 0
    assert capsys.readouterr().out == "# Report\n"


@pytest.mark.parametrize("command", ["show", "watch", "report"])
def test_a_debate_that_is_not_there_is_one_line(
    command: str, orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, OTHER_ID, "--server", orchestrator.address]) == 1
    assert capsys.readouterr().err == f"parley: debate '{OTHER_ID}' not found\n"


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config-schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Parley configuration"
