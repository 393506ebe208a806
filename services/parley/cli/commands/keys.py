"""The commands that make, list and revoke API keys, in the store that PARLEY_STORE names."""

from collections.abc import Sequence

from parley.cli.command_name import command_name
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_line, print_text, say
from parley.cli.terminal.message_json import dumped
from parley.cli.terminal.table import print_table
from parley.runtime.clock import SystemClock
from parley.runtime.identity.identity import is_tenant
from parley.runtime.identity.roles import roles_named

__all__ = ["add_key", "list_keys", "revoke_key"]


async def add_key(name: str, tenant: str, roles: Sequence[str]) -> None:
    """Make a key and print it, this once."""
    if not is_tenant(tenant):
        message = (
            "--tenant: must be 1 to 64 characters of A-Z a-z 0-9 . _ -, and begin with a letter or digit"
        )
        raise CommandError(message, INVALID_ARGUMENTS)
    if not name.strip() or len(name) > 64 or not name.isprintable():
        raise CommandError("NAME must be 1 to 64 characters on one line", INVALID_ARGUMENTS)
    from parley.local import own_keys

    async with own_keys() as keys:
        key, text = await keys.add(tenant, name, roles_named(roles), SystemClock().now())
    print_line(text)
    say(
        f"This is the only time that the key is shown. It is {key.id} in {command_name()} keys list; send it as PARLEY_TOKEN."
    )


async def list_keys(tenant: str | None, *, as_json: bool) -> None:
    """Print what is known of all keys, or a tenant's."""
    from parley.local import own_keys

    async with own_keys() as keys:
        found = await keys.list(tenant)
    if as_json:
        print_text(dumped([each.shown() for each in found]))
        return
    print_table(
        [
            ("ID", "TENANT", "NAME", "ROLES", "MADE", "REVOKED"),
            *(tuple(each.shown().values()) for each in found),
        ]
    )
    if not found:
        say("There is no key yet.")


async def revoke_key(key_id: str) -> None:
    """Revoke a key: nobody is let in with it any more, some seconds from now."""
    from parley.local import own_keys

    async with own_keys() as keys:
        revoked = await keys.revoke(key_id, SystemClock().now())
        known = revoked or await keys.get(key_id) is not None
    if not known:
        raise CommandError(f"no key {key_id!r}; {command_name()} keys list shows them", GENERAL)
    say(
        f"Key {key_id} {'is revoked' if revoked else 'was revoked before'}; no service lets it in after 10 seconds."
    )
