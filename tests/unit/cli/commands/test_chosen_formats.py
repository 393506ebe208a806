"""The format and its settings of `parley debate`: what the file and the options choose reaches the orchestrator."""

import json
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.runtime.errors import FieldViolation
from parley.v1.arena_pb2 import (
    DEBATE_PROTOCOL_SOCRATIC,
    TOPOLOGY_KIND_RING,
    ArenaSettings,
    StoppingSettings,
    Topology,
    TricksterSettings,
)
from parley.v1.voting_pb2 import VOTING_METHOD_UNANIMOUS, VotingSettings
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.unit.cli.commands.test_refused_debates import make_refusal


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
    orchestrator.refusal = make_refusal(lambda spec: [FieldViolation("spec.format", "is none")])
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
