"""What a request for a debate may say of tools and documents."""

from typing import Any

import pytest

from parley.orchestrator.agent_translation import agent_from_proto
from parley.orchestrator.requests import spec_of
from parley.orchestrator.roster import Roster
from parley.orchestrator.spec import DebateSpec
from parley.runtime.errors import ParleyError
from parley.v1 import agent_pb2, orchestrator_pb2

AGENTS = (
    agent_pb2.Agent(id="ada", role="architect", tools=[agent_pb2.TOOL_LIST_FILES], tool_call_limit=3),
    agent_pb2.Agent(id="judge", role="judge"),
)
ROSTER = Roster(
    {each.id: agent_from_proto(each) for each in AGENTS}, ("ada",), "judge", frozenset(), frozenset()
)


def asked(*agents: agent_pb2.Agent, **fields: Any) -> DebateSpec:
    team = [orchestrator_pb2.Participant(agent=each) for each in agents]
    spec = orchestrator_pb2.DebateSpec(question="Which?", agents=team, **fields)
    return spec_of(orchestrator_pb2.CreateDebateRequest(request_id="r", spec=spec), ROSTER)


def described(**fields: Any) -> agent_pb2.Agent:
    return agent_pb2.Agent(id="bo", role="security", **fields)


def test_an_agent_keeps_its_tools_and_its_limit_in_their_order() -> None:
    tools = [agent_pb2.TOOL_FILE_READ, agent_pb2.TOOL_CONTEXT_SEARCH]
    (agent,) = asked(described(tools=tools, tool_call_limit=100)).agents
    assert (agent.tools, agent.tool_call_limit) == (("file_read", "context_search"), 100)


def test_agents_that_are_named_bring_the_tools_that_the_gateway_knows_them_with() -> None:
    (agent,) = asked().agents
    assert (agent.tools, agent.tool_call_limit) == (("list_files",), 3)


def test_a_path_is_one_line_that_everything_it_meets_can_show() -> None:
    paths = ("docs/a.md", "a\nb", "a\u2028b", "d" * 1025, "d" * 1024)
    with pytest.raises(ParleyError) as caught:
        asked(context=[orchestrator_pb2.ContextDocument(path=each, text="x") for each in paths])
    fields = [each.field for each in caught.value.violations]
    assert fields == [f"spec.context[{place}].path" for place in (1, 2, 3)]


@pytest.mark.parametrize("limit", [-1, 101])
def test_every_bad_field_of_tools_is_listed(limit: int) -> None:
    tools: list[Any] = [agent_pb2.TOOL_FILE_READ, 0, 9, agent_pb2.TOOL_FILE_READ]
    agent = described(tools=tools, tool_call_limit=limit)
    judge = orchestrator_pb2.Participant(agent=agent_pb2.Agent(id="ju", role="judge", tools=tools[1:3]))
    with pytest.raises(ParleyError) as caught:
        asked(agent, judge=judge)
    assert [(each.field, each.description) for each in caught.value.violations] == [
        ("spec.agents[0].agent.tools[1]", "is not a known tool"),
        ("spec.agents[0].agent.tools[2]", "is not a known tool"),
        ("spec.agents[0].agent.tools[3]", "is there twice"),
        ("spec.agents[0].agent.tool_call_limit", "must be 0 to 100"),
        ("spec.judge.agent.tools[0]", "is not a known tool"),
        ("spec.judge.agent.tools[1]", "is not a known tool"),
    ]
