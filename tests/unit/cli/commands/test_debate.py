"""`parley debate` in this process, against a scripted orchestrator: what it asks for, says and writes."""

import json
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.runtime.errors import FieldViolation
from parley.v1.agent_pb2 import Agent
from parley.v1.analysis_pb2 import Analysis, AnswerClaim
from parley.v1.debate_pb2 import DebateEstimate
from parley.v1.event_pb2 import AnswerAnalysed, Closed, ParticipantJoined, RoundAssessed, RoundStarted, Warned
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator
from tests.unit.cli.commands.scripts import ANSWER, write_saved_line
from tests.unit.cli.commands.test_refused_debates import make_refusal

REMARK = "m · 1 call · 120 tokens · 0.0 s"


NO_FILE = "No parley.yaml or debate-config.json here: the default team debates."


def test_the_answer_is_printed_before_what_follows_it_is_done(
    orchestrator: ScriptedOrchestrator,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def script(debate: ScriptedDebate) -> None:
        debate.add(ParticipantJoined(agent=Agent(id="ada")))
        debate.conclude(closes=False)

    def end_with_warning(*_: object) -> None:
        assert orchestrator.debate is not None
        orchestrator.debate.add(Warned(message="what agent A said was not remembered"))
        orchestrator.debate.close(Closed())

    orchestrator.script = script
    monkeypatch.setattr("parley.cli.commands.follow._SILENT_SECONDS", 120.0)
    monkeypatch.setattr("parley.cli.commands.debate.write_answer", end_with_warning)
    assert run(["debate", "Which?", "--server", orchestrator.address, "--report", "r"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[-2:] == ["warning: what ada said was not remembered", "Report: r.md"]
    assert "Finding out what the answer rests on" not in "".join(said)
    assert (folder / "r.md").exists()


def test_what_the_answer_rests_on_is_said_once_it_is_known_with_how_to_read_it(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(debate: ScriptedDebate) -> None:
        debate.conclude(closes=False)
        debate.add(AnswerAnalysed(analysis=Analysis(claims=[AnswerClaim()])))
        debate.close(Closed())

    orchestrator.script = script
    assert run(["debate", "Which?", "--server", orchestrator.address, "--report", "r"]) == 0
    said = "analysed: 1 claim, 0 not supported by anything said"
    command = f"parley analysis {DEBATE_ID} --server {orchestrator.address}"
    assert capsys.readouterr().err.splitlines()[-2:] == [f"{said}; {command}", "Report: r.md"]


def test_what_the_answer_rests_on_is_said_once_if_both_the_whole_debate_and_a_report_are_written(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(debate: ScriptedDebate) -> None:
        debate.conclude(closes=False)
        debate.add(AnswerAnalysed(analysis=Analysis(claims=[AnswerClaim()])))
        debate.add(Warned(message="what ada said was not remembered"))
        debate.close(Closed())

    orchestrator.script = script
    files = ["--output", "x.json", "--report", "r"]
    assert run(["debate", "Which?", "--server", orchestrator.address, *files]) == 0
    said = capsys.readouterr().err
    assert said.count("analysed: 1 claim") == said.count("warning: ") == 1


def test_the_notice_of_defaults_comes_only_where_they_hold(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", "--agents", "ada", *server]) == 0
    assert NO_FILE not in capsys.readouterr().err
    (folder / "parley.yaml").write_text("judge: {role: generalist}\n")
    assert run(["debate", "Which?", *server]) == 0
    assert capsys.readouterr().err.splitlines()[:3] == [
        "Using parley.yaml of this folder.",
        "parley.yaml: no agents section: architect and performance debate",
        "parley.yaml: no debate section: rounds as long as something is disputed, 3 at most",
    ]
    for option in (["--rounds", "1"], ["--effort", "quick"]):
        assert run(["debate", "Which?", "--agents", "ada", *option, *server]) == 0
        assert " section: " not in capsys.readouterr().err


def test_the_answer_alone_is_on_stdout(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["debate", "  Which?  ", "--server", orchestrator.address, "--rounds", "2"]) == 0
    out, err = capsys.readouterr()
    assert out == ANSWER
    assert err.splitlines() == [
        NO_FILE,
        "round 1/1",
        "  proposal: 1 to come",
        "  proposal: 1/1",
        write_saved_line(orchestrator.address),
        REMARK,
    ]
    spec = orchestrator.created[0].spec
    assert (spec.question, spec.panel.rounds, len(spec.agents), spec.HasField("judge")) == (
        "Which?",
        2,
        0,
        False,
    )


@pytest.mark.parametrize(
    ("estimate", "line"),
    [
        (DebateEstimate(min_calls=14, max_calls=42), "Expected: at least 14, at most 42 calls"),
        (
            DebateEstimate(min_calls=5, max_calls=5, unpriced_routes=["openai/m"]),
            "Expected: 5 calls; cost unknown: no price for openai/m; set input_price and output_price of a route in parley.yaml",
        ),
        (
            DebateEstimate(
                min_calls=14,
                max_calls=42,
                min_cost_micros=21_000,
                max_cost_micros=63_000,
                priced_routes=["openai/a", "house/b"],
            ),
            "Expected: at least 14, at most 42 calls; about $0.02 to $0.06 by the prices of openai/a, house/b",
        ),
        (
            DebateEstimate(
                min_calls=5, max_calls=5, min_cost_micros=9, max_cost_micros=2, priced_routes=["m"]
            ),
            "Expected: 5 calls; less than $0.01 by the prices of m",
        ),
        (
            DebateEstimate(
                min_calls=5, max_calls=5, min_cost_micros=0, max_cost_micros=0, priced_routes=["local/m"]
            ),
            "Expected: 5 calls; $0 by the prices of local/m",
        ),
        (
            DebateEstimate(
                min_calls=5, max_calls=5, min_cost_micros=20_100, max_cost_micros=22_000, priced_routes=["m"]
            ),
            "Expected: 5 calls; about $0.02 by the prices of m",
        ),
        (
            DebateEstimate(
                min_calls=5, max_calls=5, min_cost_micros=3_000, max_cost_micros=11_000, priced_routes=["m"]
            ),
            "Expected: 5 calls; at most about $0.01 by the prices of m",
        ),
    ],
    ids=[
        "nothing known",
        "no price",
        "a price",
        "next to nothing",
        "nothing",
        "one amount",
        "next to nothing at least",
    ],
)
def test_what_a_debate_is_expected_to_take_is_said_before_its_first_call(
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
    estimate: DebateEstimate,
    line: str,
) -> None:
    orchestrator.estimate = estimate
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 0
    assert capsys.readouterr().err.splitlines()[:3] == [line, NO_FILE, "round 1/1"]


def test_one_model_answers_for_every_agent(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", "--model", "openai/gpt-5", *server]) == 0
    spec = orchestrator.created[-1].spec
    assert [(each.agent.role, [*each.agent.routes]) for each in spec.agents] == [
        ("architect", ["openai/gpt-5"]),
        ("performance", ["openai/gpt-5"]),
    ]
    assert [*spec.judge.agent.routes] == ["openai/gpt-5"]
    (folder / "parley.yaml").write_text(
        "agents: [{id: ada, role: security, model: other, temperature: 0.5}]\njudge: {model: other}\n"
    )
    assert run(["debate", "Which?", "--model", "openai/gpt-5", *server]) == 0
    spec = orchestrator.created[-1].spec
    (ada,) = spec.agents
    assert (ada.agent.id, [*ada.agent.routes], ada.agent.temperature) == ("ada", ["openai/gpt-5"], 0.5)
    orchestrator.refusal = make_refusal(
        lambda spec: [FieldViolation("spec.agents[0].agent.routes[0]", "unknown route 'x'; known routes: y")]
    )
    capsys.readouterr()
    assert run(["debate", "Which?", "--model", "x", *server]) == 2
    assert capsys.readouterr().err.splitlines()[1:] == ["parley: --model: unknown route 'x'; known routes: y"]


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
    assert json.loads((folder / "new/x.json").read_text())["outcome"]["details"]["confidence"] == 72
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
    def spoil_file(debate: ScriptedDebate) -> None:
        (folder / "x.txt").mkdir()
        debate.conclude()

    orchestrator.script = spoil_file
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
    assert "  1 round, 1 call, 0.0 s" in err


@pytest.mark.parametrize(("asked", "is_shown"), [(["--verbose"], True), ([], False)])
def test_how_the_answer_came_about_is_shown_to_those_who_ask(
    asked: list[str],
    is_shown: bool,
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def conclude_by_vote(debate: ScriptedDebate) -> None:
        debate.state.process = "## Vote\n\n- 2 of 3"
        debate.conclude()

    orchestrator.script = conclude_by_vote
    assert run(["debate", "Which?", *asked, "--server", orchestrator.address]) == 0
    told = capsys.readouterr()
    assert told.out == ANSWER
    assert ("## Vote\n\n- 2 of 3" in told.err) == is_shown


def test_agents_are_chosen_by_id_and_by_role(orchestrator: ScriptedOrchestrator, folder: Path) -> None:
    (folder / "parley.yaml").write_text(
        "agents: [{id: ada, role: kiss}, {id: bo, role: testing}, {role: security}]\n"
    )
    assert (
        run(["debate", "Which?", "--agents", "bo, simplicity,other", "--server", orchestrator.address]) == 0
    )
    agents = orchestrator.created[0].spec.agents
    assert [each.agent.id or each.agent_id for each in agents] == ["bo", "ada", "other"]


def end_by_agreement(debate: ScriptedDebate) -> None:
    found = "the agents agree (94 %, threshold 90 %)"
    debate.add(RoundStarted(number=1, total=3))
    debate.add(RoundAssessed(round=1, ends_rounds=True, finding=found))
    debate.state.max_rounds, debate.state.rounds_ended_by = 3, found
    debate.conclude()


def test_rounds_that_ended_early_say_why(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.script = end_by_agreement
    assert run(["debate", "Which?", "--verbose", "--server", orchestrator.address]) == 0
    why = "ended after round 1: the agents agree (94 %, threshold 90 %)"
    err = capsys.readouterr().err.splitlines()
    assert why in err
    assert f"  {why}" in err
    assert run(["show", DEBATE_ID, "--server", orchestrator.address]) == 0
    assert f"Rounds     1 of 3; {why}" in capsys.readouterr().out.splitlines()
