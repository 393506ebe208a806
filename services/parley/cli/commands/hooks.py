"""The commands that create, list, test and delete hooks, and show and resend their deliveries."""

import sys
from collections.abc import Mapping, Sequence

from msgspec import Struct

from parley.cli.command_name import suggest
from parley.cli.commands.connection import connect_orchestrator
from parley.cli.commands.pages import take_first
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_line, print_text, say
from parley.cli.terminal.message_json import json_value, to_json
from parley.cli.terminal.tables import print_table
from parley.cli.terminal.words import enum_text, local_time_text
from parley.client import ParleyError
from parley.v1.hook_pb2 import (
    DELIVERY_STATE_DEAD,
    ChatTarget,
    Delivery,
    DeliveryState,
    FileTarget,
    Hook,
    HookEvent,
    HookTarget,
    MailTarget,
    StdoutTarget,
    WebhookTarget,
)

_MAX_URL = 4096
_CHATS = frozenset({"slack", "teams", "discord", "mattermost"})


class HookOptions(Struct, frozen=True):
    """The options of a hook to create. `places`: where it sends to, by kind, such as `webhook`; right with one."""

    name: str
    places: Mapping[str, str]
    events: Sequence[str]
    named_only: bool
    one_time_links: bool = False

    def target(self) -> HookTarget:
        """Return where it sends to. Raise CommandError unless there is one place."""
        if len(self.places) != 1:
            message = "give one of --webhook, --slack, --teams, --discord, --mattermost, --mail, --file and --stdout"
            raise CommandError(message, INVALID_ARGUMENTS)
        [(kind, place)] = self.places.items()
        if place == "-":
            place = sys.stdin.readline(_MAX_URL).strip() if sys.stdin is not None else ""
        if kind == "webhook":
            return HookTarget(webhook=WebhookTarget(url=place))
        if kind in _CHATS:
            return HookTarget(chat=ChatTarget(kind=ChatTarget.Kind.Value(f"KIND_{kind.upper()}"), url=place))
        if kind == "mail":
            return HookTarget(mail=MailTarget(address=place))
        if kind == "file":
            return HookTarget(file=FileTarget(path=place))
        return HookTarget(stdout=StdoutTarget())

    def locate_refusal(self, error: ParleyError) -> Exception:
        """Return the refusal of the hook as an error that names the options."""
        [kind] = self.places
        options = {"target": f"--{kind}", "one_time_links": "--links"}
        lines = [
            f"{options.get(each.field.partition('.')[0], each.field)}: {each.description}"
            for each in error.violations
        ]
        return CommandError(lines[0], INVALID_ARGUMENTS, tuple(lines[1:])) if lines else error


async def create_hook(server: str | None, options: HookOptions) -> None:
    """Create a hook, and print its id, or the secret that signs it. Raise CommandError."""
    target = options.target()
    events = [HookEvent.Value(f"HOOK_EVENT_{_to_upper(each)}") for each in options.events]
    async with connect_orchestrator(server, "hooks") as (_, parley):
        try:
            made = await parley.create_hook(
                options.name,
                target,
                events,
                named_only=options.named_only,
                one_time_links=options.one_time_links,
            )
        except ParleyError as error:
            raise options.locate_refusal(error) from None
    if made.secret:
        print_line(made.secret)
        say(
            f"This is the only time that the secret of {made.hook.id} is shown; the receiver checks signatures with it."
        )
    else:
        print_line(made.hook.id)
    say(f"Whether it works: {suggest(f'hooks test {made.hook.id}', server)}")


async def list_hooks(server: str | None, *, as_json: bool) -> None:
    """Print all hooks. Raise CommandError."""
    async with connect_orchestrator(server) as (_, parley):
        found = [each async for each in parley.list_hooks()]
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    print_table([["ID", "NAME", "CREATED", "EVENTS", "PAUSED", "TARGET"], *map(_hook_row, found)])
    if not found:
        say("There is no hook yet.")


async def delete_hook(server: str | None, hook_id: str) -> None:
    """Delete a hook. Raise CommandError."""
    async with connect_orchestrator(server, "hooks") as (_, parley):
        await parley.delete_hook(hook_id)
    say(f"Hook {hook_id} is deleted, with its deliveries.")


async def rotate_secret(server: str | None, hook_id: str) -> None:
    """Print a new secret of a webhook, this once. Raise CommandError."""
    async with connect_orchestrator(server, "hooks") as (_, parley):
        made = await parley.rotate_hook_secret(hook_id)
    print_line(made.secret)
    say(
        f"This is the only time that it is shown. The old one signs too until {local_time_text(made.old_until)}."
    )


async def test_hook(server: str | None, hook_id: str) -> None:
    """Send a test to a hook. Raise CommandError if it does not arrive."""
    async with connect_orchestrator(server, "hooks") as (_, parley):
        error = await parley.test_hook(hook_id)
    if error:
        raise CommandError(f"the test did not arrive: {error}", GENERAL)
    say("The test arrived.")


async def list_deliveries(
    server: str | None, hook_id: str, state: str | None, limit: int, *, as_json: bool
) -> None:
    """Print deliveries, newest first. Raise CommandError."""
    wanted = DeliveryState.Value(f"DELIVERY_STATE_{_to_upper(state or 'unspecified')}")
    async with connect_orchestrator(server) as (_, parley):
        listed = parley.list_deliveries(hook_id=hook_id, state=wanted, page_size=min(limit, 200))
        found = await take_first(listed, limit)
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    head = ["ID", "CREATED", "HOOK", "DEBATE", "EVENT", "STATE", "TRIES", "ERROR"]
    print_table([head, *map(_delivery_row, found)])
    dead = next((each for each in found if each.state == DELIVERY_STATE_DEAD), None)
    if dead is not None:
        say(f"To send a dead letter again: {suggest(f'hooks resend {dead.id}', server)}")
    elif not found:
        say("There is no such delivery.")


async def resend_deliveries(server: str | None, delivery_ids: Sequence[str]) -> None:
    """Send deliveries again. Raise CommandError."""
    async with connect_orchestrator(server, "hooks") as (_, parley):
        for each in delivery_ids:
            await parley.resend_delivery(each)
            say(f"Delivery {each} is sent again.")


def _to_upper(word: str) -> str:
    return word.upper().replace("-", "_")


def _hook_row(hook: Hook) -> Sequence[str]:
    events = ",".join(enum_text(HookEvent.DESCRIPTOR, each).replace("_", "-") for each in hook.events)
    named = " (named only)" if hook.named_only else ""
    created = local_time_text(hook.create_time)
    return [hook.id, hook.name, created, f"{events}{named}", hook.paused or "-", _target_text(hook.target)]


def _target_text(target: HookTarget) -> str:
    match target.WhichOneof("target"):
        case "webhook":
            return target.webhook.url
        case "chat":
            return f"{enum_text(ChatTarget.Kind.DESCRIPTOR, target.chat.kind)} {target.chat.url}"
        case "mail":
            return f"mail {target.mail.address}"
        case "file":
            return f"file {target.file.path}"
        case kind:
            return kind or "-"


def _delivery_row(delivery: Delivery) -> Sequence[str]:
    return [
        delivery.id,
        local_time_text(delivery.create_time),
        delivery.hook_id,
        delivery.debate_id,
        enum_text(HookEvent.DESCRIPTOR, delivery.event).replace("_", "-"),
        enum_text(DeliveryState.DESCRIPTOR, delivery.state),
        str(delivery.tries),
        delivery.last_error or "-",
    ]
