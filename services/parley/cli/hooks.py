"""The commands about hooks, which send what happens in debates to other systems, and their options."""

import click

from parley.cli.command_group import CommandGroup
from parley.cli.execute import execute
from parley.cli.input.parameters import DELIVERY_ID, HOOK_ID, Count, json_option, server_option

_EVENTS = ("concluded", "failed", "waiting", "budget-reached", "decision-reversed")
_STATES = ("pending", "delivered", "dead")
_hook_argument = click.argument("hook_id", metavar="ID", type=HOOK_ID)


@click.group("hooks", cls=CommandGroup)
def hooks() -> None:
    """Send what happens in debates to other systems."""


@hooks.command("add")
@click.argument("name")
@click.option("--webhook", metavar="URL", help="Send signed webhooks (Standard Webhooks) to a URL.")
@click.option("--slack", metavar="URL", help="Send to a channel of Slack, by its incoming webhook.")
@click.option("--teams", metavar="URL", help="The same of Microsoft Teams.")
@click.option("--discord", metavar="URL", help="The same of Discord.")
@click.option("--mattermost", metavar="URL", help="The same of Mattermost.")
@click.option(
    "--file", metavar="PATH", help="Append lines of JSON to a file below the folder that the operator allows."
)
@click.option("--mail", metavar="ADDRESS", help="Send mail, to a domain that the operator allows.")
@click.option("--stdout", is_flag=True, help="Print lines of JSON on the orchestrator's standard output.")
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice(_EVENTS),
    default=["concluded"],
    show_default=True,
    help="What is sent; may be given several times.",
)
@click.option(
    "--named-only", is_flag=True, help="Send only what happens in debates that name the hook (--hook)."
)
@click.option(
    "--links",
    is_flag=True,
    help="Let deliveries about a debate that waits carry links by which their readers answer, each once.",
)
@server_option
def add_hook(
    name: str,
    events: tuple[str, ...],
    stdout: bool,  # noqa: FBT001
    named_only: bool,  # noqa: FBT001
    links: bool,  # noqa: FBT001
    server: str | None,
    **places: str | None,
) -> None:
    """Create a hook, and print the secret that signs a webhook, this once. `-` as a URL is read from standard input."""
    from parley.cli.commands.hooks import HookOptions, create_hook

    given = {kind: place for kind, place in places.items() if place is not None}
    options = HookOptions(name, {**given, **({"stdout": ""} if stdout else {})}, events, named_only, links)
    execute(create_hook(server, options))


@hooks.command("list")
@json_option
@server_option
def list_(as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """List the hooks, without secrets."""
    from parley.cli.commands.hooks import list_hooks

    execute(list_hooks(server, as_json=as_json))


@hooks.command("remove")
@_hook_argument
@server_option
def remove(hook_id: str, server: str | None) -> None:
    """Delete a hook with its deliveries."""
    from parley.cli.commands.hooks import delete_hook

    execute(delete_hook(server, hook_id))


@hooks.command("rotate")
@_hook_argument
@server_option
def rotate(hook_id: str, server: str | None) -> None:
    """Give a webhook a new secret and print it, this once; for a day the old one signs too."""
    from parley.cli.commands.hooks import rotate_secret

    execute(rotate_secret(server, hook_id))


@hooks.command("test")
@_hook_argument
@server_option
def test(hook_id: str, server: str | None) -> None:
    """Send a test now, and say what came of it. A paused hook goes on if it arrives."""
    from parley.cli.commands.hooks import test_hook

    execute(test_hook(server, hook_id))


@hooks.command("deliveries")
@click.option("--hook", "hook_id", metavar="ID", type=HOOK_ID, help="Only those of one hook.")
@click.option("--state", type=click.Choice(_STATES), help="Only those in one state; dead are dead letters.")
@click.option("--limit", type=Count(1000), default=20, show_default=True, help="Deliveries at most.")
@json_option
@server_option
def deliveries(hook_id: str | None, state: str | None, limit: int, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """List what was sent, is to be sent, and could not be sent, newest first."""
    from parley.cli.commands.hooks import list_deliveries

    execute(list_deliveries(server, hook_id or "", state, limit, as_json=as_json))


@hooks.command("resend")
@click.argument("delivery_ids", metavar="ID...", type=DELIVERY_ID, nargs=-1, required=True)
@server_option
def resend(delivery_ids: tuple[str, ...], server: str | None) -> None:
    """Send deliveries again, such as dead letters."""
    from parley.cli.commands.hooks import resend_deliveries

    execute(resend_deliveries(server, delivery_ids))
