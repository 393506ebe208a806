"""The commands that create, list and revoke API keys: in the store of PARLEY_STORE, or those of the caller's tenant at a server."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Struct

from parley.cli.command_name import suggest
from parley.cli.commands.connection import connect
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_line, print_text, say
from parley.cli.terminal.message_json import to_json
from parley.cli.terminal.tables import print_table
from parley.cli.terminal.words import enum_text, local_time_text
from parley.client import AccessRole, ApiKey, KeyBudget, ParleyClient, ParleyError
from parley.runtime.clock import SystemClock
from parley.runtime.identity.identity import is_tenant
from parley.runtime.identity.roles import roles_by_name
from parley.runtime.key_budgets import budget_fields

_PATIENCE: Final = 5.0
_FACTS: Final = ("made", "creator", "expires", "last_used", "tokens_per_day", "usd_per_day", "revoked")
_TIMES: Final = frozenset({"made", "expires", "last_used", "revoked"})
_TENANT: Final = "default"


class KeyOptions(Struct, frozen=True):
    """The options of a key to create.

    Attributes:
        name: Who has it.
        tenant: None: `default`, or at a server the caller's.
        days: After how many days it expires; None: it does not.
        tokens: What its debates may use in a day; None: what the tenant may.
        usd: As `tokens`, in US dollars.
    """

    name: str
    tenant: str | None
    roles: Sequence[str]
    days: int | None = None
    tokens: int | None = None
    usd: float | None = None

    def expires(self) -> datetime | None:
        """Return when a key that is created now expires."""
        return SystemClock().now() + timedelta(days=self.days) if self.days else None

    def budget(self) -> KeyBudget | None:
        """Return the budget, or None without one."""
        if self.tokens is None and self.usd is None:
            return None
        micros = round((self.usd or 0) * 1_000_000)
        return KeyBudget(tokens_per_day=self.tokens or 0, cost_micros_per_day=micros)


async def add_key(server: str | None, options: KeyOptions) -> None:
    """Create a key and print it, this once. Raise CommandError."""
    name = options.name
    if not name.strip() or len(name) > 64 or not name.isprintable():
        raise CommandError("NAME must be 1 to 64 characters on one line", INVALID_ARGUMENTS)
    key_id, text = await (_add_at_server(server, options) if server else _add_to_store(options))
    print_line(text)
    say(
        f"This is the only time that the key is shown. It is {key_id} in {suggest('keys list', server)}; send it as PARLEY_TOKEN."
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
            ["CREATED" if each == "made" else each.upper().replace("_", " ") for each in columns],
            *([_to_cell(each, key[each]) for each in columns] for key in found),
        ]
    )
    if not found:
        say("There is no key yet.")


async def revoke_key(server: str | None, key_id: str) -> None:
    """Revoke a key: it no longer grants access some seconds from now. Raise CommandError."""
    result = await (_revoke_at_server(server, key_id) if server else _revoke_in_store(key_id))
    say(f"Key {key_id} {result}; no service lets it in after 10 seconds.")


async def _add_to_store(options: KeyOptions) -> tuple[str, str]:
    tenant = _TENANT if options.tenant is None else options.tenant
    if not is_tenant(tenant):
        message = (
            "--tenant: must be 1 to 64 characters of A-Z a-z 0-9 . _ -, and begin with a letter or digit"
        )
        raise CommandError(message, INVALID_ARGUMENTS)
    from parley.local import open_own_keys

    async with open_own_keys() as keys:
        key, text = await keys.add(
            tenant,
            options.name,
            roles_by_name(options.roles),
            SystemClock().now(),
            expires=options.expires(),
            budget=options.budget(),
        )
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
            raise _unknown_key_error(key_id, None)
    return "is revoked" if revoked else "was revoked before"


async def _add_at_server(server: str, options: KeyOptions) -> tuple[str, str]:
    async with _connect_as_tenant(server, options.tenant) as parley:
        made = await parley.create_key(
            options.name,
            sorted(roles_by_name(options.roles)),
            expires=options.expires(),
            budget=options.budget(),
        )
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
                raise _unknown_key_error(key_id, server) from None
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
        **budget_fields(key.budget),
        "revoked": _time(key, "revoke_time"),
    }


def _to_cell(column: str, text: str) -> str:
    """Return the text of a table: times as in every other one, on this machine's clock."""
    if column not in _TIMES or text == "-":
        return text
    time = Timestamp()
    time.FromJsonString(text)
    return local_time_text(time)


def _time(key: ApiKey, field: str) -> str:
    if not key.HasField(field):  # type: ignore[arg-type] # the name of a field that every caller knows
        return "-"
    time: datetime = getattr(key, field).ToDatetime(UTC)
    return time.isoformat(timespec="microseconds")


def _unknown_key_error(key_id: str, server: str | None) -> CommandError:
    return CommandError(f"no key {key_id!r}; {suggest('keys list', server)} shows them", GENERAL)
