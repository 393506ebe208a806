"""Tables on stdout: agents, routes and debates as rows, and how rows are printed."""

import shutil
import sys
from collections.abc import Sequence
from typing import Final

from parley.cli.printing import print_line
from parley.cli.terminal.debate_overview import status_text
from parley.cli.terminal.words import enum_text, local_time_text, to_line
from parley.client import DebateSummary
from parley.runtime.printable import printable_line
from parley.v1.agent_pb2 import Agent, Tool
from parley.v1.gateway_pb2 import BreakerState
from parley.v1.orchestrator_pb2 import ListAvailableAgentsResponse

_NARROW: Final = 100
_GAP: Final = 2
_MIN_WIDTH: Final = 8
"""Columns that the last cell keeps, however narrow the terminal is."""
_TIME_WIDTH: Final = 19
"""Columns of a time. Other columns make room for a last one of this width: half of a time tells nothing."""


def is_narrow() -> bool:
    """Return whether stdout is a narrow terminal."""
    return sys.stdout.isatty() and shutil.get_terminal_size().columns < _NARROW


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of equal length, the first of which is the heading, in columns as wide as they need.

    On a terminal the last column is cut to the width; if it would have no room, the columns before it are left out;
    elsewhere all columns are whole.
    """
    from rich.cells import cell_len, set_cell_size  # heavy: help needs none of it

    rows = [[printable_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        rows = _drop_columns(rows, shutil.get_terminal_size().columns)
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if sys.stdout.isatty():
        left = shutil.get_terminal_size().columns - sum(width + _GAP for width in widths[:-1])
        widths[-1] = min(widths[-1], max(left, _MIN_WIDTH))
    for row in rows:
        cells = [set_cell_size(cell, width) for cell, width in zip(row[:-1], widths, strict=False)]
        last = row[-1]
        if cell_len(last) > widths[-1]:
            last = f"{set_cell_size(last, widths[-1] - 1).rstrip()}…"
        print_line((" " * _GAP).join([*cells, last]).rstrip())


def _drop_columns(rows: Sequence[Sequence[str]], columns: int) -> Sequence[Sequence[str]]:
    """Return the rows without columns before the last one, until the last one has room."""
    from rich.cells import cell_len

    width = max(cell_len(row[-1]) for row in rows)
    room = width if width <= _TIME_WIDTH else _MIN_WIDTH
    while len(rows[0]) > 2:
        taken = sum(max(cell_len(row[place]) for row in rows) + _GAP for place in range(len(rows[0]) - 1))
        if taken + room <= columns:
            break
        rows = [[*row[:-2], row[-1]] for row in rows]
    return rows


_WIDTH: Final = 60


def agent_rows(listed: ListAvailableAgentsResponse) -> list[tuple[str, ...]]:
    """Return a row for each agent below a heading; without the column of tools if no agent has any."""
    rows: list[tuple[str, ...]] = [("AGENT", "ROLE", "PART", "ROUTES", "TOOLS")]
    for agent in listed.agents:
        part = "debates" if agent.id in listed.default_team else ""
        part = "judges" if agent.id == listed.default_judge else part
        answering = ", ".join(agent.routes or listed.default_routes)
        role = f"{agent.role} ({agent.own_role.source})" if agent.HasField("own_role") else agent.role
        rows.append((agent.id, role, part, answering, _tools(agent)))
    has_tools = any(agent.tools for agent in listed.agents)
    return rows if has_tools else [row[:-1] for row in rows]


def route_rows(listed: ListAvailableAgentsResponse) -> list[tuple[str, ...]]:
    """Return a row for each route below a heading."""
    rows: list[tuple[str, ...]] = [("ROUTE", "CONTEXT", "BREAKER", "IN FLIGHT", "LAST FAILURE")]
    for route in listed.routes:
        breaker = enum_text(BreakerState.DESCRIPTOR, route.breaker).replace("_", "-")
        if route.HasField("retry_at"):
            breaker += f" until {route.retry_at.ToDatetime().strftime('%H:%M:%S')}"
        name = f"{route.name} (this machine)" if route.local else route.name
        context = f"{route.context_tokens:,}" if route.context_tokens else "not known"
        rows.append((name, context, breaker, str(route.in_flight), to_line(route.last_failure, _WIDTH)))
    rows += [(f"{provider}/MODEL (any model)", "", "", "", "") for provider in listed.open_providers]
    return rows


def _tools(agent: Agent) -> str:
    named = ", ".join(enum_text(Tool.DESCRIPTOR, each) for each in agent.tools)
    return f"{named}; at most {agent.tool_call_limit}" if agent.tools and agent.tool_call_limit else named


_QUESTION_WIDTH: Final = 199
"""One less than a summary has of a question, so that one that goes on ends in `…`."""


def debate_rows(found: Sequence[DebateSummary], *, interrupted: bool, narrow: bool) -> list[tuple[str, ...]]:
    """Return a row for each debate below a heading.

    `interrupted` says that no system runs debates that should run; `narrow` leaves out the time, which is in the id too.
    """
    rows: list[tuple[str, ...]] = [("ID", "STATUS", "CREATED", "QUESTION")]
    for each in found:
        status = status_text(each.status, interrupted=interrupted) + (", imported" if each.imported else "")
        rows.append(
            (each.id, status, local_time_text(each.create_time), to_line(each.question, _QUESTION_WIDTH))
        )
    return [(row[0], row[1], row[3]) for row in rows] if narrow else rows
