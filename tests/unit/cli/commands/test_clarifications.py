"""Clarifications on a terminal: how the agents' questions are put, answered, skipped, and left."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_WAITING,
    Answer,
    DebateSpec,
    Intervention,
    Participant,
    Question,
    Questions,
)
from parley.v1.event_pb2 import CheckpointClosed, CheckpointExpired, CheckpointOpened, Paused
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator, scripted
from tests.support.terminal import CTRL_C, CTRL_D, Terminal, on_terminal

KEY = "clarify/1"
OPENED = CheckpointOpened(
    questions=Questions(
        text="Before they begin, the agents ask:",
        questions=[
            Question(id="ada-1", agent_id="ada", text="How many users?"),
            Question(id="bo-1", agent_id="bo", text="Which budget?"),
            Question(id="bo-2", agent_id="bo", text="Until when?"),
        ],
    )
)
OPENED.until.FromJsonString("2026-01-02T00:00:00Z")
XTERM = {"TERM": "xterm-256color"}


def open_questions(debate: ScriptedDebate) -> None:
    debate.state.status = DEBATE_STATUS_WAITING
    debate.state.waiting.checkpoint = KEY
    debate.state.waiting.questions.CopyFrom(OPENED.questions)
    named = (("ada", "Ada Lovelace"), ("bo", "Bo"))
    del debate.state.spec.agents[:]
    debate.state.spec.agents.extend(Participant(agent=Agent(id=each, name=name)) for each, name in named)
    debate.add(OPENED, key=KEY)


def close(debate: ScriptedDebate, intervention: Intervention) -> None:
    debate.state.ClearField("waiting")
    debate.add(CheckpointClosed(intervention=intervention), key=KEY)
    debate.conclude()


@pytest.fixture
def orchestrator() -> Iterator[ScriptedOrchestrator]:
    """An orchestrator whose debates ask first, and conclude once they are answered."""

    def hear_intervention(request: object) -> None:
        intervention = request.intervention  # type: ignore[attr-defined]
        if intervention.WhichOneof("act") in {"answer", "continue_debate"}:
            assert serving.debate is not None
            close(serving.debate, intervention)

    with scripted(ScriptedOrchestrator(script=open_questions)) as serving:
        serving.intervention_refusal = hear_intervention
        yield serving


def start_debate(
    orchestrator: ScriptedOrchestrator, folder: Path, *more: str, term: str = "xterm"
) -> Terminal:
    arguments = ["debate", "Which?", "--clarify", "--server", orchestrator.address, *more]
    return Terminal(arguments, folder, {"TERM": term})


def get_intervention(orchestrator: ScriptedOrchestrator) -> Intervention:
    (request,) = orchestrator.interventions
    return request.intervention


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_questions_are_put_one_at_a_time_and_answered_line_by_line(
    term: str, orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    with start_debate(orchestrator, folder, term=term) as terminal:
        terminal.wait_until_written("1/3 Ada Lovelace: How many users?\n> ")
        assert "Which budget?" not in terminal.written
        terminal.type(b"ten\n")
        terminal.wait_until_written("2/3 Bo: Which budget?\n> ")
        terminal.type(b"\n")
        terminal.wait_until_written("3/3 Bo: Until when?\n> ")
        terminal.type("Überm. Mai\n".encode())
        code, shown = terminal.end(), terminal.written
    assert code == 0, shown
    assert "Use a monolith." in shown
    (created,) = orchestrator.created
    assert created.spec.HasField("clarifications")
    answer = Answer()
    answer.answers.add(question_id="ada-1", text="ten")
    answer.answers.add(question_id="bo-2", text="Überm. Mai")
    assert get_intervention(orchestrator) == Intervention(answer=answer, checkpoint=KEY)


def test_ctrl_d_ends_the_questions_and_what_was_said_counts(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    with start_debate(orchestrator, folder) as terminal:
        terminal.wait_until_written("users?\n> ")
        terminal.type(b"ten\n")
        terminal.wait_until_written("budget?\n> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    answer = get_intervention(orchestrator).answer
    assert ([each.text for each in answer.answers], answer.enough) == (["ten"], True)


def test_who_skips_all_lets_them_begin(orchestrator: ScriptedOrchestrator, folder: Path) -> None:
    with start_debate(orchestrator, folder) as terminal:
        for number in (1, 2, 3):
            terminal.wait_until_written(f"{number}/3 ")
            terminal.wait_until_written("> ", number)
            terminal.type(b"\n")
        assert terminal.end() == 0
    assert get_intervention(orchestrator).WhichOneof("act") == "continue_debate"


def test_lines_that_are_pasted_together_are_one_answer(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    with start_debate(orchestrator, folder) as terminal:
        terminal.wait_until_written("users?\n> ")
        terminal.type(b"ten now\na hundred later\n")
        terminal.wait_until_written("budget?\n> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert get_intervention(orchestrator).answer.answers[0].text == "ten now\na hundred later"


def test_ctrl_c_leaves_the_debate_waiting_and_says_how_to_go_on(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    with start_debate(orchestrator, folder) as terminal:
        terminal.wait_until_written("users?\n> ")
        terminal.type(CTRL_C)
        code, shown = terminal.end(), terminal.written
    assert code == 130, shown
    assert orchestrator.interventions == [], "it is not paused: somebody else may answer"
    hint = f"parley answer {DEBATE_ID} TEXT --checkpoint {KEY} --server {orchestrator.address} (or continue)"
    assert f"Not answered; the debate waits. Answer with:\n  {hint}" in shown


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_whoever_is_asked_is_told_when_it_was_answered_elsewhere(
    term: str, orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    with start_debate(orchestrator, folder, term=term) as terminal:
        terminal.wait_until_written("users?\n> ")
        assert orchestrator.debate is not None
        close(orchestrator.debate, Intervention(answer=Answer(text="Ten.")))
        code, shown = terminal.end(), terminal.written
    assert code == 0, shown
    told = shown.partition("users?\n> ")[2]
    assert told.startswith("\nNo answer is needed any more: the checkpoint was answered elsewhere.\n")
    assert "a person said answer: Ten." in told
    assert orchestrator.interventions == []


def test_where_nobody_answers_in_time_the_command_ends_and_says_how_to_go_on(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    with start_debate(orchestrator, folder) as terminal:
        terminal.wait_until_written("users?\n> ")
        assert orchestrator.debate is not None
        orchestrator.debate.add(CheckpointExpired(), key=KEY)
        orchestrator.debate.add(Paused())
        code, shown = terminal.end(), terminal.written
    assert code == 130, shown
    assert "No answer is needed any more: the time to answer is over." in shown
    assert "no answer came in time" in shown
    assert f"Paused. Go on with:\n  parley debate --resume {DEBATE_ID}" in shown
    assert orchestrator.interventions == []


def test_a_debate_taken_up_again_at_its_questions_asks_them(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    orchestrator.debate = ScriptedDebate(DebateSpec(question="Which?"))
    open_questions(orchestrator.debate)
    orchestrator.after_resume = lambda debate: None
    orchestrator.debate.add(Paused())
    orchestrator.after_resume = open_questions
    with Terminal(
        ["debate", "--resume", DEBATE_ID, "--server", orchestrator.address], folder, XTERM
    ) as terminal:
        terminal.wait_until_written("users?\n> ")
        terminal.type(b"ten\n")
        terminal.wait_until_written("budget?\n> ")
        terminal.type(CTRL_D)
        code, shown = terminal.end(), terminal.written
    assert code == 0, shown
    assert orchestrator.interventions[-1].intervention.answer.answers[0].text == "ten"


@pytest.mark.parametrize("after", [[], ["--after", "1"]], ids=["from its begin", "from its end"])
def test_whoever_watches_on_a_terminal_is_asked_too(
    after: list[str], orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    orchestrator.debate = ScriptedDebate(DebateSpec(question="Which?"))
    open_questions(orchestrator.debate)
    with Terminal(["watch", DEBATE_ID, "--server", orchestrator.address, *after], folder, XTERM) as terminal:
        terminal.wait_until_written("1/3 Ada Lovelace: How many users?\n> ")
        terminal.type(b"ten\n")
        terminal.wait_until_written("budget?\n> ")
        terminal.type(CTRL_D)
        code, shown = terminal.end(), terminal.written
    assert code == 0, shown
    assert get_intervention(orchestrator).answer.answers[0].text == "ten"


def test_the_questions_are_answered_from_another_terminal(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def waits() -> None:
        orchestrator.debate = ScriptedDebate(DebateSpec(question="Which?"))
        orchestrator.interventions.clear()
        open_questions(orchestrator.debate)

    at = ["--server", orchestrator.address]
    waits()
    with Terminal(["answer", DEBATE_ID, *at], folder, XTERM) as terminal:
        terminal.wait_until_written("users?\n> ")
        terminal.type(b"ten\n")
        terminal.wait_until_written("budget?\n> ")
        terminal.type(CTRL_D)
        code, shown = terminal.end(), terminal.written
    assert code == 0, shown
    assert ": answer; the debate goes on from the checkpoint" in shown
    waits()
    arguments = ["answer", DEBATE_ID, "--to", "bo-1", "None.", "--to", "1", "Ten.", "--enough", *at]
    assert run(arguments) == 0
    answer = get_intervention(orchestrator).answer
    assert {each.question_id: each.text for each in answer.answers} == {"bo-1": "None.", "ada-1": "Ten."}
    assert answer.enough
    waits()
    capsys.readouterr()
    assert run(["answer", DEBATE_ID, "--to", "4", "x", *at]) == 2
    assert capsys.readouterr().err == (
        "parley: --to: there is no question '4'; questions: 1 (ada-1), 2 (bo-1), 3 (bo-2)\n"
    )
    assert run(["answer", DEBATE_ID, "--to", "1", "x", "--checkpoint", "clarify/2", *at]) == 1
    assert "does not wait at checkpoint clarify/2; nothing was recorded" in capsys.readouterr().err
    assert run(["answer", DEBATE_ID, *at]) == 2
    assert capsys.readouterr().err == (
        "parley: give TEXT, or --to QUESTION TEXT; there is no terminal to ask on\n"
    )


WITHOUT_STDIN = "the agents ask on a terminal, and stdin is none"


@pytest.mark.parametrize(
    ("file", "options", "line"),
    [
        ("", ["--clarify"], f"--clarify: {WITHOUT_STDIN}; leave it out to begin without asking"),
        (
            "debate:\n  interactiveClarifications: true\n",
            [],
            f"parley.yaml:2: debate.interactiveClarifications: {WITHOUT_STDIN}; --no-clarify begins without asking",
        ),
        (
            "",
            ["--clarify", "--resume", DEBATE_ID],
            "--resume continues a debate with its own settings; leave out --clarify",
        ),
    ],
)
def test_without_a_terminal_it_is_an_error_before_the_first_call(
    file: str,
    options: list[str],
    line: str,
    orchestrator: ScriptedOrchestrator,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "parley.yaml").write_text(file)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    question = [] if "--resume" in options else ["Which?"]
    assert run(["debate", *question, *options, "--server", orchestrator.address]) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("", f"parley: {line}")
    assert orchestrator.created == []


def test_what_the_file_says_of_clarifications_travels_unless_the_option_says_otherwise(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    (folder / "ask.md").write_text("Ask about the law.")
    (folder / "parley.yaml").write_text(
        "agents:\n- {role: security, clarification_prompt_path: ask.md}\n"
        "debate:\n  interactive_clarifications: true\n  clarifications_max_per_agent: 2\n  clarificationsMaxTimes: 1\n"
    )
    orchestrator.script = lambda debate: debate.conclude()
    at = ["--server", orchestrator.address]
    assert on_terminal(["debate", "Which?", *at], folder, XTERM)[0] == 0
    assert run(["debate", "Which?", "--no-clarify", *at]) == 0
    with_file, without = (each.spec for each in orchestrator.created)
    assert (with_file.clarifications.max_per_agent, with_file.clarifications.max_times) == (2, 1)
    prompt = with_file.agents[0].agent.clarification_prompt
    assert (prompt.text, prompt.source) == ("Ask about the law.", str((folder / "ask.md").resolve()))
    assert not without.HasField("clarifications")


def test_what_was_typed_before_it_was_asked_is_no_answer(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    begins = threading.Event()

    def open_later(debate: ScriptedDebate) -> None:
        begins.wait(30)
        open_questions(debate)

    orchestrator.script = open_later
    with start_debate(orchestrator, folder, term="dumb") as terminal:
        terminal.type(b"\n\nis anybody there?\n")
        terminal.wait_until_written("is anybody there?")
        begins.set()
        terminal.wait_until_written("users?\n> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert get_intervention(orchestrator).WhichOneof("act") == "continue_debate"


@pytest.mark.parametrize(("count", "words"), [(1, "a question"), (2, "2 questions")])
def test_where_the_moderator_asks_it_is_named_as_the_one_who_does(
    count: int, words: str, orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    asked = [Question(id=f"q-{number}", agent_id="judge", text=f"Which {number}?") for number in range(count)]

    def open_moderators(debate: ScriptedDebate) -> None:
        debate.state.status = DEBATE_STATUS_WAITING
        debate.state.spec.judge.agent.CopyFrom(Agent(id="judge", name="Judge"))
        debate.state.waiting.checkpoint = KEY
        debate.state.waiting.questions.questions.extend(asked)
        opened = CheckpointOpened(questions=Questions(questions=asked), until=OPENED.until)
        debate.add(opened, key=KEY)

    orchestrator.script = open_moderators
    with start_debate(orchestrator, folder) as terminal:
        terminal.wait_until_written(f"1/{count} Which 0?\n> ")
        terminal.type(CTRL_D)
        code, shown = terminal.end(), terminal.written
    assert code == 0, shown
    asks = (
        f"The moderator has {words}. An empty line skips one, Ctrl-D ends the questions: the debate begins."
    )
    assert asks in " ".join(shown.split())
    assert "The agents have" not in shown
