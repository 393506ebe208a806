"""Requests of agents that have tools, and models that use them."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from parley.v1 import agent_pb2, gateway_pb2
from tests.integration.gateway.harness import Gateway, request, run_with_server
from tests.support.model_server import Match, ModelServer, Rule, ToolCall, ToolCalls

ALL = (agent_pb2.TOOL_CONTEXT_SEARCH, agent_pb2.TOOL_FILE_READ, agent_pb2.TOOL_LIST_FILES)
NAMES = ("context_search", "file_read", "list_files")
SECRET = "the valve opens at 7 bar"
FILES = {"docs/valve.md": f"# Valve\n\nMeasured: {SECRET}.", "docs/pump.md": "The pump is blue.\n" * 40}
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"stand": {"type": "string"}},
        "required": ["stand"],
        "additionalProperties": False,
    }
)
READ = ToolCalls([ToolCall("file_read", {"path": "docs/valve.md"})])
BOTH = pytest.mark.parametrize("responses", [True, False])


def make_request_with_tools(
    tools: Sequence["agent_pb2.Tool.ValueType"] = ALL,
    *,
    limit: int = 0,
    files: dict[str, str] | None = None,
    structured: bool = False,
    **more: Any,
) -> gateway_pb2.GenerateRequest:
    asked = request("When does the valve open?", **more)
    asked.agent.tools.extend(tools)
    asked.agent.tool_call_limit = limit
    for path, text in (FILES if files is None else files).items():
        part = asked.prompt.add(role=gateway_pb2.PROMPT_ROLE_USER, text=text, shrink_priority=2)
        part.document = path
    if structured:
        asked.schema.CopyFrom(gateway_pb2.AnswerSchema(name="stand", json_schema=SCHEMA))
    return asked


def looks_up(*turns: ToolCalls, then: Any = "It opens at 7 bar.") -> list[Rule]:
    """A model that asks for these in turn, and then answers."""
    rules, results = [], 0
    for turn in turns:
        rules.append(Rule(Match(tools=True, tool_results=results), answer=turn))
        results += len(turn.calls)
    return [*rules, Rule(answer=then)]


@asynccontextmanager
async def gateway_for(rules: Sequence[Rule], **switches: Any) -> AsyncIterator[tuple[ModelServer, Gateway]]:
    async with ModelServer(rules=rules, **switches) as server, run_with_server(server) as gateway:
        yield server, gateway
