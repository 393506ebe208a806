"""The command that lists the audit log and verifies its chain."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from parley.cli.commands.connection import connect_orchestrator
from parley.cli.commands.pages import take_first
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_text, say
from parley.cli.terminal.message_json import json_value, to_json
from parley.cli.terminal.tables import print_table
from parley.cli.terminal.words import enum_text, local_time_text
from parley.client.audit import VerifiedAuditLog
from parley.v1.audit_pb2 import AUDIT_ACT_NONE, AUDIT_OUTCOME_STARTED, AuditAct, AuditEntry, AuditOutcome

_COLUMNS: Final = ("TIME", "SUBJECT", "ACT", "OUTCOME", "FROM", "ABOUT")
_PAGE: Final = 200


class AuditOptions(Struct, frozen=True):
    """Which entries are listed; without a value, all. Times are in UTC."""

    limit: int
    since: datetime | None = None
    before: datetime | None = None
    subject: str = ""
    debate_id: str = ""
    acts: Sequence[str] = ()
    noted_hash: str = ""
    """In hex: of an entry that the log must have."""


async def list_audit_entries(server: str | None, options: AuditOptions, *, as_json: bool) -> None:
    """Print entries of the audit log, newest first, and whether its chain is whole. Raise CommandError if it is not."""
    acts = [_find_act(each) for each in options.acts]
    noted_hash = _read_hash(options.noted_hash)
    async with connect_orchestrator(server) as (_, parley):
        listed = parley.list_audit_entries(
            since=options.since,
            before=options.before,
            subject=options.subject,
            debate_id=options.debate_id,
            acts=acts,
            page_size=min(options.limit, _PAGE),
        )
        found = await take_first(listed, options.limit + 1)
        verified = await parley.verify_audit_log(noted_hash)
    shown, more = found[: options.limit], len(found) > options.limit
    if as_json:
        chain = {
            "first": verified.first,
            "last": verified.last,
            "hash": verified.hash.hex(),
            "problem": verified.problem,
        }
        print_text(to_json({"entries": [json_value(each) for each in shown], "chain": chain}))
    else:
        print_table([_COLUMNS, *map(_row, without_starts(shown))])
        if more:
            say("Older entries are left out; --limit N shows more, --before TIME older ones.")
    _require_whole(verified, options.noted_hash)
    if not as_json:
        say(_describe(verified))


def _require_whole(verified: VerifiedAuditLog, noted_hash: str) -> None:
    """Raise CommandError if the log was changed, or lacks the entry with the hash that was noted, if one was."""
    if verified.problem:
        raise CommandError(f"the audit log was changed: {verified.problem}", GENERAL)
    if noted_hash and not verified.noted:
        message = (
            f"the audit log has no entry with the hash {noted_hash}: entries were cut off, or it was among those before "
            f"entry {verified.first} that were removed as they were old"
        )
        raise CommandError(message, GENERAL)


def without_starts(entries: Sequence[AuditEntry]) -> list[AuditEntry]:
    """Return the entries without those of acts whose end is among them."""
    ended = {each.started_sequence for each in entries}
    return [each for each in entries if each.outcome != AUDIT_OUTCOME_STARTED or each.sequence not in ended]


def _read_hash(text: str) -> bytes:
    if text and not re.fullmatch(r"[0-9a-f]{64}", text):
        raise CommandError("--holds: must be 64 hex digits, as `audit` prints them", INVALID_ARGUMENTS)
    return bytes.fromhex(text)


def _find_act(name: str) -> AuditAct.ValueType:
    known = {_act_text(each): each for each in AuditAct.values() if each}
    if name not in known:
        message = f"--act: {name!r} is no act; known: {', '.join(known)}"
        raise CommandError(message, INVALID_ARGUMENTS)
    return known[name]


def _act_text(act: AuditAct.ValueType) -> str:
    return enum_text(AuditAct.DESCRIPTOR, act).replace("_", "-")


def _row(entry: AuditEntry) -> tuple[str, ...]:
    outcome = enum_text(AuditOutcome.DESCRIPTOR, entry.outcome).replace("_", " ")
    return (
        local_time_text(entry.time),
        entry.subject or "-",
        entry.method if entry.act == AUDIT_ACT_NONE else _act_text(entry.act),
        f"{outcome}: {entry.reason}" if entry.reason else outcome,
        entry.peer or "-",
        " ".join(filter(None, (entry.target, entry.debate_id))) or "-",
    )


def _describe(verified: VerifiedAuditLog) -> str:
    if verified.last < verified.first:
        return "There is no act in the log."
    removed = "; those before were removed, as they were old" if verified.first > 1 else ""
    return (
        f"The chain is whole: entries {verified.first:,} to {verified.last:,}{removed}. "
        f"Its end is {verified.hash.hex()}."
    )
