"""The commands that list agents and routes, roles, ratings and relationships."""

from pathlib import Path
from typing import Final, Literal

from parley.cli.command_name import suggest
from parley.cli.commands.connection import connect, connect_orchestrator, open_client, report_shared_system
from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.input.config_file import find_config
from parley.cli.printing import print_text, say
from parley.cli.terminal.message_json import json_value, message_to_json, to_json
from parley.cli.terminal.tables import agent_rows, print_table, route_rows
from parley.cli.terminal.words import local_time_text, to_line
from parley.v1.ratings_pb2 import MatchRecord, Rating

_PATIENCE: Final = 5.0


async def list_agents(server: str | None, config_path: Path | None, *, as_json: bool) -> None:
    """Print agents and routes."""
    if server is not None and config_path is not None:
        raise CommandError(
            "--config is read by the server itself; leave it out with --server", INVALID_ARGUMENTS
        )
    found = find_config(config_path) if server is None else None
    path = Path(found.places.name) if found is not None else None
    async with (
        connect(server, path, purpose="agents") as link,
        open_client(link, _PATIENCE) as parley,
    ):
        report_shared_system(link)
        listed = await parley.list_agents()
    if as_json:
        print_text(message_to_json(listed))
        return
    print_table(agent_rows(listed))
    print_text("\n")
    print_table(route_rows(listed))


_BUILT_IN: Final = "built-in"


def list_roles(config_path: Path | None, *, as_json: bool) -> None:
    """Print the roles of the configuration file and of the folder next to it, then the built-in ones."""
    from parley.local import list_roles as built_in_roles  # heavy: the command line's help needs none of it

    found = find_config(config_path)
    own = found.roles if found is not None else ()
    roles = [(each.name, each.aliases, each.source) for each in own]
    names = {name for name, _, _ in roles}
    roles += [(name, others, _BUILT_IN) for name, others in built_in_roles().items() if name not in names]
    if as_json:
        entries = [
            {"role": name, "aliases": list(others), "source": source} for name, others, source in roles
        ]
        print_text(to_json(entries))
    else:
        rows = [(name, ", ".join(others), source) for name, others, source in roles]
        print_table([("ROLE", "OTHER NAMES", "FROM"), *rows])


async def list_ratings(server: str | None, domain: str, *, as_json: bool) -> None:
    """Print the ratings of agents, best first."""
    async with connect_orchestrator(server, "ratings") as (_, parley):
        found = [each async for each in parley.list_ratings(domain)]
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    print_table(
        [
            (
                "AGENT",
                "RATING",
                "DEBATES",
                "DUELS",
                "WON",
                "DRAWN",
                "LOST",
                "JUDGED",
                "RIGHT",
                "BRIER",
                "ECE",
                "UP",
                "DOWN",
                "LAST MATCH",
            ),
            *map(_row, found),
        ]
    )
    if not found:
        say(f"No match is recorded {f'in the domain {domain}' if domain else 'yet'}.")


_OF_MATCHES: Final = ("DEBATE", "RECORDED", "DOMAIN", "SCORE", "RATING", "CHANGE", "CORRECTED")
_REASON_WIDTH: Final = 80


async def list_matches(server: str | None, agent_id: str, domain: str, *, as_json: bool) -> None:
    """Print the rated debates of an agent, the last recorded first, and what each did to its rating."""
    async with connect_orchestrator(server, "ratings") as (_, parley):
        found = [each async for each in parley.list_matches(agent_id, domain=domain)]
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    print_table([_OF_MATCHES, *(_match_row(each, agent_id) for each in found)])
    if not found:
        say(f"No match of {agent_id} is recorded {f'in the domain {domain}' if domain else 'yet'}.")


def _match_row(match: MatchRecord, agent_id: str) -> tuple[str, ...]:
    scores = {each.agent_id: f"{each.score:g}" for each in match.results}
    changes = {
        each.agent_id: (f"{each.after:.0f}", f"{each.after - each.before:+.1f}") for each in match.changes
    }
    return (
        match.debate_id,
        local_time_text(match.recorded_at),
        match.domain,
        scores.get(agent_id, "-"),
        *changes.get(agent_id, ("-", "-")),
        to_line(match.correction_reason, _REASON_WIDTH),
    )


_OF_RELATIONSHIPS: Final = ("AGENT", "DEBATES", "WON", "DRAWN", "LOST", "AGREED", "DISAGREED")


async def list_relationships(server: str | None, agent_id: str, *, as_json: bool) -> None:
    """Print how an agent gets along with others, those first with whom it has debated most."""
    async with connect_orchestrator(server, "ratings") as (_, parley):
        found = [each async for each in parley.list_relationships(agent_id)]
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    if not found:
        say(f"{agent_id} has met no other agent yet. Agents that have: {suggest('ratings', server)}")
        return
    rows = [
        (
            each.other_agent_id,
            *map(
                str,
                (each.debates, each.wins, each.draws, each.losses, each.agreements, each.disagreements),
            ),
        )
        for each in found
    ]
    print_table([_OF_RELATIONSHIPS, *rows])


def _row(rating: Rating) -> tuple[str, ...]:
    duels = rating.wins, rating.draws, rating.losses  # an agent has one with each other one of a debate
    return (
        rating.agent_id,
        f"{rating.elo:.0f}",
        str(rating.matches),
        str(sum(duels)),
        *map(str, duels),
        str(rating.judged_answers),
        str(rating.right_answers),
        _share(rating, "brier_score"),
        _share(rating, "expected_calibration_error"),
        str(rating.approvals),
        str(rating.disapprovals),
        local_time_text(rating.last_match_at),
    )


def _share(rating: Rating, name: Literal["brier_score", "expected_calibration_error"]) -> str:
    return f"{getattr(rating, name):.2f}" if rating.HasField(name) else "-"
