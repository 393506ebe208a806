"""The commands that manage what is stored, debates and API keys, and their options."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from parley.cli.command_group import CommandGroup
from parley.cli.execute import execute
from parley.cli.input.parameters import (
    Address,
    Count,
    DebateId,
    Time,
    debate_argument,
    json_option,
    server_option,
    server_option_with,
)

_PATH: Final = click.Path(path_type=Path)


@click.command()
@debate_argument
@click.option("--ratings", is_flag=True, help="Also remove its match from the ratings of its agents.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask. Needed without a terminal.")
@server_option
def delete(debate_id: str, ratings: bool, yes: bool, server: str | None) -> None:  # noqa: FBT001
    """Delete a debate for good: its log, and what memory stores of it."""
    from parley.cli.commands.keep import delete_debate

    execute(delete_debate(server, debate_id, ratings=ratings, is_sure=yes))


@click.command()
@click.argument("debate_ids", metavar="[ID]...", type=DebateId(), nargs=-1)
@click.option("-o", "--output", metavar="FILE", type=_PATH, help="The file. Default: ID.zip, or debates.zip.")
@server_option
def export(debate_ids: Sequence[str], output: Path | None, server: str | None) -> None:
    """Write all debates, or those named, into a ZIP file: log, answer, report, and a receipt that anyone can verify."""
    from parley.cli.commands.keep import export_debates

    execute(export_debates(server, output, debate_ids))


@click.command("import")
@click.argument("file", type=_PATH)
@click.option(
    "--keys",
    metavar="FILE",
    type=_PATH,
    help="Public keys that you trust: a list (JWKS), or one in PEM. Default: the one in the archive.",
)
@server_option
def import_(file: Path, keys: Path | None, server: str | None) -> None:
    """Keep debates of another system, from a file that `export` wrote: verified, to be read only."""
    from parley.cli.commands.receipts import import_debates

    execute(import_debates(server, file, keys))


@click.command()
@click.argument("folder", type=_PATH)
def backup(folder: Path) -> None:
    """Copy the data on this machine into a new folder, also while Parley runs."""
    from parley.cli.commands.keep import back_up_data

    execute(back_up_data(folder))


@click.command()
@click.argument("folder", type=_PATH)
def restore(folder: Path) -> None:
    """Restore a backup, if this machine has no data."""
    from parley.cli.commands.keep import restore_data

    execute(restore_data(folder))


@click.command()
def rewrap() -> None:
    """Wrap the keys of encrypted data by the newest of PARLEY_ENCRYPTION_KEYS, also while Parley runs."""
    from parley.cli.commands.keep import rewrap_data_keys

    execute(rewrap_data_keys())


@click.command("open")
@click.argument("debate_id", metavar="[ID]", type=DebateId(), required=False)
@click.option(
    "--edge",
    metavar="URL",
    help="Where the console is. Default: that of your own parley up, or at the port before --server's.",
)
@click.option(
    "--server",
    metavar="ADDRESS",
    type=Address(),
    help="HOST:PORT of its orchestrator, whose key or token signs you in. Default: that of your own parley up, or at the port after --edge's.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the link, and open no browser.")
def open_(debate_id: str | None, edge: str | None, server: str | None, only_print: bool) -> None:  # noqa: FBT001
    """Open the console in a browser, signed in by a link that works once."""
    from parley.cli.commands.console import open_console

    execute(open_console(edge, server, debate_id, only_print=only_print))


_store_option = server_option_with("the store of PARLEY_STORE")


@click.group("keys", cls=CommandGroup)
def api_keys() -> None:
    """Create, list and revoke API keys, in the store of PARLEY_STORE or at a server."""


@api_keys.command("add")
@click.argument("name")
@click.option(
    "--tenant",
    metavar="NAME",
    help="The tenant whose debates it can access. Default: default; at a server, the tenant of PARLEY_TOKEN.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(["read", "debate", "steer", "admin"]),
    default=["debate", "steer"],
    show_default=True,
    help="What it may do; may be given several times.",
)
@click.option(
    "--expires-in",
    "days",
    metavar="DAYS",
    type=click.IntRange(1, 36_500),
    help="After how many days it no longer works. Default: it works until it is revoked.",
)
@click.option(
    "--tokens-per-day",
    "tokens",
    metavar="N",
    type=click.IntRange(1, 10**15),
    help="How many tokens its debates may use in a day (UTC). Default: what the tenant may.",
)
@click.option(
    "--usd-per-day",
    "usd",
    metavar="USD",
    type=click.FloatRange(0.01, 10**9),
    help="How much money its debates may use in a day (UTC). Default: what the tenant may.",
)
@_store_option
def add_key(
    name: str,
    tenant: str | None,
    roles: tuple[str, ...],
    days: int | None,
    tokens: int | None,
    usd: float | None,
    server: str | None,
) -> None:
    """Create a key and print it, this once; NAME says who has it."""
    from parley.cli.commands import keys

    execute(keys.add_key(server, keys.KeyOptions(name, tenant, roles, days, tokens, usd)))


@api_keys.command("list")
@click.option("--tenant", metavar="NAME", help="Only keys of this tenant.")
@json_option
@_store_option
def list_keys(tenant: str | None, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """List the keys, without their secret texts."""
    from parley.cli.commands import keys

    execute(keys.list_keys(server, tenant, as_json=as_json))


@api_keys.command("revoke")
@click.argument("key_id", metavar="ID")
@_store_option
def revoke_key(key_id: str, server: str | None) -> None:
    """Revoke a key by its id."""
    from parley.cli.commands import keys

    execute(keys.revoke_key(server, key_id))


@click.command("audit")
@click.option("--limit", type=Count(10_000), default=50, show_default=True, help="Entries at most.")
@click.option("--since", metavar="TIME", type=Time(), help="Only entries from this time on (UTC).")
@click.option("--before", metavar="TIME", type=Time(), help="Only entries before this time (UTC).")
@click.option("--subject", default="", metavar="NAME", help="Only what this caller did.")
@click.option("--debate", "debate_id", default="", metavar="ID", help="Only what was done with this debate.")
@click.option(
    "--act",
    "acts",
    metavar="NAME",
    multiple=True,
    help="Only acts of this kind, such as delete-debate; may be given several times.",
)
@click.option(
    "--holds",
    "noted_hash",
    default="",
    metavar="HASH",
    help="Fail unless the log has the entry with this hash, such as its end as printed earlier.",
)
@json_option
@server_option
def audit(as_json: bool, server: str | None, **options: Any) -> None:  # noqa: FBT001
    """List who did what, newest first, and say whether the log was changed."""
    from parley.cli.commands.audit import AuditOptions, list_audit_entries

    execute(list_audit_entries(server, AuditOptions(**options), as_json=as_json))


STORAGE_COMMANDS: Final = (delete, export, import_, backup, restore, rewrap)
SYSTEM_COMMANDS: Final = (open_, audit, api_keys)
