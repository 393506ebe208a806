"""`parley debate` that is refused, by the command or by the orchestrator: each mistake is told where it was made."""

from collections.abc import Callable
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.v1 import orchestrator_pb2 as pb
from parley.v1.debate_pb2 import DebateSpec
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.unit.cli.commands.scripts import ROLES


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


def test_every_unknown_name_on_the_command_line_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["debate", "x", "--format", "opera", "--agents", "witch,security,wizard"]) == 2
    format_line, agents_line = capsys.readouterr().err.splitlines()
    assert format_line.startswith("parley: --format: unknown format 'opera'; known formats: ")
    assert agents_line == f"parley: --agents: unknown roles 'witch', 'wizard'; {ROLES}"


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("security,securty", "unknown role 'securty'; did you mean security? Known roles: "),
        (
            "performence,archtect",
            "unknown roles 'performence', 'archtect'; did you mean performance, architect?",
        ),
        ("wizard", "unknown role 'wizard'; known roles: "),
    ],
)
def test_a_role_that_is_misspelled_on_the_command_line_is_suggested(
    written: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["debate", "x", "--agents", written]) == 2
    assert capsys.readouterr().err.startswith(f"parley: --agents: {hint}")


def test_a_format_that_is_misspelled_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["debate", "x", "--format", "pannel"]) == 2
    assert capsys.readouterr().err == (
        "parley: --format: unknown format 'pannel'; did you mean panel? Known formats: arena, moderated, panel\n"
    )


def make_refusal(
    check: Callable[[DebateSpec], list[FieldViolation]],
) -> Callable[[pb.CreateDebateRequest], ParleyError | None]:
    def refusal(request: pb.CreateDebateRequest) -> ParleyError | None:
        violations = check(request.spec)
        return invalid_argument(violations) if violations else None

    return refusal


def find_unknown_names(spec: DebateSpec) -> list[FieldViolation]:
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
    orchestrator.refusal = make_refusal(find_unknown_names)
    assert run(["debate", "Which?", "--agents", "ada,security", "--server", orchestrator.address]) == 0
    ada, security = orchestrator.created[-1].spec.agents
    assert (ada.agent_id, security.agent.id, security.agent.role) == ("ada", "security", "security")


def test_an_unknown_role_is_refused_with_the_known_ones(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.refusal = make_refusal(find_unknown_names)
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
    orchestrator.refusal = make_refusal(lambda spec: [FieldViolation(field, "must be otherwise")])
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
    orchestrator.refusal = make_refusal(lambda spec: [FieldViolation(field, "no research here")])
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
    orchestrator.refusal = make_refusal(lambda spec: [FieldViolation(field, "must be otherwise")])
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
    orchestrator.refusal = make_refusal(lambda spec: [violation])
    (folder / "parley.yaml").write_text("debate: {domain: storage}\n")
    assert run(["debate", "Which?", "--rounds", "2", "--server", orchestrator.address]) == 2
    assert "parley.yaml:1" not in capsys.readouterr().err.splitlines()[-1]
