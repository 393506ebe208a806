"""`parley debate` in this process, against a scripted orchestrator: outputs, errors and exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.v1 import orchestrator_pb2 as pb
from parley.v1.arena_pb2 import (
    DEBATE_PROTOCOL_SOCRATIC,
    TOPOLOGY_KIND_RING,
    ArenaSettings,
    StoppingSettings,
    Topology,
    TricksterSettings,
)
from parley.v1.debate_pb2 import DebateEstimate, DebateSpec
from parley.v1.event_pb2 import Closed, RoundAssessed, RoundStarted, Warned
from parley.v1.voting_pb2 import VOTING_METHOD_UNANIMOUS, VotingSettings
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator
from tests.unit.cli.commands.scripts import ANSWER, ROLES, saved

REMARK = "m · 1 call · 120 tokens · 0.0 s"
NO_FILE = "No parley.yaml or debate-config.json here: the default team debates."


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
        "Using parley.yaml of this folder.",
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
        "Using parley.yaml of this folder.",
        f"parley: parley.yaml:2: agents[0].role: unknown role 'wizard'; {ROLES}",
        f"parley: parley.yaml:3: agents[1].role: role 'judge' judges and cannot debate; {ROLES}",
    ]


def test_the_answer_is_printed_before_what_follows_it_is_done(
    orchestrator: ScriptedOrchestrator,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(*_: object) -> None:
        assert orchestrator.debate is not None
        orchestrator.debate.add(Warned(message="it was not remembered"))
        orchestrator.debate.close(Closed())

    orchestrator.script = lambda debate: debate.conclude(closes=False)
    monkeypatch.setattr("parley.cli.commands.follow._CLOSING_SECONDS", 1.0)
    monkeypatch.setattr("parley.cli.commands.debate.write_answer", shown)
    assert run(["debate", "Which?", "--server", orchestrator.address, "--report", "r"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[-2:] == ["warning: it was not remembered", "Report: r.md"]
    assert "Finding out what the answer rests on" not in "".join(said)
    assert (folder / "r.md").exists()


def test_every_unknown_name_on_the_command_line_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["debate", "x", "--format", "opera", "--agents", "witch,security,wizard"]) == 2
    format_line, agents_line = capsys.readouterr().err.splitlines()
    assert format_line.startswith("parley: --format: unknown format 'opera'; known formats: ")
    assert agents_line == f"parley: --agents: unknown roles 'witch', 'wizard'; {ROLES}"


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
        saved(orchestrator.address),
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
    ids=["nothing known", "no price", "a price", "next to nothing", "one amount", "next to nothing at least"],
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
    orchestrator.refusal = refusing(
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
    assert "  1 round, 1 call, 0.0 s" in err


@pytest.mark.parametrize(("asked", "is_shown"), [(["--verbose"], True), ([], False)])
def test_how_the_answer_came_about_is_shown_to_those_who_ask(
    asked: list[str],
    is_shown: bool,
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def voted(debate: ScriptedDebate) -> None:
        debate.state.process = "## Vote\n\n- 2 of 3"
        debate.conclude()

    orchestrator.script = voted
    assert run(["debate", "Which?", *asked, "--server", orchestrator.address]) == 0
    told = capsys.readouterr()
    assert told.out == ANSWER
    assert ("## Vote\n\n- 2 of 3" in told.err) == is_shown


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
    assert (spec.judge.agent.id, spec.panel.rounds) == ("j", 2)


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
    check: Callable[[DebateSpec], list[FieldViolation]],
) -> Callable[[pb.CreateDebateRequest], ParleyError | None]:
    def refusal(request: pb.CreateDebateRequest) -> ParleyError | None:
        violations = check(request.spec)
        return invalid_argument(violations) if violations else None

    return refusal


def unknown_names(spec: DebateSpec) -> list[FieldViolation]:
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
    assert run(["debate", "Which?", "--agents", "witch,security,wizard", *server]) == 2
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "parley: --agents: unknown role witch; known roles: security",
        "parley: --agents: unknown role wizard; known roles: security",
    ]
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
    ("field", "of_option", "of_file"),
    [
        ("spec.research", "--research", "parley.yaml:2: debate.research"),
        ("spec.research_pages", "--page", "parley.yaml:3: debate.research_pages"),
        (
            "spec.research_pages[0]",
            "--page https://b.example/",
            "parley.yaml:3: debate.research_pages[0]",
        ),
        ("spec.research_pages[1]", "--page https://c.example/", "--page https://b.example/"),
    ],
)
def test_research_that_the_system_refuses_is_refused_at_its_option_or_line(
    field: str,
    of_option: str,
    of_file: str,
    orchestrator: ScriptedOrchestrator,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orchestrator.refusal = refusing(lambda spec: [FieldViolation(field, "no research here")])
    given = ["--page", "https://b.example/", "--page", "https://c.example/"]
    ask = ["debate", "Which?", "--research", *given, "--server", orchestrator.address]
    assert run(ask) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"parley: {of_option}: no research here"
    (folder / "parley.yaml").write_text(
        "debate:\n  research: true\n  research_pages: ['https://a.example/']\n"
    )
    assert run(ask) in {2, 4}
    assert capsys.readouterr().err.splitlines()[-1] == f"parley: {of_file}: no research here"


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("spec.panel.rounds", "4: debate.rounds"),
        ("spec.panel.summaries.threshold", "5: debate.summarization.threshold"),
        ("spec.panel.termination.rule", "7: debate.terminationCondition.type"),
        ("spec.panel.termination.threshold_percent", "8: debate.terminationCondition.threshold"),
        ("spec.concurrency.proposals", "9: debate.maxConcurrentProposals"),
        ("spec.concurrency.refinements", "10: debate.max_concurrent_revisions"),
        ("spec.limits.round", "11: debate.timeoutPerRound"),
        ("spec.limits.max_cost_micros", "12: debate.max_cost"),
    ],
)
def test_settings_that_the_system_refuses_are_refused_at_their_key(
    field: str,
    place: str,
    orchestrator: ScriptedOrchestrator,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orchestrator.refusal = refusing(lambda spec: [FieldViolation(field, "must be otherwise")])
    (folder / "parley.yaml").write_text(
        "agents: [{role: security}]\njudge: {}\ndebate:\n  rounds: 2\n  summarization: {threshold: 7}\n"
        "  terminationCondition:\n    type: convergence\n    threshold: 80\n  maxConcurrentProposals: 2\n"
        "  max_concurrent_revisions: 2\n  timeoutPerRound: 1000\n  max_cost: 1\n"
    )
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 4
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == f"parley: parley.yaml:{place}: must be otherwise"


def test_a_setting_that_the_file_does_not_say_is_not_blamed_on_it(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    violation = FieldViolation("spec.panel.rounds", "must be otherwise")
    orchestrator.refusal = refusing(lambda spec: [violation])
    (folder / "parley.yaml").write_text("debate: {domain: storage}\n")
    assert run(["debate", "Which?", "--rounds", "2", "--server", orchestrator.address]) == 2
    assert "parley.yaml:1" not in capsys.readouterr().err.splitlines()[-1]


def test_the_settings_that_travel_are_those_of_the_format_that_was_chosen(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "parley.yaml").write_text("debate: {rounds: 2, max_tokens: 500}\n")
    server = ["--server", orchestrator.address]
    for chosen in ("panel", "panel@1"):
        assert run(["debate", "Which?", "--format", chosen, *server]) == 0
        spec = orchestrator.created[-1].spec
        assert (spec.format, spec.panel.rounds) == (chosen, 2)
    assert run(["debate", "Which?", "--format", "opera", *server]) == 0
    spec = orchestrator.created[-1].spec
    assert (spec.WhichOneof("format_settings"), spec.limits.max_tokens) == (None, 500)
    capsys.readouterr()
    assert run(["debate", "Which?", "--format", "opera", "--rounds", "2", *server]) == 2
    assert capsys.readouterr().err.splitlines()[1:] == [
        "parley: --rounds: the settings of format 'opera' are not known here"
    ]


@pytest.mark.parametrize("chosen", ["arena", "moderated"])
def test_more_rounds_than_the_format_can_have_are_refused_by_the_option(
    chosen: str, orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", "--format", chosen, "--rounds", "21", *server]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == f"parley: --rounds: must be at most 20 in the format {chosen}"
    assert run(["debate", "Which?", "--format", chosen, "--rounds", "20", *server]) == 0


def test_the_file_may_choose_the_format_and_an_option_counts_before_it(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "debate:\n  format: arena\n  arena: {revision_rounds: 4}\n  max_concurrent_critiques: 2\n"
    (folder / "parley.yaml").write_text(text)
    server = ["--server", orchestrator.address]
    assert run(["debate", "Which?", "--team", "2", *server]) == 0
    spec = orchestrator.created[-1].spec
    assert (spec.format, spec.arena.revision_rounds, spec.arena.team.size) == ("arena", 4, 2)
    capsys.readouterr()
    assert run(["debate", "Which?", "--format", "moderated", *server]) == 4
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "parley: parley.yaml:3: debate.arena: the format moderated does not use it; leave it out, or choose the format arena, whose key it is",
        "parley: parley.yaml:4: debate.max_concurrent_critiques: the format moderated does not use it; leave it out",
    ]
    assert len(orchestrator.created) == 1, "nothing is sent"
    (folder / "parley.yaml").write_text("debate: {format: arena, domain: data}\n")
    assert run(["debate", "Which?", "--format", "panel", *server]) == 0
    assert orchestrator.created[-1].spec.format == "panel"


def test_a_format_of_the_file_that_nobody_knows_is_told_at_its_line(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "parley.yaml").write_text("debate:\n  format: opera\n")
    assert run(["debate", "Which?"]) == 4
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .startswith("parley: parley.yaml:2: debate.format: unknown format 'opera'; known formats: ")
    )
    orchestrator.refusal = refusing(lambda spec: [FieldViolation("spec.format", "is none")])
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 4
    assert capsys.readouterr().err.splitlines()[-1] == "parley: parley.yaml:2: debate.format: is none"
    assert run(["debate", "Which?", "--format", "solo", "--server", orchestrator.address]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "parley: --format: is none"


def test_options_of_the_arena_take_the_place_of_what_the_file_says(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    (folder / "parley.yaml").write_text(
        "debate: {arena: {protocol: adversarial, topology: star, hub: ada, verification: false, observer: true,"
        " trickster: {asks: true}}}\n"
    )
    options = ["--format", "arena", "--protocol", "socratic", "--topology", "ring", "--voting", "unanimous"]
    options.append("--sequential")
    options += ["--trickster", "--no-observer"]
    assert run(["debate", "Which?", *options, "--rounds", "2", "--server", orchestrator.address]) == 0
    assert orchestrator.created[-1].spec.arena == ArenaSettings(
        revision_rounds=2,
        protocol=DEBATE_PROTOCOL_SOCRATIC,
        topology=Topology(kind=TOPOLOGY_KIND_RING),
        voting=VotingSettings(method=VOTING_METHOD_UNANIMOUS),
        stopping=StoppingSettings(sequential=True),
        trickster=TricksterSettings(asks=True),
        verification=False,
    )


def agreeing(debate: ScriptedDebate) -> None:
    found = "the agents agree (94 %, threshold 90 %)"
    debate.add(RoundStarted(number=1, total=3))
    debate.add(RoundAssessed(round=1, ends_rounds=True, finding=found))
    debate.state.max_rounds, debate.state.rounds_ended_by = 3, found
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
