"""The commands about API keys, and their options."""

import click

from parley.cli.execute import execute
from parley.cli.input.parameters import json_option, server_option

__all__ = ["api_keys"]

_server = server_option("orchestrator", "the store that PARLEY_STORE names")


@click.group("keys")
def api_keys() -> None:
    """Make, list and revoke API keys, in the store that PARLEY_STORE names or at a server."""


@api_keys.command("add")
@click.argument("name")
@click.option(
    "--tenant",
    metavar="NAME",
    help="Whose debates it sees. Default: default; at a server, the tenant of PARLEY_TOKEN.",
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
@_server
def add_key(name: str, tenant: str | None, roles: tuple[str, ...], server: str | None) -> None:
    """Make a key and print it, this once; NAME says who has it."""
    from parley.cli.commands import keys

    execute(keys.add_key(server, name, tenant, roles))


@api_keys.command("list")
@click.option("--tenant", metavar="NAME", help="Only this tenant's.")
@json_option
@_server
def list_keys(tenant: str | None, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """List the keys, without what lets anybody in."""
    from parley.cli.commands import keys

    execute(keys.list_keys(server, tenant, as_json=as_json))


@api_keys.command("revoke")
@click.argument("key_id", metavar="ID")
@_server
def revoke_key(key_id: str, server: str | None) -> None:
    """Revoke a key by its id."""
    from parley.cli.commands import keys

    execute(keys.revoke_key(server, key_id))
