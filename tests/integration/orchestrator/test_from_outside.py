"""A format, a phase and a role are added from outside, without a change below services/."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from parley.orchestrator.engine.format import Formats
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.roles.catalogue import Roles, load_shipped_roles, parse_role
from parley.runtime.server import RunningServer
from parley.v1 import agent_pb2, debate_pb2, orchestrator_pb2
from tests.integration.orchestrator.outside.contest import CONTEST
from tests.support.orchestration import Orchestrator, failure_of, orchestrating
from tests.support.scripted_gateway import ScriptedGateway

OUTSIDE = Path(__file__).parent / "outside"
POET = parse_role("poet", (OUTSIDE / "poet.md").read_text("utf-8"))
FORMATS = Formats([*all_formats().all(), CONTEST])
ROLES = Roles([*load_shipped_roles().all(), POET])


def poets(*names: str) -> list[debate_pb2.Participant]:
    return [debate_pb2.Participant(agent=agent_pb2.Agent(id=name, role="bard")) for name in names]


def run_with_formats(folder: Path, gateway: RunningServer) -> AbstractAsyncContextManager[Orchestrator]:
    return orchestrating(folder, gateway, formats=FORMATS, roles=ROLES)


def gateway() -> ScriptedGateway:
    scripted = ScriptedGateway()
    scripted.judge = lambda _schema: json.dumps({"lines": ["old pond", "a frog", "splash"]})
    return scripted


async def test_a_format_with_a_phase_of_its_own_is_held_by_agents_of_a_role_of_its_own(
    tmp_path: Path,
) -> None:
    scripted = gateway()
    async with scripted.served() as server, run_with_formats(tmp_path, server) as orchestrator:
        spec = debate_pb2.DebateSpec(question="What is water?", format="contest", agents=poets("ada", "bo"))
        request = orchestrator_pb2.CreateDebateRequest(request_id="one", spec=spec)
        debate = (await orchestrator.stub.CreateDebate(request)).debate_id
        await orchestrator.watch(debate)
        held = await orchestrator.get(debate)
        report = await orchestrator.stub.GetReport(orchestrator_pb2.GetReportRequest(debate_id=debate))
    assert held.status == debate_pb2.DEBATE_STATUS_COMPLETED
    assert held.spec.format == "contest@1"
    assert held.answer == "old pond\na frog\nsplash\n"
    doing = ["writes a haiku"] * 2
    assert [made.work.doing for made in held.contributions] == [*doing, "finds out what the answer rests on"]
    assert held.contributions[0].reply.rendered == "old pond  \na frog  \nsplash"
    assert "### Haiku" in report.markdown
    assert "> old pond" in report.markdown
    assert "You say much with few words." in scripted.asked("haiku/ada").prompt
    assert "Write one haiku that answers the question." in scripted.asked("haiku/ada").prompt


async def test_a_role_that_lacks_what_a_format_needs_is_refused(tmp_path: Path) -> None:
    async with gateway().served() as server, run_with_formats(tmp_path, server) as orchestrator:
        spec = debate_pb2.DebateSpec(question="What is water?", format="panel", agents=poets("ada", "bo"))
        request = orchestrator_pb2.CreateDebateRequest(request_id="one", spec=spec)
        refused = await failure_of(orchestrator.stub.CreateDebate(request))
    assert [each.field for each in refused.violations] == ["spec.agents[0]", "spec.agents[1]"]
    assert (
        "lacks clarify, critique, propose, refine, summarize for the format panel"
        in refused.violations[0].description
    )


async def test_a_role_that_travels_with_its_agent_is_told_and_recorded(tmp_path: Path) -> None:
    scripted = ScriptedGateway()
    own = agent_pb2.OwnRole(
        sections={"system": "You are a lawyer.", "propose": "Propose what holds."}, source="roles/lawyer.md"
    )
    lawyer = agent_pb2.Agent(id="ada", role="lawyer", own_role=own)
    umpire = agent_pb2.Agent(
        id="ju", role="umpire", own_role=agent_pb2.OwnRole(sections={"system": "Be stern."})
    )
    async with scripted.served() as server, orchestrating(tmp_path, server) as orchestrator:
        spec = debate_pb2.DebateSpec(
            question="May we?",
            agents=[debate_pb2.Participant(agent=lawyer)],
            judge=debate_pb2.Participant(agent=umpire),
        )
        spec.panel.rounds = 1
        request = orchestrator_pb2.CreateDebateRequest(request_id="one", spec=spec)
        debate = (await orchestrator.stub.CreateDebate(request)).debate_id
        await orchestrator.watch(debate)
        held = await orchestrator.get(debate)
        report = await orchestrator.stub.GetReport(orchestrator_pb2.GetReportRequest(debate_id=debate))
    assert held.status == debate_pb2.DEBATE_STATUS_COMPLETED
    proposal = scripted.asked("round/1/propose/ada").prompt
    assert "You are a lawyer." in proposal
    assert "Propose what holds." in proposal
    assert any("Be stern." in each.prompt for each in scripted.calls if each.agent.id == "ju")
    assert held.spec.agents[0].agent.own_role == agent_pb2.OwnRole(source="roles/lawyer.md")
    assert "lawyer (roles/lawyer.md)" in report.markdown


async def test_settings_of_another_format_are_refused(tmp_path: Path) -> None:
    async with gateway().served() as server, run_with_formats(tmp_path, server) as orchestrator:
        spec = debate_pb2.DebateSpec(question="What is water?", format="contest", agents=poets("ada", "bo"))
        spec.panel.rounds = 2
        request = orchestrator_pb2.CreateDebateRequest(request_id="one", spec=spec)
        refused = await failure_of(orchestrator.stub.CreateDebate(request))
    assert [each.field for each in refused.violations] == ["spec.panel"]
