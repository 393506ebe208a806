"""The commands and their options. What they do is in modules of their own, imported when asked for."""

from pathlib import Path
from typing import Any

import click

from parley.cli.parameters import Count, DebateId, debate_argument, run, server_option
from parley.cli.steering import COMMANDS

__all__ = ["parley"]

_PATH = click.Path(path_type=Path)


class _Commands(click.Group):
    """All commands; the help lists those that steer a debate apart."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes two lists of commands."""
        steering = [str(each.name) for each in COMMANDS]
        others = [name for name in self.list_commands(ctx) if name not in steering]
        width = max(map(len, self.commands))
        for title, names in (("Commands", others), ("Commands that steer a debate", steering)):
            with formatter.section(title):
                rows = [
                    (name.ljust(width), self.commands[name].get_short_help_str(formatter.width))
                    for name in names
                ]
                formatter.write_dl(rows)


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="parley", message="parley %(version)s")
def parley() -> None:
    """Put a question to several AI agents that debate it, and get an answer with a trace."""


@parley.command()
@click.argument("question", required=False)
@click.option(
    "--problem-description",
    "--problemDescription",
    metavar="FILE",
    type=_PATH,
    help="Read the question from a file.",
)
@click.option("--agents", metavar="A,B", help="Roles or ids of the agents that debate.")
@click.option("--format", metavar="NAME", help="Order of phases: panel. Default: panel.")
@click.option("--rounds", type=Count(100), metavar="N", help="Rounds. Default: 3.")
@click.option(
    "--config",
    metavar="FILE",
    type=_PATH,
    help="Agents, judge and settings. Default: ./parley.yaml, then ./debate-config.json.",
)
@click.option(
    "--context",
    metavar="DIR_OR_FILE",
    type=_PATH,
    help="Text files that the agents may read: all below a folder, or one.",
)
@click.option("--max-output-tokens", type=Count(1_000_000), metavar="N", help="Bound one contribution.")
@click.option(
    "--output", metavar="FILE", type=_PATH, help="Write the answer, or with .json the whole debate."
)
@click.option("--report", metavar="FILE", type=_PATH, help="Write a Markdown report too.")
@click.option(
    "--resume",
    metavar="ID",
    type=DebateId(),
    help="Go on with a debate that was paused, interrupted or failed.",
)
@click.option("--verbose", is_flag=True, help="Tell round by round what was said, and what it took.")
@server_option("orchestrator")
def debate(**options: Any) -> int:
    """Hold a debate and print its answer."""
    from parley.cli.debating import DebateOptions, debate

    return debate(DebateOptions(**options))


@parley.command("list")
@click.option("--limit", type=Count(10_000), default=50, show_default=True, help="Debates at most.")
@server_option("orchestrator")
def list_debates(limit: int, server: str | None) -> None:
    """List debates, newest first."""
    from parley.cli import looking

    run(looking.list_debates(server, limit))


@parley.command()
@debate_argument
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
@server_option("orchestrator")
def show(debate_id: str, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """Show how a debate stands, and its answer."""
    from parley.cli import looking

    run(looking.show(server, debate_id, as_json=as_json))


@parley.command()
@debate_argument
@click.option("--after", type=Count(10**9, 0), default=0, metavar="N", help="Only what came after event N.")
@server_option("orchestrator")
def watch(debate_id: str, after: int, server: str | None) -> None:
    """Follow a debate, event by event and word by word."""
    from parley.cli import looking

    run(looking.watch(server, debate_id, after))


@parley.command()
@debate_argument
@click.option("--output", metavar="FILE", type=_PATH, help="Write it to a file.")
@server_option("orchestrator")
def report(debate_id: str, output: Path | None, server: str | None) -> None:
    """Print a debate's report as Markdown."""
    from parley.cli import looking

    run(looking.report(server, debate_id, output))


@parley.command()
@click.option("--config", metavar="FILE", type=_PATH, help="As for debate.")
@server_option("gateway")
def agents(config: Path | None, server: str | None) -> None:
    """List the agents, and the routes with the state of their breakers."""
    from parley.cli import looking

    run(looking.agents(server, config))


@parley.command()
@click.option("--domain", default="", metavar="NAME", help="Ratings in this domain. Default: overall.")
@server_option("ratings service")
def ratings(domain: str, server: str | None) -> None:
    """List how agents have done against each other, best first."""
    from parley.cli import looking

    run(looking.ratings(server, domain))


@parley.command()
@click.option("--config", metavar="FILE", type=_PATH, help="As for debate.")
def up(config: Path | None) -> None:
    """Run the whole system on loopback ports until stopped."""
    from parley.cli import serving

    run(serving.up(config))


@parley.command()
@click.argument("service")
def serve(service: str) -> None:
    """Run one service in this process; its settings are PARLEY_ variables."""
    from parley.cli import serving

    serving.serve(service)


@parley.command("config-schema")
def config_schema() -> None:
    """Print the JSON Schema of the configuration file."""
    from importlib.resources import files

    click.echo(files("parley.config").joinpath("schema.json").read_text("utf-8"), nl=False)


for _command in COMMANDS:
    parley.add_command(_command)
