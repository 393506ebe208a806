"""Moderated debates by the command: a person at the checkpoints, in a pipe, and the decision in its file."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.v1.debate_pb2 import Approve, EndRounds, Guide, Intervention
from tests.support.command import Command
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedOrchestrator
from tests.support.terminal import CTRL_C, CTRL_D, Terminal
from tests.unit.cli.commands.moderated_script import APPROVAL, DOCUMENT, FILE_NAME, Moderator, direction_key

CHOICES = "[C]ontinue  [G]uide  [E]nd early\n> "
DECIDES = "[A]pprove  [R]efuse\n> "
GUIDANCE = "Your guidance:\n> "
TERMS = pytest.mark.parametrize("term", ["xterm", "dumb"])


@pytest.fixture
def moderator(orchestrator: ScriptedOrchestrator) -> Moderator:
    return Moderator(orchestrator)


@pytest.fixture
def at(orchestrator: ScriptedOrchestrator) -> list[str]:
    return ["--server", orchestrator.address]


def start_command(folder: Path, *arguments: str, term: str = "xterm") -> Terminal:
    return Terminal(["debate", *arguments], folder, {"TERM": term})


def start_debate(folder: Path, at: list[str], term: str = "xterm") -> Terminal:
    return start_command(folder, "Redis?", "--format", "moderated", *at, term=term)


@TERMS
def test_a_person_guides_leaves_comes_back_elsewhere_ends_early_and_approves(
    term: str, moderator: Moderator, at: list[str], folder: Path
) -> None:
    with start_debate(folder, at, term) as terminal:
        terminal.wait_until_written(CHOICES)
        assert "Round 1 is complete" in terminal.written
        assert "They differ on" in terminal.written
        assert "tokens" not in terminal.text, "no picture is left at the checkpoint"
        terminal.type(b"g\n")
        terminal.wait_until_written(GUIDANCE)
        terminal.type("Mind our team: Größe 3\n".encode())
        terminal.wait_until_written("a person said guide: Mind our team: Größe 3")
        terminal.wait_until_written(CHOICES, 2)
        terminal.type(CTRL_C)
        code, shown = terminal.end(), terminal.written
        terminal.assert_sane()
    assert code == 130, shown
    key = direction_key(2)
    hint = f"parley continue {DEBATE_ID} --checkpoint {key} {' '.join(at)} (or guide, end)"
    resume = ["debate", "--resume", DEBATE_ID, *at]
    assert f"Not answered; the debate waits. Answer with:\n  {hint}" in shown
    assert f"Or go on with:\n  parley {' '.join(resume)}" in shown
    with start_command(folder, *resume[1:], term=term) as terminal:
        terminal.wait_until_written(CHOICES)
        assert "Round 2 is complete" in terminal.written
        assert "Round 1 is complete" not in terminal.written
        terminal.type(b"End\n")
        terminal.wait_until_written(DECIDES)
        assert "Not approved: again." in terminal.written
        terminal.type(b"a\n")
        code, shown = terminal.end(), terminal.written
        terminal.assert_sane()
    assert code == 0, shown
    assert moderator.said == [
        Intervention(guide=Guide(text="Mind our team: Größe 3"), checkpoint=direction_key(1)),
        Intervention(end=EndRounds(), checkpoint=key),
        Intervention(approve=Approve(approved=True), checkpoint=APPROVAL),
    ]
    assert f"Decision: docs/decisions/{FILE_NAME}\n" in shown
    assert "Use Redis." in shown.rpartition("Decision: ")[2]
    assert (folder / "docs" / "decisions" / FILE_NAME).read_text() == DOCUMENT


@pytest.mark.parametrize(("by_the_user", "times"), [(True, 1), (False, 2)])
def test_a_decision_that_was_approved_here_is_not_printed_again(
    by_the_user: bool, times: int, moderator: Moderator, at: list[str], folder: Path
) -> None:
    moderator.recommendation = "Use **Redis**."
    with start_debate(folder, at, "dumb") as terminal:
        terminal.wait_until_written(CHOICES)
        terminal.type(b"e\n")
        terminal.wait_until_written(DECIDES)
        if by_the_user:
            terminal.type(b"a\n")
        else:
            moderator.close(Intervention(approve=Approve(approved=True)))
        assert terminal.end() == 0
    assert terminal.written.count(moderator.recommendation) == times
    assert "0 calls" in terminal.written.rpartition("Decision: ")[2], "the summary line comes last"


def test_what_is_no_choice_is_asked_again_and_no_guidance_goes_back(
    moderator: Moderator, at: list[str], folder: Path
) -> None:
    with start_debate(folder, at) as terminal:
        terminal.wait_until_written(CHOICES)
        terminal.type(b"guide them\n")
        terminal.wait_until_written(f"Type a letter: {CHOICES}")
        terminal.type(b"G\n")
        terminal.wait_until_written(GUIDANCE)
        terminal.type(b"\n")
        terminal.wait_until_written(f"No guidance was given.\n{CHOICES}")
        terminal.type(b"e\n")
        terminal.wait_until_written(DECIDES)
        terminal.type(b"r\n")
        terminal.wait_until_written("Why, or what should change?")
        terminal.type(CTRL_D)
        terminal.wait_until_written(DECIDES, 2)
        terminal.type(b"no\n")
        terminal.wait_until_written("Why, or what should change?", 2)
        terminal.type(b"Say what it costs.\n")
        code, shown = terminal.end(), terminal.written
    assert code == 0, shown
    assert moderator.said[1:] == [
        Intervention(approve=Approve(approved=False, text="Say what it costs."), checkpoint=APPROVAL)
    ]


def test_ctrl_d_leaves_as_ctrl_c_does(moderator: Moderator, at: list[str], folder: Path) -> None:
    with start_debate(folder, at) as terminal:
        terminal.wait_until_written(CHOICES)
        terminal.type(CTRL_D)
        code, shown = terminal.end(), terminal.written
        terminal.assert_sane()
    assert code == 130, shown
    assert "Not answered; the debate waits." in shown
    assert moderator.said == []


@TERMS
def test_another_client_may_be_faster_and_the_terminal_goes_on(
    term: str, moderator: Moderator, at: list[str], folder: Path
) -> None:
    with start_debate(folder, at, term) as terminal:
        terminal.wait_until_written(CHOICES)
        terminal.type(b"g\n")
        terminal.wait_until_written(GUIDANCE)
        moderator.close(Intervention(guide=Guide(text="Mind the cost.")))
        terminal.wait_until_written(
            "> \nNo answer is needed any more: the checkpoint was answered elsewhere.\n"
        )
        terminal.wait_until_written("a person said guide: Mind the cost.")
        terminal.wait_until_written(CHOICES, 2)
        moderator.close(Intervention(end=EndRounds()))
        terminal.wait_until_written("a person said end")
        terminal.wait_until_written(DECIDES)
        moderator.close(Intervention(approve=Approve(approved=True)))
        code, shown = terminal.end(), terminal.written
        terminal.assert_sane()
    assert code == 0, shown
    assert moderator.said == []


def test_where_nobody_answers_in_time_it_pauses_and_the_command_ends(
    moderator: Moderator, at: list[str], folder: Path
) -> None:
    with start_debate(folder, at) as terminal:
        terminal.wait_until_written(CHOICES)
        moderator.expire()
        code, shown = terminal.end(), terminal.written
    assert code == 130, shown
    assert "no answer came in time" in shown
    assert f"Paused. Go on with:\n  parley debate --resume {DEBATE_ID}" in shown


def test_who_comes_back_after_days_has_time_to_answer(
    moderator: Moderator, orchestrator: ScriptedOrchestrator, at: list[str], folder: Path
) -> None:
    moderator.seconds = -100_000
    with start_debate(folder, at) as terminal:
        terminal.wait_until_written(CHOICES)
        terminal.type(CTRL_C)
        assert terminal.end() == 130
    with start_command(folder, "--resume", DEBATE_ID, *at) as terminal:
        terminal.wait_until_written(CHOICES)
        moderator.seconds = 1800
        moderator.expire()  # as whoever takes it up finds it
        terminal.wait_until_written(CHOICES, 2)
        moderator.expire()
        code, shown = terminal.end(), terminal.written
    assert code == 130, shown
    assert shown.count("no answer came in time\n") == 2
    resumed = [each for each in orchestrator.interventions if each.intervention.HasField("resume")]
    assert len(resumed) == 2, "the first was refused, since it waited"


def test_whoever_watches_on_a_terminal_is_asked_too(
    moderator: Moderator, at: list[str], folder: Path
) -> None:
    with start_debate(folder, at) as terminal:
        terminal.wait_until_written(CHOICES)
        with Terminal(["watch", DEBATE_ID, *at], folder, {"TERM": "xterm"}) as other:
            other.wait_until_written(CHOICES)
            other.type(b"e\n")
            other.wait_until_written(DECIDES)
            other.type(b"yes\n")
            assert other.end() == 0, other.written
        code, shown = terminal.end(), terminal.written
    assert code == 0, shown
    assert [each.WhichOneof("act") for each in moderator.said] == ["end", "approve"]


def test_a_pipe_goes_without_checkpoints_and_says_so(
    moderator: Moderator, orchestrator: ScriptedOrchestrator, at: list[str], folder: Path
) -> None:
    ended = Command(["debate", "Redis?", "--format", "moderated", *at], folder).end()
    assert (ended.code, ended.out) == (0, "Use Redis.\n")
    assert any("the debate runs without checkpoints" in line for line in ended.err)
    assert orchestrator.created[0].spec.moderated.checkpoints is False
    told = Command(["debate", "Redis?", "--format", "moderated", "--no-checkpoints", *at], folder).end()
    assert not any("without checkpoints" in line for line in told.err), "it was asked for"


@pytest.mark.parametrize("asked_by", ["option", "file"])
def test_a_pipe_that_asks_for_checkpoints_says_at_each_how_to_answer(
    asked_by: str, moderator: Moderator, at: list[str], folder: Path
) -> None:
    asks = ["--checkpoints"] if asked_by == "option" else []
    if not asks:
        (folder / "parley.yaml").write_text("debate: {format: moderated, checkpoints: true}\n")
    running = Command(["debate", "Redis?", "--format", "moderated", *asks, *at], folder)
    running.wait_for(f"parley continue {DEBATE_ID} --checkpoint {direction_key(1)}")
    assert run(["end", DEBATE_ID, *at]) == 0
    running.wait_for(f"parley approve {DEBATE_ID} --checkpoint {APPROVAL}")
    assert run(["approve", DEBATE_ID, *at]) == 0
    ended = running.end()
    assert (ended.code, ended.out) == (0, "Use Redis.\n")
    assert not any("without checkpoints" in line for line in ended.err)


def test_a_pipe_does_not_wait_for_a_debate_that_was_paused_since_nobody_came(
    moderator: Moderator, at: list[str], folder: Path
) -> None:
    running = Command(["debate", "Redis?", "--format", "moderated", "--checkpoints", *at], folder)
    running.wait_for("Waiting for a person; answer with: ")
    moderator.expire()
    ended = running.end()
    going_on = f"parley debate --resume {DEBATE_ID} --server {at[1]}"
    assert (ended.code, ended.err[-1]) == (130, f"Paused. Go on with: {going_on}")


def test_a_decision_never_overwrites_a_file_and_is_not_written_twice(
    moderator: Moderator, orchestrator: ScriptedOrchestrator, at: list[str], folder: Path
) -> None:
    decisions = folder / "docs" / "decisions"
    decisions.mkdir(parents=True)
    (decisions / FILE_NAME).write_text("somebody's own")
    again = ["debate", "--resume", DEBATE_ID, *at]
    assert run(["debate", "Redis?", "--format", "moderated", *at]) == 0
    assert run(again) == 0
    assert orchestrator.decision is not None
    orchestrator.decision.markdown = "# Decision: Another\n"
    assert run(again) == 0
    stem = FILE_NAME.removesuffix(".md")
    assert {each.name: each.read_text() for each in decisions.iterdir()} == {
        FILE_NAME: "somebody's own",
        f"{stem}-2.md": DOCUMENT,
        f"{stem}-3.md": "# Decision: Another\n",
    }


def put_file_in_the_way(_: ScriptedOrchestrator, folder: Path) -> str:
    (folder / "docs").mkdir()
    (folder / "docs" / "decisions").write_text("")
    return f"docs/decisions/{FILE_NAME}: cannot be written: "


def lead_elsewhere(orchestrator: ScriptedOrchestrator, _: Path) -> str:
    assert orchestrator.decision is not None
    orchestrator.decision.file_name = "../../.bashrc"
    return "'../../.bashrc' is no file name for it"


def remove_decision(orchestrator: ScriptedOrchestrator, _: Path) -> str:
    orchestrator.decision = None
    return "it is of another format"


@pytest.mark.parametrize("trouble", [put_file_in_the_way, lead_elsewhere, remove_decision])
def test_a_decision_that_cannot_be_written_is_a_warning_and_the_answer_is_printed(
    trouble: Callable[[ScriptedOrchestrator, Path], str],
    moderator: Moderator,
    orchestrator: ScriptedOrchestrator,
    at: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    why = trouble(orchestrator, folder)
    assert run(["debate", "Redis?", "--format", "moderated", *at]) == 0
    out, err = capsys.readouterr()
    assert out == "Use Redis.\n"
    assert f"warning: the decision was not written: {why}" in err
    assert not (folder / ".bashrc").exists()


def test_options_travel_and_count_before_the_file(
    moderator: Moderator, orchestrator: ScriptedOrchestrator, at: list[str], folder: Path
) -> None:
    (folder / "parley.yaml").write_text(
        "debate: {format: moderated, max_rounds: 7, default_perspectives: 4, token_budget_per_round: unlimited}\n"
    )
    for options in (
        [],
        ["--perspectives", "3", "--max-rounds", "2", "--no-checkpoints"],
        ["--rounds", "4", "--checkpoints"],
    ):
        orchestrator.script = lambda debate: debate.conclude()
        assert run(["debate", "Redis?", *options, *at]) == 0
    of_file, of_options, of_rounds = (each.spec.moderated for each in orchestrator.created)
    assert (of_file.perspectives, of_file.max_rounds, of_file.checkpoints) == (4, 7, False)
    assert of_file.token_budget_per_round == 0
    assert of_file.HasField("token_budget_per_round")
    assert (of_options.perspectives, of_options.max_rounds, of_options.checkpoints) == (3, 2, False)
    assert (of_rounds.perspectives, of_rounds.max_rounds, of_rounds.checkpoints) == (4, 4, True)
    assert {each.spec.format for each in orchestrator.created} == {"moderated"}


def test_the_list_is_that_of_parley_list_and_of_one_format_where_that_is_named(
    orchestrator: ScriptedOrchestrator, at: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", *at]) == 0
    listed = capsys.readouterr().out
    assert run(["debate", "--list", *at]) == 0
    assert capsys.readouterr().out == listed
    assert run(["debate", "--list", "--format", "moderated", *at]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert orchestrator.created == []


def test_on_a_terminal_a_debate_of_another_format_has_no_checkpoints_to_switch_off(
    orchestrator: ScriptedOrchestrator, at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert run(["debate", "Redis?", *at]) == 0
    assert orchestrator.created[0].spec.WhichOneof("format_settings") is None
