"""What several commands take on their command line."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from parley.cli.command_name import command_name
from parley.cli.working_folder import trust_files

_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")
_TARGET: Final = re.compile(r"(dns|ipv4|ipv6|unix|unix-abstract|xds):\S+")

_ID_BEGUN: Final = re.compile(r"(deb-)?(?P<rest>\d{1,8}|\d{8}-(\d{0,6}|\d{6}-[a-z2-7]{0,8}))")
"""The beginning of an id, which is `deb-YYYYMMDD-HHMMSS-` and 8 characters; or all of it."""

Command = TypeVar("Command", bound=Callable[..., Any])


class Count(click.ParamType[int]):
    """A whole number in a range."""

    name = "number"

    def __init__(self, max_value: int, min_value: int = 1) -> None:
        self._min = min_value
        self._max = max_value

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; raise a usage error for anything else."""
        try:
            number = int(value)
        except ValueError:
            number = self._min - 1
        if not self._min <= number <= self._max:
            self.fail(f"must be a whole number, {self._min} to {self._max}", param, ctx)
        return number


class Speed(click.ParamType[float]):
    """How many times as fast something is played."""

    name = "speed"
    _MIN = 0.1
    _MAX = 1000

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; raise a usage error for anything else."""
        try:
            speed = float(value)
        except ValueError:
            speed = 0.0
        if not self._MIN <= speed <= self._MAX:  # so nor is what is no number
            self.fail(f"must be a number, {self._MIN} to {self._MAX}", param, ctx)
        return speed


class DebateId(click.ParamType[str]):
    """The id of a debate, or the beginning of one; `deb-` may be left out."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id, or its beginning; raise a usage error for a text that no id begins with."""
        begun = _ID_BEGUN.fullmatch(value)
        if begun is None:
            self.fail(f"{value!r} is not a debate id; {command_name()} list shows them", param, ctx)
        return f"deb-{begun['rest']}"


class RecordId(click.ParamType[str]):
    """The id of a record of some kind."""

    name = "id"

    def __init__(self, pattern: str, kind: str, listing: str) -> None:
        """Take what such an id looks like, the kind in a word, and the command that lists the records."""
        self._pattern = re.compile(pattern)
        self._kind = kind
        self._listing = listing

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id; raise a usage error for anything else."""
        if not self._pattern.fullmatch(value):
            self.fail(
                f"{value!r} is not the id of a {self._kind}; {command_name()} {self._listing} shows them",
                param,
                ctx,
            )
        return str(value)


HOOK_ID: Final = RecordId(r"hook-[0-9a-f]{12}", "hook", "hooks list")
DELIVERY_ID: Final = RecordId(r"dlv-[0-9a-f]{32}", "delivery", "hooks deliveries")


class Time(click.DateTime):
    """A day, or a time of a day."""

    def __init__(self) -> None:
        super().__init__(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the time; raise a usage error for anything else."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(
                f"must be a day such as 2026-11-28, or a time such as 2026-11-28T14:30:00, not {value!r}",
                param,
                ctx,
            )


class Pair(click.ParamType[tuple[str, str]]):
    """A name with a value: `NAME=VALUE`."""

    name = "pair"

    def __init__(self, example: str) -> None:
        self._example = example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return name and value; raise a usage error for anything else."""
        name, equals, text = value.partition("=")
        if not (name and equals):
            self.fail(f"must be NAME=VALUE, such as {self._example}, not {value!r}", param, ctx)
        return name, text


class FormatOption(click.Option):
    """The format of a debate; the help lists those that the configuration knows."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and what it means."""
        from parley.config.formats import DEFAULT, FORMATS  # heavy: only the help needs it

        self.help = f"Order of phases: {', '.join(each.name for each in FORMATS)}. Default: {DEFAULT.name}."
        return super().get_help_record(ctx)


class Address(click.ParamType[str]):
    """The address of a service: `HOST:PORT`, or a gRPC target such as `dns:///parley:7401`."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address; raise a usage error for any other text."""
        plain = _ADDRESS.fullmatch(value)
        if not (1 <= int(plain["port"]) <= 65535 if plain else _TARGET.fullmatch(value)):
            self.fail(f"must be HOST:PORT, such as 127.0.0.1:7401, not {value!r}", param, ctx)
        return str(value)


def debate_argument(decorated: Command) -> Command:
    """Add `ID`: the id of a debate, or its beginning."""
    return click.argument("debate_id", metavar="ID", type=DebateId())(decorated)


def json_option(decorated: Command) -> Command:
    """Add `--json`: the output for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")(decorated)


def label_option(what: str) -> Callable[[Command], Command]:
    """Return the option `--label NAME=VALUE`, which may be given more than once: `labels`, as pairs."""
    pair = Pair("team=payments")
    return click.option("--label", "labels", metavar="NAME=VALUE", type=pair, multiple=True, help=what)


def trust_option(decorated: Command) -> Command:
    """Add `--trust-config`: the files of this folder may name endpoints, keys and files from now on."""

    def trust(ctx: click.Context, _: click.Parameter, given: bool) -> None:  # noqa: FBT001
        if given:
            ctx.with_resource(trust_files())

    return click.option(
        "--trust-config",
        is_flag=True,
        expose_value=False,
        callback=trust,
        help="Trust this folder's configuration and .env, as they are, from now on.",
    )(decorated)


def server_option_with(default: str) -> Callable[[Command], Command]:
    """Return the option `--server ADDRESS`: a running orchestrator; `default` describes what is used without it."""
    return click.option(
        "--server",
        metavar="ADDRESS",
        type=Address(),
        help=f"HOST:PORT of a running orchestrator. Default: {default}.",
    )


server_option: Final = server_option_with("all services run in this process")
