"""Accepting debates and wishes: the writes that a caller's answer stands for."""

import asyncio
from dataclasses import dataclass

import grpc

from parley.orchestrator.canonical import canonical_json
from parley.orchestrator.envelope import Draft
from parley.orchestrator.events import DebateCreated, Intervened, decode, encode
from parley.orchestrator.ids import new_debate_id
from parley.orchestrator.inbox import ENDED, RECORDED, REFUSED, Inbox, Wish
from parley.orchestrator.journal import Journal
from parley.orchestrator.rows import CANCELLED, COMPLETED, PENDING, Row, Rows, row_key
from parley.orchestrator.runner import Runner
from parley.orchestrator.spec import DebateSpec
from parley.runtime.clock import Clock
from parley.runtime.errors import (
    DRAINING,
    FieldViolation,
    ParleyError,
    failed_precondition,
    invalid_argument,
    not_found,
    unavailable,
)
from parley.runtime.telemetry import inject
from parley.storage.ports import DuplicateError, Log

__all__ = ["Accepting"]

_SHOWN_QUESTION = 200
_MOST_STORED_BYTES = 14_000_000
"""What every store keeps in one document or record, less what stands around a debate's first event."""
_FIRST_LOOK_SECONDS = 0.01
_LONGEST_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Accepting:
    """Takes debates and wishes in."""

    log: Log
    rows: Rows
    inbox: Inbox
    runner: Runner
    clock: Clock

    async def debate(
        self, tenant: str, request_id: str, request_digest: str, spec: DebateSpec
    ) -> tuple[str, bool]:
        """Accept a debate; return its id, and whether an earlier request had made it. It is durable then.

        Raises:
            ParleyError: the request id stands for something else, the debate is too large to be stored, or the store is
                away.
        """
        now = self.clock.now()
        debate = new_debate_id(now)
        created = now.isoformat(timespec="microseconds")
        opening = encode(DebateCreated(request_id, spec, inject().get("traceparent", "")))
        _check_size(opening)
        row = Row(
            tenant=tenant,
            debate=debate,
            request_id=request_id,
            request_digest=request_digest,
            format=spec.format,
            status=PENDING,
            open=True,
            owner=self.runner.owner if self.runner.has_room else None,
            epoch=0,
            beat=0,
            created=f"{created}/{debate}",
            updated=created,
            question=spec.question[:_SHOWN_QUESTION],
            opening=opening,
        )
        try:
            await self.rows.insert(row)
        except DuplicateError:
            return await self._earlier(row), True
        if row.owner is None or not await self.runner.begin(row):
            # No room, or the claim was not the first to write: the same request may have come twice at once.
            await self._open(row)
            self.runner.expect(row)
        return debate, False

    async def wish(self, tenant: str, debate: str, wish: Intervened) -> int:
        """Put a wish to a debate and return the sequence of the event that records it.

        Raises:
            ParleyError: there is no such debate, it ended first, the checkpoint that the wish names is not open, or the
                request id stands for another wish.
        """
        row, now = row_key(tenant, debate), self.clock.now().isoformat(timespec="microseconds")
        asked = Wish(row, f"{now}/{row}/{wish.request_id}", wish)
        known = await self.inbox.get(asked.key)
        if known is None:
            await self._refuse_ended(tenant, debate)
        if not await self.inbox.put(asked):
            raise _reused("wish", wish.request_id, f"request id {wish.request_id!r} stands for another wish")
        await self.rows.reopen(tenant, debate)
        self.runner.look()
        return await self._answer(tenant, debate, asked.key)

    async def _earlier(self, row: Row) -> str:
        earlier = await self.rows.by_request(row.tenant, row.request_id)
        if earlier is None or earlier.request_digest != row.request_digest:
            message = f"request id {row.request_id!r} stands for a debate with other content"
            raise _reused("debate", row.request_id, message)
        if earlier.opening:
            await self._open(earlier)
        return earlier.debate

    async def _open(self, row: Row) -> None:
        """Make the acceptance of a debate durable without running it here."""
        journal = Journal(self.log, self.clock, row.tenant, row.debate)
        opening = decode("debate_created", row.opening)
        assert opening is not None
        await journal.open(Draft("created", opening))
        await self.rows.opened(row)
        self.runner.look()

    async def _refuse_ended(self, tenant: str, debate: str) -> None:
        row = await self.rows.get(tenant, debate)
        if row is None:
            raise not_found("debate", debate)
        if row.status in (COMPLETED, CANCELLED):
            raise failed_precondition("DEBATE_ENDED", f"debate {debate} has ended")

    async def _answer(self, tenant: str, debate: str, key: str) -> int:
        wait = _FIRST_LOOK_SECONDS
        while True:
            if self.runner.draining:
                raise unavailable(
                    DRAINING, "this server is stopping; send the same wish again", retry_after=0.1
                )
            wish = await self.inbox.get(key)
            if wish is not None and wish.state == RECORDED:
                return wish.sequence
            if wish is not None and wish.state == REFUSED:
                raise _closed(debate, wish.wish.checkpoint)
            if wish is None or wish.state == ENDED:
                raise failed_precondition(
                    "DEBATE_ENDED", f"debate {debate} ended before the wish was taken up"
                )
            row = await self.rows.get(tenant, debate)
            if row is not None and row.status in (COMPLETED, CANCELLED):
                # It ended after the last sweep of its inbox; nobody will take this wish up any more.
                await self.inbox.ended(key)
                continue
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_LOOK_SECONDS)


def _check_size(opening: str) -> None:
    """Refuse a debate whose first event is too large. It is stored as text within text, with escapes of escapes."""
    size = len(canonical_json(opening).encode())
    if size > _MOST_STORED_BYTES:
        message = (
            f"takes {size} bytes to store, more than {_MOST_STORED_BYTES}; quotation marks, backslashes and control"
            " characters take several bytes each"
        )
        raise invalid_argument([FieldViolation("spec", message)])


def _closed(debate: str, checkpoint: str) -> ParleyError:
    message = f"checkpoint {checkpoint} of debate {debate} is not open; nothing was recorded"
    return failed_precondition("CHECKPOINT_CLOSED", message, {"checkpoint": checkpoint})


def _reused(kind: str, request_id: str, message: str) -> ParleyError:
    return ParleyError(
        grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED", message, resource=(kind, request_id)
    )
