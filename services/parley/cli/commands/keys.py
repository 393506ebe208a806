"""The commands that create, list and revoke API keys: in the store of PARLEY_STORE, or those of the caller's tenant at a server."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import grpc

from parley.cli.command_name import command_name
from parley.cli.commands.connection import connect
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_line, print_text, say
from parley.cli.terminal.message_json import to_json
from parley.cli.terminal.tables import print_table
from parley.cli.terminal.words import enum_text
from parley.client import AccessRole, ApiKey, ParleyClient, ParleyError
from parley.runtime.clock import SystemClock
from parley.runtime.identity.identity import is_tenant
from parley.runtime.identity.roles import roles_by_name

_PATIENCE: Final = 5.0
_FACTS: Final = ("made", "creator", "expires", "last_used", "revoked")
_TENANT: Final = "default"


async def add_key(
    server: str | None, name: str, tenant: str | None, roles: Sequence[str], days: int | None
) -> None:
    """Create a key that works for so many days (None: until it is revoked), and print it, this once. Raise CommandError."""
    if not name.strip() or len(name) > 64 or not name.isprintable():
        raise CommandError("NAME must be 1 to 64 characters on one line", INVALID_ARGUMENTS)
    expires = SystemClock().now() + timedelta(days=days) if days else None
    key_id, text = await (
        _add_at_server(server, name, tenant, roles, expires)
        if server
        else _add_to_store(name, tenant, roles, expires)
    )
    print_line(text)
    say(
        f"This is the only time that the key is shown. It is {key_id} in {command_name()} keys list; send it as PARLEY_TOKEN."
    )


async def list_keys(server: str | None, tenant: str | None, *, as_json: bool) -> None:
    """Print all keys, or those of a tenant. Raise CommandError."""
    found = await (_list_at_server(server, tenant) if server else _list_in_store(tenant))
    if as_json:
        print_text(to_json(found))
        return
    columns = ["id", *([] if server else ["tenant"]), "name", "roles", *_FACTS]
    print_table(
        [
            [each.upper().replace("_", " ") for each in columns],
            *([key[each] for each in columns] for key in found),
        ]
    )
    if not found:
        say("There is no key yet.")


async def revoke_key(server: str | None, key_id: str) -> None:
    """Revoke a key: it no longer grants access some seconds from now. Raise CommandError."""
    result = await (_revoke_at_server(server, key_id) if server else _revoke_in_store(key_id))
    say(f"Key {key_id} {result}; no service lets it in after 10 seconds.")


async def _add_to_store(
    name: str, tenant: str | None, roles: Sequence[str], expires: datetime | None
) -> tuple[str, str]:
    tenant = _TENANT if tenant is None else tenant
    if not is_tenant(tenant):
        message = (
            "--tenant: must be 1 to 64 characters of A-Z a-z 0-9 . _ -, and begin with a letter or digit"
        )
        raise CommandError(message, INVALID_ARGUMENTS)
    from parley.local import open_own_keys

    async with open_own_keys() as keys:
        key, text = await keys.add(tenant, name, roles_by_name(roles), SystemClock().now(), expires=expires)
    return key.id, text


async def _list_in_store(tenant: str | None) -> Sequence[Mapping[str, str]]:
    from parley.local import open_own_keys

    async with open_own_keys() as keys:
        return [each.visible_fields() for each in await keys.list_all(tenant)]


async def _revoke_in_store(key_id: str) -> str:
    from parley.local import open_own_keys

    async with open_own_keys() as keys:
        revoked = await keys.revoke(key_id, SystemClock().now())
        if not revoked and await keys.get(key_id) is None:
            raise _unknown_key_error(key_id)
    return "is revoked" if revoked else "was revoked before"


async def _add_at_server(
    server: str, name: str, tenant: str | None, roles: Sequence[str], expires: datetime | None
) -> tuple[str, str]:
    async with _connect_as_tenant(server, tenant) as parley:
        made = await parley.create_key(name, sorted(roles_by_name(roles)), expires=expires)
    return made.key.id, made.text


async def _list_at_server(server: str, tenant: str | None) -> Sequence[Mapping[str, str]]:
    async with _connect_as_tenant(server, tenant) as parley:
        return [_to_row(each) async for each in parley.list_keys()]


async def _revoke_at_server(server: str, key_id: str) -> str:
    async with _connect_as_tenant(server, None) as parley:
        try:
            await parley.revoke_key(key_id)
        except ParleyError as error:
            if error.code == grpc.StatusCode.NOT_FOUND:
                raise _unknown_key_error(key_id) from None
            raise
    return "is revoked"


@asynccontextmanager
async def _connect_as_tenant(server: str, tenant: str | None) -> AsyncIterator[ParleyClient]:
    """Yield a client for the keys of the caller's tenant. Raise CommandError if `tenant` is given."""
    if tenant is not None:
        message = "--tenant: a server takes the tenant from PARLEY_TOKEN; leave it out"
        raise CommandError(message, INVALID_ARGUMENTS)
    async with connect(server) as link, ParleyClient(link.orchestrator, patience=_PATIENCE) as parley:
        yield parley


def _to_row(key: ApiKey) -> Mapping[str, str]:
    """Return a key from a server as the row that a store would give."""
    return {
        "id": key.id,
        "name": key.name,
        "roles": ",".join(sorted(enum_text(AccessRole.DESCRIPTOR, each) for each in key.roles)),
        "made": _time(key, "create_time"),
        "creator": key.creator or "-",
        "expires": _time(key, "expire_time"),
        "last_used": _time(key, "last_use_time"),
        "revoked": _time(key, "revoke_time"),
    }


def _time(key: ApiKey, field: str) -> str:
    if not key.HasField(field):  # type: ignore[arg-type] # the name of a field that every caller knows
        return "-"
    time: datetime = getattr(key, field).ToDatetime(UTC)
    return time.isoformat(timespec="microseconds")


def _unknown_key_error(key_id: str) -> CommandError:
    return CommandError(f"no key {key_id!r}; {command_name()} keys list shows them", GENERAL)
