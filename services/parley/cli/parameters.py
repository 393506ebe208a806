"""What several commands take on their command line, and how a command is run."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import click

from parley.cli.naming import command

__all__ = ["Count", "DebateId", "debate_argument", "run", "server_option"]

_DEBATE_ID: Final = re.compile(r"deb-\d{8}-\d{6}-[a-z2-7]{8}")
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")
_TARGET: Final = re.compile(r"(dns|ipv4|ipv6|unix|unix-abstract|xds):\S+")

Command = TypeVar("Command", bound=Callable[..., Any])


class Count(click.ParamType[int]):
    """A whole number in a range."""

    name = "number"

    def __init__(self, most: int, least: int = 1) -> None:
        self._least = least
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error for anything else."""
        try:
            number = int(value)
        except ValueError:
            number = self._least - 1
        if not self._least <= number <= self._most:
            self.fail(f"must be a whole number, {self._least} to {self._most}", param, ctx)
        return number


class DebateId(click.ParamType[str]):
    """The id of a debate."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id; a usage error for anything that cannot be one."""
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


def debate_argument(decorated: Command) -> Command:
    """`ID`: the debate that a command is about."""
    return click.argument("debate_id", metavar="ID", type=DebateId())(decorated)


def server_option(
    what: str, otherwise: str = "everything runs in this process"
) -> Callable[[Command], Command]:
    """`--server ADDRESS`: where a running service answers, and what holds without."""
    return click.option(
        "--server",
        metavar="ADDRESS",
        type=_Address(),
        help=f"HOST:PORT of a running {what}. Default: {otherwise}.",
    )


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs what a command does. Raises CommandError."""
    from parley.cli.errors import translated

    with translated():
        asyncio.run(main)
