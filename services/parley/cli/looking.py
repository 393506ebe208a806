"""The commands that look at debates, agents and ratings."""

import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from parley.cli.choosing import find_config
from parley.cli.display import say
from parley.cli.early import why_early
from parley.cli.events import EventLines
from parley.cli.failures import INVALID_ARGUMENTS, CommandError
from parley.cli.halts import answer_hint, ending_text
from parley.cli.naming import command
from parley.cli.output import debate_json, report_path, solution_text, write
from parley.cli.state import enum_word
from parley.cli.system import Link, connected, tell_of_borrowing
from parley.cli.verbose import cost_text, vote_text
from parley.cli.words import failure_lines, moment, phase_words
from parley.client import Debate, DebateEvent, DebateStatus, GatewayClient, ParleyClient, RatingsClient
from parley.v1.agent_pb2 import Agent, Tool
from parley.v1.gateway_pb2 import BreakerState, ListAgentsResponse, ListRoutesResponse
from parley.v1.orchestrator_pb2 import (
    DEBATE_STATUS_CANCELLED,
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_FAILED,
    DEBATE_STATUS_PAUSED,
    DEBATE_STATUS_PENDING,
    DEBATE_STATUS_RUNNING,
    DEBATE_STATUS_WAITING,
)

__all__ = ["agents", "list_debates", "ratings", "report", "show", "watch"]

_PATIENCE = 5.0
_WIDTH = 60
_MOVING = frozenset({DEBATE_STATUS_PENDING, DEBATE_STATUS_RUNNING, DEBATE_STATUS_WAITING})
_RESTING = frozenset({DEBATE_STATUS_PAUSED, DEBATE_STATUS_FAILED})
_ENDED = frozenset({DEBATE_STATUS_COMPLETED, DEBATE_STATUS_CANCELLED})


@asynccontextmanager
async def _orchestrator(server: str | None) -> AsyncIterator[tuple[Link, ParleyClient]]:
    async with (
        connected(server, purpose="records") as link,
        ParleyClient(link.orchestrator, patience=_PATIENCE) as parley,
    ):
        yield link, parley


async def list_debates(server: str | None, limit: int) -> None:
    """Prints debates as a table, newest first."""
    rows = [("ID", "STATUS", "CREATED", "QUESTION")]
    async with _orchestrator(server) as (link, parley):
        async for each in parley.list(page_size=min(limit, 200)):
            status = _status(each.status, interrupted=link.alone)
            rows.append((each.id, status, moment(each.created_at), _short(each.question)))
            if len(rows) > limit:
                break
    _table(rows)


async def show(server: str | None, debate_id: str, *, as_json: bool) -> None:
    """Prints how a debate stands."""
    async with _orchestrator(server) as (link, parley):
        debate = await parley.get(debate_id)
        early = "" if as_json else await why_early(parley, debate)
    if as_json:
        sys.stdout.write(debate_json(debate))
    else:
        sys.stdout.write("\n".join(_shown(debate, early, server, alone=link.alone)) + "\n")


async def watch(server: str | None, debate_id: str, after: int) -> None:
    """Prints events, and text as it is written, until the debate ends."""
    lines = EventLines(debate_id, server)
    async with connected(server, purpose="records") as link, ParleyClient(link.orchestrator) as parley:
        # Nobody runs debates of a store that is ours alone: there is nothing to wait for after what is recorded.
        end = (await parley.get(debate_id)).last_sequence if link.alone else None
        if end is not None and after >= end:
            return
        async for each in parley.watch(debate_id, after, text=True):
            for line in lines.of(each):
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            if isinstance(each, DebateEvent) and each.sequence == end:
                if each.kind not in {"closed", "debate_failed"}:
                    say(f"Nothing runs this debate now; go on with: {command()} debate --resume {debate_id}")
                break


async def report(server: str | None, debate_id: str, output: Path | None) -> None:
    """Prints a debate's report or writes it to a file."""
    async with _orchestrator(server) as (_, parley):
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
        connected(server, path, purpose="agents", what="gateway") as link,
        GatewayClient(link.gateway or link.orchestrator, patience=_PATIENCE) as gateway,
    ):
        tell_of_borrowing(link)
        listed, routes = await gateway.agents(), await gateway.routes()
    _table(_agent_rows(listed, routes))
    sys.stdout.write("\n")
    _table(_route_rows(routes))


