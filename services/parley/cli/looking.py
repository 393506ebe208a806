"""The commands that look at debates and agents."""

import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from parley.cli.choosing import find_config
from parley.cli.display import say
from parley.cli.events import EventLines
from parley.cli.failures import INVALID_ARGUMENTS, CommandError
from parley.cli.output import debate_json, report_path, solution_text, write
from parley.cli.state import enum_word
from parley.cli.system import connected
from parley.cli.verbose import cost_text
from parley.client import Debate, DebateEvent, DebateStatus, GatewayClient, ParleyClient
from parley.v1.gateway_pb2 import BreakerState, ListAgentsResponse, ListRoutesResponse

__all__ = ["agents", "list_debates", "report", "show", "watch"]

_PATIENCE = 5.0
_WIDTH = 60


@asynccontextmanager
async def _orchestrator(server: str | None) -> AsyncIterator[ParleyClient]:
    async with (
        connected(server, answers=False) as link,
        ParleyClient(link.orchestrator, patience=_PATIENCE) as parley,
    ):
        yield parley


async def list_debates(server: str | None, limit: int) -> None:
    """Prints debates as a table, newest first."""
    rows = [("ID", "STATUS", "CREATED", "QUESTION")]
    async with _orchestrator(server) as parley:
        async for each in parley.list(page_size=min(limit, 200)):
            created = each.created_at.ToDatetime().strftime("%Y-%m-%d %H:%M")
            rows.append((each.id, _status(each.status), created, _short(each.question)))
            if len(rows) > limit:
                break
    _table(rows)


async def show(server: str | None, debate_id: str, *, as_json: bool) -> None:
    """Prints how a debate stands."""
    async with _orchestrator(server) as parley:
        debate = await parley.get(debate_id)
    if as_json:
        sys.stdout.write(debate_json(debate))
    else:
        sys.stdout.write("\n".join(_shown(debate)) + "\n")


async def watch(server: str | None, debate_id: str, after: int) -> None:
    """Prints events, and text as it is written, until the debate ends."""
    lines = EventLines()
    async with connected(server, answers=False) as link, ParleyClient(link.orchestrator) as parley:
        # A system of our own runs no debate: there is nothing to wait for after what is recorded.
        end = (await parley.get(debate_id)).last_sequence if link.own else None
        if end is not None and after >= end:
            return
        async for each in parley.watch(debate_id, after, text=True):
            for line in lines.of(each):
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            if isinstance(each, DebateEvent) and each.sequence == end:
                if each.kind not in {"closed", "debate_failed"}:
                    say(f"Nothing runs this debate now; go on with: parley debate --resume {debate_id}")
                break


async def report(server: str | None, debate_id: str, output: Path | None) -> None:
    """Prints a debate's report or writes it to a file."""
    async with _orchestrator(server) as parley:
        text = await parley.report(debate_id)
    if output is None:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    else:
        write(report_path(output), text)


async def agents(server: str | None, config_path: Path | None) -> None:
    """Prints agents and routes."""
    if server is not None and config_path is not None:
        raise CommandError(
            "--config is read by the server itself; leave it out with --server", INVALID_ARGUMENTS
        )
    found = find_config(config_path) if server is None else None
    path = Path(found.places.name) if found is not None else None
    async with (
        connected(server, path) as link,
        GatewayClient(link.gateway or link.orchestrator, patience=_PATIENCE) as gateway,
    ):
        listed, routes = await gateway.agents(), await gateway.routes()
    _table(_agent_rows(listed, routes))
    sys.stdout.write("\n")
    _table(_route_rows(routes))


def _agent_rows(listed: ListAgentsResponse, routes: ListRoutesResponse) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("AGENT", "ROLE", "PART", "ROUTES")]
    for agent in listed.agents:
        part = "debates" if agent.id in listed.default_team else ""
        part = "judges" if agent.id == listed.default_judge else part
        rows.append((agent.id, agent.role, part, ", ".join(agent.routes or routes.default_routes)))
    return rows


def _route_rows(routes: ListRoutesResponse) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("ROUTE", "BREAKER", "IN FLIGHT", "LAST FAILURE")]
    for route in routes.routes:
        breaker = enum_word(BreakerState.Name(route.breaker), "BreakerState").replace("_", "-")
        if route.HasField("retry_at"):
            breaker += f" until {route.retry_at.ToDatetime().strftime('%H:%M:%S')}"
        name = f"{route.name} (this machine)" if route.local else route.name
        rows.append((name, breaker, str(route.in_flight), _short(route.last_failure)))
    rows += [(f"{provider}/MODEL (any model)", "", "", "") for provider in routes.open_providers]
    return rows


def _shown(debate: Debate) -> Iterable[str]:
    yield f"Debate     {debate.id}"
    yield f"Status     {_status(debate.status)}{f' ({debate.phase})' if debate.phase else ''}"
    yield f"Question   {_short(debate.spec.question)}"
    yield f"Agents     {', '.join(each.agent.id for each in debate.spec.agents)}"
    yield f"Judge      {debate.spec.judge.agent.id}"
    yield f"Rounds     {debate.current_round} of {debate.spec.rounds}"
    yield f"Created    {debate.created_at.ToJsonString()}"
    yield f"Updated    {debate.updated_at.ToJsonString()}"
    usage = debate.usage
    cost = f", {cost_text(usage.cost_micros)}" if usage.HasField("cost_micros") else ""
    yield f"Calls      {debate.calls}, {usage.input_tokens + usage.output_tokens:,} tokens{cost}"
    for warning in debate.warnings:
        yield f"Warning    {warning}"
    for failed in debate.failures:
        yield f"Failed     {failed.agent_id}: {failed.key}: {failed.reason}: {failed.message}"
    if debate.HasField("failure"):
        yield f"Why        {debate.failure.reason}: {debate.failure.message}"
        yield f"Go on      parley debate --resume {debate.id}"
    if debate.HasField("solution"):
        yield ""
        yield solution_text(debate.solution).rstrip("\n")


def _status(status: DebateStatus.ValueType) -> str:
    return enum_word(DebateStatus.Name(status), "DebateStatus")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        sys.stdout.write(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        )
