"""The commands that list agents, their roles, and how they do."""

from pathlib import Path
from typing import Final

import click

from parley.cli.execute import execute
from parley.cli.input.parameters import json_option, server_option, trust_option

_config_option = click.option(
    "-c", "--config", metavar="FILE", type=click.Path(path_type=Path), help="As for debate."
)


@click.command()
@_config_option
@json_option
@server_option
@trust_option
def agents(config: Path | None, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """List the agents, and the routes with the state of their breakers."""
    from parley.cli.commands.listings import list_agents

    execute(list_agents(server, config, as_json=as_json))


@click.command()
@_config_option
@json_option
@trust_option
def roles(config: Path | None, as_json: bool) -> None:  # noqa: FBT001
    """List the roles that agents can have, and where each comes from."""
    from parley.cli.commands.listings import list_roles
    from parley.cli.translate_errors import translate_errors

    with translate_errors():
        list_roles(config, as_json=as_json)


@click.command()
@click.option("--domain", default="", metavar="NAME", help="Ratings in this domain. Default: overall.")
@click.option(
    "--agent",
    default="",
    metavar="ID",
    help="How the overall rating of this agent changed, debate by debate.",
)
@json_option
@server_option
def ratings(domain: str, agent: str, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """List the ratings of agents, best first, or how one came about, latest debate first."""
    from parley.cli.commands.listings import list_matches, list_ratings

    if agent:
        execute(list_matches(server, agent, domain, as_json=as_json))
    else:
        execute(list_ratings(server, domain, as_json=as_json))


@click.command()
@click.argument("agent_id", metavar="AGENT")
@json_option
@server_option
def relationships(agent_id: str, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """List how an agent gets along with others: who wins, and how often they agree."""
    from parley.cli.commands.listings import list_relationships

    execute(list_relationships(server, agent_id, as_json=as_json))


AGENT_COMMANDS: Final = (agents, roles, ratings, relationships)
