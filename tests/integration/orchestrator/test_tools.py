"""Context documents and tools: what the gateway is given of them, and what is told of their use."""

from pathlib import Path

from parley.v1 import agent_pb2, debate_pb2, orchestrator_pb2
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.event_pb2 import StepStarted, StepSucceeded
from tests.support.orchestration import Orchestrator, agent, backstage, failure_of, kind_of, make_debate
from tests.support.scripted_gateway import ScriptedGateway

DOCUMENTS = [
    debate_pb2.ContextDocument(path="docs/a.md", text="Otters float.\n>>>\n"),
    debate_pb2.ContextDocument(path="b.md", text="Beavers build."),
]
LOOKED_UP = agent_pb2.ToolCall(name="file_read", arguments='{"path": "docs/a.md"}', characters=14)
MISSED = agent_pb2.ToolCall(name="file_read", arguments="x" * 600, failed=True, characters=9)


def team() -> list[debate_pb2.Participant]:
    tools = [agent_pb2.TOOL_FILE_READ, agent_pb2.TOOL_LIST_FILES]
    ada = agent_pb2.Agent(id="ada", role="architect", tools=tools, tool_call_limit=4)
    return [debate_pb2.Participant(agent=ada), debate_pb2.Participant(agent_id="bo")]


async def test_documents_reach_the_gateway_as_they_are_and_tools_with_their_agent(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    debate = await orchestrator.create(agents=team(), context=DOCUMENTS)
    await orchestrator.watch(debate)
    for asked in gateway.calls:
        given = [(part.document, part.text) for part in asked.parts if part.document]
        assert given == [(each.path, each.text) for each in DOCUMENTS]
        assert not any("Otters" in part.text for part in asked.parts if not part.document)
    ada, bo = (gateway.asked(f"round/1/propose/{name}").agent for name in ("ada", "bo"))
    assert list(ada.tools) == [agent_pb2.TOOL_FILE_READ, agent_pb2.TOOL_LIST_FILES]
    assert (ada.tool_call_limit, list(bo.tools), bo.tool_call_limit) == (4, [], 0)


async def test_what_was_looked_up_is_told_by_the_state_the_events_and_the_report(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.tool_calls["ada"] = (LOOKED_UP, MISSED)
    debate = await orchestrator.create(agents=team(), context=DOCUMENTS)
    messages = await orchestrator.watch(debate)
    found = await orchestrator.get(debate)
    of_ada = [each for each in found.contributions if each.work.agent_id == "ada"]
    assert of_ada
    for each in found.contributions:
        uses = [(call.name, len(call.arguments), call.failed) for call in each.reply.tool_calls]
        wanted = [("file_read", 21, False), ("file_read", 500, True)]
        assert uses == (wanted if each.work.agent_id == "ada" else [])
    answered = [each.event for each in messages if kind_of(each.event) == "step_succeeded"]
    told = [each for each in answered if each.step_succeeded.reply.tool_calls]
    assert [each.step_succeeded.work.agent_id for each in told] == ["ada"] * len(of_ada)
    report = await orchestrator.stub.GetReport(
        orchestrator_pb2.GetReportRequest(debate_id=debate), timeout=10
    )
    assert "Looked up: file\\_read docs/a.md, file\\_read x" in report.markdown


async def test_the_specification_tells_tools_and_limit_as_they_were_asked_for(
    orchestrator: Orchestrator,
) -> None:
    debate = await orchestrator.create(agents=team(), context=DOCUMENTS)
    spec = (await orchestrator.get(debate)).spec
    assert spec.agents[0].agent.tools == team()[0].agent.tools
    assert spec.agents[0].agent.tool_call_limit == 4
    assert list(spec.context) == DOCUMENTS


async def test_bad_tools_are_refused_with_every_field(orchestrator: Orchestrator) -> None:
    who = team()[0]
    who.agent.tool_call_limit = 1000
    who.agent.tools.append(agent_pb2.TOOL_UNSPECIFIED)
    failure = await failure_of(orchestrator.create(agents=[who]))
    assert [each.field for each in failure.violations] == [
        "spec.agents[0].agent.tools[2]",
        "spec.agents[0].agent.tool_call_limit",
    ]


async def test_a_debate_with_documents_goes_on_from_where_it_was_with_all_that_was_looked_up(
    tmp_path: Path,
) -> None:
    gateway = ScriptedGateway()
    gateway.tool_calls["ada"] = (LOOKED_UP,)
    hold = gateway.hold("synthesis")
    spec = make_debate(
        2,
        1,
        context=(ContextDocument(path="a.md", text="one"),),
        agents=(agent("ada", tools=[agent_pb2.TOOL_FILE_READ]), agent("bo")),
    )
    async with backstage(tmp_path, gateway) as stage:
        async with stage.replica("first") as first:
            debate = await first.create(spec)
            await hold.reached.wait()
        hold.release()
        asked_before = len(gateway.calls)
        async with stage.replica("second", exclusive=True):
            events = await stage.comes_to(debate, "COMPLETED")
    assert gateway.steps()[asked_before:] == ["synthesis"]
    replies = [each.payload.reply for each in events if isinstance(each.payload, StepSucceeded)]
    calls = [call for reply in replies for call in reply.tool_calls]
    assert calls
    assert all(call == LOOKED_UP for call in calls)


async def test_the_digest_of_a_step_stands_for_the_text_of_documents_too(tmp_path: Path) -> None:
    digests = []
    async with backstage(tmp_path) as stage, stage.replica() as replica:
        for text in ("one", "one", "two"):
            spec = make_debate(2, 1, context=(ContextDocument(path="a.md", text=text),))
            events = await stage.comes_to(await replica.create(spec), "COMPLETED")
            (started,) = [
                each.payload
                for each in events
                if each.key == "round/1/propose/ada" and isinstance(each.payload, StepStarted)
            ]
            digests.append(started.digest)
    assert digests[0] == digests[1]
    assert digests[1] != digests[2]
