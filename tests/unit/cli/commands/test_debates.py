"""The commands that read debates."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from parley.cli.__main__ import run
from parley.cli.terminal.tables import debate_rows
from parley.client import DebateSummary
from parley.v1.orchestrator_pb2 import ListDebatesResponse
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedOrchestrator, scripted
from tests.unit.cli.commands.scripts import ANSWER, OTHER_ID


def test_list_show_watch_and_report(server: list[str], capsys: pytest.CaptureFixture[str]) -> None:
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
    assert run(["watch", DEBATE_ID, "--after", "2", "--quiet", *server]) == 0
    events = [
        "3 round 1/1",
        "4 round 1 proposal: 1 to come",
        "5 ada proposes",
        "6 ada proposal: done (1.2 s, 120 tokens)",
        "7 round 1 proposal: done",
        "8 completed",
        "9 closed",
    ]
    assert capsys.readouterr().out.splitlines() == events
    assert run(["watch", DEBATE_ID, "--after", "2", *server]) == 0
    contributed = ["    Use one.", "    Because.", ""]
    assert capsys.readouterr().out.splitlines() == [*events[:4], *contributed, *events[4:]]
    assert run(["report", DEBATE_ID, *server]) == 0
    assert capsys.readouterr().out == "# Report\n"


def test_a_debate_is_found_again_by_its_labels(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", "--label", "team=payments", "--label", "ticket=A=1", *server]) == 0
    capsys.readouterr()
    for command in ("list", "debate --list"):
        assert run([*command.split(), "--label", "ticket=A=1", *server]) == 0
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["ID", DEBATE_ID]
        assert run([*command.split(), "--label", "ticket=A=1", "--label", "team=search", *server]) == 0
        said = capsys.readouterr()
        assert [line.split()[0] for line in said.out.splitlines()] == ["ID"]
        assert said.err == "No such debate is kept.\n"
    assert run(["show", DEBATE_ID, *server]) == 0
    assert "Labels     team=payments, ticket=A=1\n" in capsys.readouterr().out
    for wrong in ("team", "=payments"):
        assert run(["list", "--label", wrong, *server]) == 2
        assert capsys.readouterr().err == (
            f"parley: --label: must be NAME=VALUE, such as team=payments, not {wrong!r}\n"
        )


class Empty(ScriptedOrchestrator):
    """Has no debates."""

    def ListDebates(self, request: Any, context: Any) -> ListDebatesResponse:  # noqa: N802
        return ListDebatesResponse()


def test_where_no_debate_is_kept_yet_the_list_says_so_below_its_heading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with scripted(Empty()) as orchestrator:
        assert run(["list", "--server", orchestrator.address]) == 0
        said = capsys.readouterr()
        assert said.out.split() == ["ID", "STATUS", "CREATED", "QUESTION"]
        assert said.err == "No debate is kept yet.\n"
        assert run(["list", "--json", "--server", orchestrator.address]) == 0
        said = capsys.readouterr()
        assert (json.loads(said.out), said.err) == ([], "")


def test_a_question_that_goes_on_behind_its_summary_ends_in_dots() -> None:
    long, short = (DebateSummary(id="deb-1", question="a" * length) for length in (200, 199))
    _, cut, whole = debate_rows([long, short], interrupted=False, narrow=False)
    assert cut[-1] == f"{'a' * 198}…"
    assert whole[-1] == "a" * 199


def test_past_debates_are_shown_unless_the_command_line_says_otherwise(
    orchestrator: ScriptedOrchestrator,
) -> None:
    Path("parley.yaml").write_text("debate:\n  history_limit: 3\n")
    ask = ["debate", "Which?", "-c", "parley.yaml", "--server", orchestrator.address]
    assert run(ask) == 0
    assert orchestrator.created[-1].spec.history_limit == 3
    assert run([*ask, "--no-history"]) == 0
    assert orchestrator.created[-1].spec.HasField("history_limit")
    assert orchestrator.created[-1].spec.history_limit == 0


def test_what_is_read_for_a_debate_is_what_the_options_say_before_the_file(
    orchestrator: ScriptedOrchestrator,
) -> None:
    Path("parley.yaml").write_text("debate:\n  research: false\n  research_pages: ['https://a.example/']\n")
    ask = ["debate", "Which?", "--server", orchestrator.address]
    given = ["--page", "https://b.example/", "--page", "https://c.example/"]

    def ask_for(*options: str) -> tuple[bool | None, list[str]]:
        assert run([*ask, *options]) == 0
        spec = orchestrator.created[-1].spec
        return (spec.research if spec.HasField("research") else None, list(spec.research_pages))

    assert ask_for("-c", "parley.yaml") == (False, ["https://a.example/"])
    assert ask_for("-c", "parley.yaml", "--research") == (True, ["https://a.example/"])
    assert ask_for("-c", "parley.yaml", "--no-research") == (False, [])
    pages = ["https://a.example/", "https://b.example/", "https://c.example/"]
    assert ask_for("-c", "parley.yaml", *given) == (None, pages)
    Path("parley.yaml").unlink()
    assert ask_for() == (None, [])
    assert ask_for(*given, "--research") == (True, pages[1:])


def test_a_page_for_a_debate_that_reads_none_is_refused(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--no-research", "--page", "https://a.example/", "--server", orchestrator.address]
    assert run(["debate", "Which?", *given]) == 2
    assert capsys.readouterr().err == (
        "parley: --no-research reads no page; leave out --page or --no-research\n"
    )


@pytest.mark.parametrize("name", ["patterns", "knowledge"])
def test_issues_and_evidence_of_past_debates_are_shown_unless_the_command_line_says_otherwise(
    orchestrator: ScriptedOrchestrator, name: Literal["patterns", "knowledge"]
) -> None:
    Path("parley.yaml").write_text(f"debate:\n  {name}: true\n")
    ask = ["debate", "Which?", "-c", "parley.yaml", "--server", orchestrator.address]
    assert run(ask) == 0
    assert getattr(orchestrator.created[-1].spec, name)
    assert run([*ask, f"--no-{name}"]) == 0
    assert orchestrator.created[-1].spec.HasField(name)
    assert not getattr(orchestrator.created[-1].spec, name)


def test_facts_go_with_the_debate_and_an_option_counts_before_the_file(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("parley.yaml").write_text("debate:\n  environment: {team: Search, date: 2026-11-25}\n")
    server = ["--server", orchestrator.address]
    given = ["--fact", "team=Payments", "--fact", "load=a=b"]
    assert run(["debate", "Which?", *given, "-c", "parley.yaml", *server]) == 0
    capsys.readouterr()
    assert run(["show", DEBATE_ID, *server]) == 0
    assert "Facts      date: 2026-11-25; load: a=b; team: Payments\n" in capsys.readouterr().out
    assert run(["debate", "Which?", "--fact", "team", *server]) == 2
    assert (
        capsys.readouterr().err == "parley: --fact: must be NAME=VALUE, such as team=Payments, not 'team'\n"
    )


def test_lists_and_events_are_json_too(server: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "--limit", "3", "--json", *server]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(each["id"], each["status"]) for each in listed] == [
        ("deb-0-0", "completed"),
        ("deb-0-1", "completed"),
        ("deb-1-0", "completed"),
    ]
    assert run(["watch", DEBATE_ID, "--after", "2", "--json", *server]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["sequence"] for each in events] == [3, 4, 5, 6, 7, 8, 9]
    assert events[0]["round_started"] == {"number": 1, "total": 1}
    assert isinstance(events[0]["hash"], str)


@pytest.mark.parametrize("command", ["show", "watch", "report"])
def test_a_debate_that_is_not_there_is_one_line(
    command: str, orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, OTHER_ID, "--server", orchestrator.address]) == 1
    assert capsys.readouterr().err == f"parley: debate '{OTHER_ID}' not found\n"


def test_a_report_is_written_where_it_was_told(
    server: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", DEBATE_ID, "-o", "new/report.txt", *server]) == 0
    assert (folder / "new/report.txt").read_text() == "# Report\n"
    assert capsys.readouterr() == ("", "Report: new/report.txt\n")
    assert run(["report", DEBATE_ID, "-o", "new", *server]) == 2
    assert capsys.readouterr().err == "parley: --output new: is a folder; name a file in it\n"


def test_a_report_is_one_html_file_too(
    orchestrator: ScriptedOrchestrator, server: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.report = "# Which?\n\n<script>alert(1)</script>\n"
    assert run(["report", DEBATE_ID, "--html", "-o", "report.html", *server]) == 0
    page = (folder / "report.html").read_text()
    assert "<title>Which?</title>" in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    capsys.readouterr()
    assert run(["report", DEBATE_ID, "--html", *server]) == 0
    assert capsys.readouterr().out == page


@pytest.mark.parametrize("written", [DEBATE_ID, "deb-2026", "20260102-030405-a", DEBATE_ID[4:]])
def test_the_beginning_of_an_id_is_enough(
    written: str, orchestrator: ScriptedOrchestrator, server: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["show"], ["watch"], ["report"], ["debate", "--resume"], ["pause"]):
        assert run([*command, written, *server]) == 0, capsys.readouterr().err
    assert orchestrator.interventions[-1].debate_id == DEBATE_ID


def test_a_beginning_that_is_not_one_debates_alone_is_refused(
    orchestrator: ScriptedOrchestrator, server: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.older_ids = (OTHER_ID,)
    for command in (["show"], ["debate", "--resume"], ["mute"]):
        assert run([*command, "2026", *(["ada"] if command == ["mute"] else []), *server]) == 2
        assert capsys.readouterr().err.splitlines()[-1] == (
            f"parley: ids of 2 debates begin with deb-2026: {DEBATE_ID}, {OTHER_ID}; write more of it"
        )
    assert run(["show", "2025", *server]) == 1
    assert capsys.readouterr().err == (
        "parley: no debate's id begins with deb-2025; parley list shows them\n"
    )
    assert not orchestrator.interventions
