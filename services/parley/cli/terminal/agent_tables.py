"""Agents and routes as rows of tables."""

from typing import Final

from parley.cli.terminal.shorten import one_line
from parley.cli.terminal.words import enum_text
from parley.v1.agent_pb2 import Agent, Tool
from parley.v1.gateway_pb2 import BreakerState, ListAgentsResponse, ListRoutesResponse

__all__ = ["agent_rows", "route_rows"]

_WIDTH: Final = 60


def agent_rows(listed: ListAgentsResponse, routes: ListRoutesResponse) -> list[tuple[str, ...]]:
    """Return a row for each agent below a heading; without the column of tools where none has any."""
    rows: list[tuple[str, ...]] = [("AGENT", "ROLE", "PART", "ROUTES", "TOOLS")]
    for agent in listed.agents:
        part = "debates" if agent.id in listed.default_team else ""
        part = "judges" if agent.id == listed.default_judge else part
        answering = ", ".join(agent.routes or routes.default_routes)
        role = f"{agent.role} ({agent.own_role.source})" if agent.HasField("own_role") else agent.role
        rows.append((agent.id, role, part, answering, _tools(agent)))
    has_tools = any(agent.tools for agent in listed.agents)
    return rows if has_tools else [row[:-1] for row in rows]


def route_rows(routes: ListRoutesResponse) -> list[tuple[str, ...]]:
    """Return a row for each route below a heading."""
    rows: list[tuple[str, ...]] = [("ROUTE", "CONTEXT", "BREAKER", "IN FLIGHT", "LAST FAILURE")]
    for route in routes.routes:
        breaker = enum_text(BreakerState.DESCRIPTOR, route.breaker).replace("_", "-")
        if route.HasField("retry_at"):
            breaker += f" until {route.retry_at.ToDatetime().strftime('%H:%M:%S')}"
        name = f"{route.name} (this machine)" if route.local else route.name
        context = f"{route.context_tokens:,}" if route.context_tokens else "not known"
        rows.append((name, context, breaker, str(route.in_flight), one_line(route.last_failure, _WIDTH)))
    rows += [(f"{provider}/MODEL (any model)", "", "", "", "") for provider in routes.open_providers]
    return rows


def _tools(agent: Agent) -> str:
    named = ", ".join(enum_text(Tool.DESCRIPTOR, each) for each in agent.tools)
    return f"{named}; at most {agent.tool_call_limit}" if agent.tools and agent.tool_call_limit else named