async def ratings(server: str | None, domain: str) -> None:
    """Prints how agents have done, best first."""
    rows: list[tuple[str, ...]] = [("AGENT", "RATING", "MATCHES", "WON", "DRAWN", "LOST", "LAST MATCH")]
    async with (
        connected(server, purpose="ratings", what="ratings service") as link,
        RatingsClient(link.ratings or link.orchestrator, patience=_PATIENCE) as listed,
    ):
        async for each in listed.list(domain):
            counts = (each.matches, each.wins, each.draws, each.losses)
            last = moment(each.last_match_at)
            rows.append((each.agent_id, f"{each.elo:.0f}", *map(str, counts), last))
    _table(rows)
    if len(rows) == 1:
        say(f"No match is recorded {f'in the domain {domain}' if domain else 'yet'}.")


def _agent_rows(listed: ListAgentsResponse, routes: ListRoutesResponse) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("AGENT", "ROLE", "PART", "ROUTES", "TOOLS")]
    for agent in listed.agents:
        part = "debates" if agent.id in listed.default_team else ""
        part = "judges" if agent.id == listed.default_judge else part
        answering = ", ".join(agent.routes or routes.default_routes)
        rows.append((agent.id, agent.role, part, answering, _tools(agent)))
    has_tools = any(agent.tools for agent in listed.agents)
    return rows if has_tools else [row[:-1] for row in rows]


def _tools(agent: Agent) -> str:
    named = ", ".join(enum_word(Tool.Name(each), "Tool") for each in agent.tools)
    return f"{named}; at most {agent.tool_call_limit}" if agent.tools and agent.tool_call_limit else named


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


def _shown(debate: Debate, early: str, server: str | None, *, alone: bool) -> Iterable[str]:
    status = _status(debate.status, interrupted=alone)
    shows_phase = bool(debate.phase) and debate.status not in _ENDED
    yield f"Debate     {debate.id}"
    yield f"Status     {status}{f' ({phase_words(debate.phase)})' if shows_phase else ''}"
    yield f"Question   {_short(debate.spec.question)}"
    yield f"Agents     {', '.join(each.agent.id for each in debate.spec.agents)}"
    yield f"Judge      {debate.spec.judge.agent.id}"
    yield f"Rounds     {debate.current_round} of {debate.spec.rounds}{f'; {early}' if early else ''}"
    if debate.HasField("first_draft_vote"):
        yield f"Vote       over the first drafts: {vote_text(debate.first_draft_vote)}"
    yield f"Created    {moment(debate.created_at)}"
    yield f"Updated    {moment(debate.updated_at)}"
    usage = debate.usage
    cost = f", {cost_text(usage.cost_micros)}" if usage.HasField("cost_micros") else ""
    yield f"Calls      {debate.calls}, {usage.input_tokens + usage.output_tokens:,} tokens{cost}"
    if debate.HasField("waiting"):
        waiting = debate.waiting
        whom = "a person" if waiting.checkpoint else f"{waiting.agent_id} ({waiting.reason})"
        yield f"Waits      for {whom} until {moment(waiting.until)}: {waiting.message}"
        if waiting.checkpoint and not alone:
            yield f"Answer     {answer_hint(debate.id, waiting.checkpoint, server)}"
    if debate.ended_by:
        yield f"Limit      {ending_text(debate.ended_by)}"
    for warning in debate.warnings:
        yield f"Warning    {warning}"
    for line in failure_lines(debate.failures):
        yield f"Failed     {line}"
    if debate.HasField("failure"):
        yield f"Why        {debate.failure.reason}: {debate.failure.message}"
    if status == "interrupted" or debate.status in _RESTING:
        yield f"Go on      {command()} debate --resume {debate.id}"
    if debate.HasField("solution"):
        yield ""
        yield solution_text(debate.solution).rstrip("\n")


def _status(status: DebateStatus.ValueType, *, interrupted: bool) -> str:
    """The status in a word; `interrupted` where nobody is there to run what should run."""
    if interrupted and status in _MOVING:
        return "interrupted"
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
