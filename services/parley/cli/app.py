"""The commands and their options. What they do is in modules of their own, imported when asked for."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from parley.cli.naming import command

__all__ = ["parley"]

_PATH = click.Path(path_type=Path)
_DEBATE_ID: Final = re.compile(r"deb-\d{8}-\d{6}-[a-z2-7]{8}")
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")
_TARGET: Final = re.compile(r"(dns|ipv4|ipv6|unix|unix-abstract|xds):\S+")

Command = TypeVar("Command", bound=Callable[..., Any])


class _Count(click.ParamType[int]):
    """A whole number in a range."""

    name = "number"

    def __init__(self, most: int, least: int = 1) -> None:
        self._least = least
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            number = self._least - 1
        if not self._least <= number <= self._most:
            self.fail(f"must be a whole number, {self._least} to {self._most}", param, ctx)
        return number


class _DebateId(click.ParamType[str]):
    """The id of a debate."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _DEBATE_ID.fullmatch(value):
            self.fail(f"{value!r} is not a debate id; {command()} list shows them", param, ctx)
        return str(value)


class _Address(click.ParamType[str]):
    """Where a service answers: `HOST:PORT`, or a target of gRPC's such as `dns:///parley:7401`."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        plain = _ADDRESS.fullmatch(value)
        if not (1 <= int(plain["port"]) <= 65535 if plain else _TARGET.fullmatch(value)):
            self.fail(f"must be HOST:PORT, such as 127.0.0.1:7401, not {value!r}", param, ctx)
        return str(value)


def _server(what: str) -> Callable[[Command], Command]:
    return click.option(
        "--server",
        metavar="ADDRESS",
        type=_Address(),
        help=f"HOST:PORT of a running {what}. Default: everything runs in this process.",
    )


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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
@click.option("--rounds", type=_Count(100), metavar="N", help="Rounds. Default: 3.")
@click.option(
    "--config",
    metavar="FILE",
    type=_PATH,
    help="Agents, judge and settings. Default: ./parley.yaml, then ./debate-config.json.",
)
@click.option("--max-output-tokens", type=_Count(1_000_000), metavar="N", help="Bound one contribution.")
@click.option(
    "--output", metavar="FILE", type=_PATH, help="Write the answer, or with .json the whole debate."
)
@click.option("--report", metavar="FILE", type=_PATH, help="Write a Markdown report too.")
@click.option(
    "--resume",
    metavar="ID",
    type=_DebateId(),
    help="Go on with a debate that was paused, interrupted or failed.",
)
@click.option("--verbose", is_flag=True, help="Tell round by round what was said, and what it took.")
@_server("orchestrator")
def debate(**options: Any) -> int:
    """Hold a debate and print its answer."""
    from parley.cli.debating import DebateOptions, debate

    return debate(DebateOptions(**options))


@parley.command("list")
@click.option("--limit", type=_Count(10_000), default=50, show_default=True, help="Debates at most.")
@_server("orchestrator")
def list_debates(limit: int, server: str | None) -> None:
    """List debates, newest first."""
    from parley.cli import looking

    _run(looking.list_debates(server, limit))


@parley.command()
@click.argument("debate_id", metavar="ID", type=_DebateId())
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
@_server("orchestrator")
def show(debate_id: str, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """Show how a debate stands, and its answer."""
    from parley.cli import looking

    _run(looking.show(server, debate_id, as_json=as_json))


@parley.command()
@click.argument("debate_id", metavar="ID", type=_DebateId())
@click.option("--after", type=_Count(10**9, 0), default=0, metavar="N", help="Only what came after event N.")
@_server("orchestrator")
def watch(debate_id: str, after: int, server: str | None) -> None:
    """Follow a debate, event by event and word by word."""
    from parley.cli import looking

    _run(looking.watch(server, debate_id, after))


@parley.command()
@click.argument("debate_id", metavar="ID", type=_DebateId())
@click.option("--output", metavar="FILE", type=_PATH, help="Write it to a file.")
@_server("orchestrator")
def report(debate_id: str, output: Path | None, server: str | None) -> None:
    """Print a debate's report as Markdown."""
    from parley.cli import looking

    _run(looking.report(server, debate_id, output))


@parley.command()
@click.option("--config", metavar="FILE", type=_PATH, help="As for debate.")
@_server("gateway")
def agents(config: Path | None, server: str | None) -> None:
    """List the agents, and the routes with the state of their breakers."""
    from parley.cli import looking

    _run(looking.agents(server, config))


@parley.command()
@click.option("--domain", default="", metavar="NAME", help="Ratings in this domain. Default: overall.")
@_server("ratings service")
def ratings(domain: str, server: str | None) -> None:
    """List how agents have done against each other, best first."""
    from parley.cli import looking

    _run(looking.ratings(server, domain))


@parley.command()
@click.option("--config", metavar="FILE", type=_PATH, help="As for debate.")
def up(config: Path | None) -> None:
    """Run the whole system on loopback ports until stopped."""
    from parley.cli import serving

    _run(serving.up(config))


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


def _run(main: Coroutine[Any, Any, None]) -> None:
    from parley.cli.errors import translated

    with translated():
        asyncio.run(main)
