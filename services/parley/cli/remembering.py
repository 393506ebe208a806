"""The commands about memory: what past debates decided, and forgetting it."""

import click

from parley.cli.command_group import CommandGroup
from parley.cli.execute import execute
from parley.cli.input.parameters import Count, debate_argument, json_option, server_option

_MOMENT_KINDS = ("lone-dissenter-won", "unanimous-flip", "reversal")


@click.group("memory", cls=CommandGroup)
def memory() -> None:
    """Search what past debates decided, read it, and forget it."""


@memory.command()
@click.argument("text")
@click.option("--limit", type=Count(100), default=10, show_default=True, help="Debates at most.")
@click.option("--domain", default="", metavar="NAME", help="Only debates of this domain. Default: all.")
@json_option
@server_option
def search(text: str, limit: int, domain: str, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """Find past debates that are like TEXT in meaning, best first."""
    from parley.cli.commands.memory import search_memory

    execute(search_memory(server, text, limit, domain, as_json=as_json))


@memory.command()
@debate_argument
@json_option
@server_option
def show(debate_id: str, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """Show all that is remembered of a debate."""
    from parley.cli.commands.memory import show_memory

    execute(show_memory(server, debate_id, as_json=as_json))


@memory.command()
@click.argument("text", default="")
@click.option("--limit", type=Count(500), default=20, show_default=True, help="Kinds of issue at most.")
@click.option("--domain", default="", metavar="NAME", help="Only of debates of this domain. Default: all.")
@click.option("--taken-up", is_flag=True, help="Only those that were taken up at least every second time.")
@json_option
@server_option
def patterns(
    text: str,
    limit: int,
    domain: str,
    taken_up: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    server: str | None,
) -> None:
    """List kinds of issue that debates raise: those most like TEXT, or those that were raised most often."""
    from parley.cli.commands.memory import list_patterns

    execute(list_patterns(server, text, limit, domain, only_successful=taken_up, as_json=as_json))


@memory.command()
@click.option("--agent", default="", metavar="ID", help="Only stands of this agent. Default: all.")
@click.option(
    "--flips", is_flag=True, help="Only stands that are opposed to an earlier one on the same matter."
)
@click.option("--limit", type=Count(500), default=20, show_default=True, help="Stands at most.")
@json_option
@server_option
def positions(
    agent: str,
    flips: bool,  # noqa: FBT001
    limit: int,
    as_json: bool,  # noqa: FBT001
    server: str | None,
) -> None:
    """List where agents stood in the end of debates, the latest first, and who changed sides."""
    from parley.cli.commands.memory import list_positions

    execute(list_positions(server, agent, limit, only_flips=flips, as_json=as_json))


@memory.command()
@click.option("--kind", type=click.Choice(_MOMENT_KINDS), help="Only moments of this kind. Default: all.")
@click.option("--limit", type=Count(500), default=20, show_default=True, help="Moments at most.")
@json_option
@server_option
def moments(kind: str | None, limit: int, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """List what stands out in debates, latest first: lone dissenters who won, unanimous flips, reversed decisions."""
    from parley.cli.commands.memory import list_moments

    execute(list_moments(server, kind, limit, as_json=as_json))


@memory.command()
@debate_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask. Needed without a terminal.")
@server_option
def forget(debate_id: str, yes: bool, server: str | None) -> None:  # noqa: FBT001
    """Forget a debate for good: no later debate is shown it. The debate itself stays."""
    from parley.cli.commands.memory import forget_memory

    execute(forget_memory(server, debate_id, is_sure=yes))
