"""A replica's debates: it claims those that need an owner, runs them, and gives them up when it drains.

Leases only decide how soon another replica takes over. That two never write the same debate is the log's doing.
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass

from parley.orchestrator.events import CorruptEventError
from parley.orchestrator.inbox import Wish
from parley.orchestrator.journal import ClaimLostError
from parley.orchestrator.ownership import Ownership, Workshop
from parley.orchestrator.rows import CANCELLED, COMPLETED, Row
from parley.orchestrator.turns import in_turn
from parley.runtime.logs import get_logger, labelled
from parley.storage.ports import StorageError

__all__ = ["Runner", "RunnerSettings"]

_logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """How a replica takes debates on.

    Attributes:
        lease_seconds: How long an owner may show no life before another replica claims.
        poll_seconds: Time between two looks at the store for debates and wishes.
        most_debates: Debates run at a time, and as many more that are owned for a moment: they have ended, or there is
            no room to run them and only wishes are taken up.
        exclusive: Whether no other process can use the store, so that any other owner is known to be gone.
        adopt: Whether debates are taken on that were neither made here nor wished for.
    """

    lease_seconds: float = 15.0
    poll_seconds: float = 1.0
    most_debates: int = 64
    exclusive: bool = False
    adopt: bool = True


@dataclass(frozen=True, slots=True)
class _Seen:
    owner: str | None
    beat: int
    at: float


class Runner:
    """Runs this replica's debates while `run` runs."""

    def __init__(self, workshop: Workshop, settings: RunnerSettings) -> None:
        """Own debates under the workshop's owner name, which is new for every process."""
        self._shop = workshop
        self._settings = settings
        self._owned: dict[str, tuple[Ownership, asyncio.Task[None]]] = {}
        self._seen: dict[str, _Seen] = {}
        self._not_before: dict[str, float] = {}
        self._expected: set[str] = set()
        self._wake = asyncio.Event()
        self._queue_stands = False
        self._draining = False
        self._tasks: asyncio.TaskGroup | None = None
        self._giving_up: asyncio.Task[None] | None = None

    @property
    def owner(self) -> str:
        """The name this replica claims under."""
        return self._shop.owner

    @property
    def has_room(self) -> bool:
        """Whether a new debate may be run here at once: there is room, and no other debate waits for it.

        Those that have ended and only owe what follows take no room.
        """
        return self._room(brief=False) > 0 and not self._queue_stands

    @property
    def draining(self) -> bool:
        """Whether this replica stops and takes nothing on any more."""
        return self._draining

    def expect(self, row: Row) -> None:
        """Run a debate that was accepted here as soon as there is room for it."""
        self._expected.add(row.key)
        self.look()

    def look(self) -> None:
        """Look at the store now rather than at the next poll."""
        self._wake.set()

    async def run(self) -> None:
        """Look for debates and wishes until cancelled. A store that is away is waited for."""
        async with asyncio.TaskGroup() as self._tasks:
            while True:
                try:
                    await self._scan()
                except StorageError as error:
                    _logger.warning("store away; looking again soon", error=str(error))
                except Exception:
                    # One row that cannot be read must not end the watch over all others.
                    _logger.exception("a look at the store failed; looking again soon")
                try:
                    async with asyncio.timeout(self._settings.poll_seconds):
                        await self._wake.wait()
                except TimeoutError:
                    continue
                finally:
                    self._wake.clear()

    async def begin(self, row: Row) -> bool:
        """Own a new debate; true once its first event is durable, false where that is not known or there is no room."""
        if self._draining:
            return False
        # A scan that saw the row in the meantime may own it already.
        if row.key not in self._owned and not self.has_room:
            # Others took the room while the row was written; where a replica has some, the debate may begin there.
            await self._shop.rows.release(row, row.epoch)
            return False
        ownership, task = self._owned.get(row.key) or self._own(row, ())
        accepted = asyncio.ensure_future(ownership.accepted.wait())
        try:
            await asyncio.wait({accepted, task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            accepted.cancel()
        return ownership.accepted.is_set()

    async def drain(self) -> None:
        """Stop every debate where it stands and give it up; a second call waits for the first one's end."""
        if self._giving_up is None:
            self._giving_up = asyncio.create_task(self._give_up())
        await asyncio.shield(self._giving_up)

    async def _give_up(self) -> None:
        self._draining = True
        owned = list(self._owned.values())
        for _, task in owned:
            task.cancel()
        await asyncio.gather(*(task for _, task in owned), return_exceptions=True)
        await asyncio.gather(*(ownership.release() for ownership, _ in owned), return_exceptions=True)

    async def _scan(self) -> None:
        wishes: dict[str, list[Wish]] = {}
        for wish in await self._shop.inbox.waiting():
            wishes.setdefault(wish.debate, []).append(wish)
            if wish.debate in self._owned:
                self._owned[wish.debate][0].deliver(wish)
        rows = await self._shop.rows.open()
        self._forget({row.key for row in (*rows.owned, *rows.waiting)}, whole=rows.whole)
        seen = {row.key for row in (*rows.owned, *rows.waiting)}
        hidden = [await self._unseen(key, wishes[key]) for key in wishes if key not in seen]
        waiting = [
            row
            for row in (*rows.owned, *rows.waiting, *filter(None, hidden))
            if row.key not in self._owned and self._may_claim(row, wished=row.key in wishes)
        ]
        waits = {row.key for row in waiting}
        queued = False
        for row in in_turn(waiting, (row for row in rows.owned if row.key not in waits)):
            theirs = tuple(wishes.get(row.key, ()))
            if self._room(brief=_answered(row)):
                self._own(row, theirs)
            else:
                queued = queued or not _answered(row)
                if theirs and self._room(brief=True):
                    self._own(row, theirs, brief=True)
                    self._expected.add(row.key)
        self._queue_stands = queued

    async def _unseen(self, key: str, wishes: Sequence[Wish]) -> Row | None:
        """Return the row of a debate with wishes that is not in sight, if it needs an owner.

        Who put a wish in may be gone since, before it asked for an owner or learned that there will be none.
        """
        if key in self._owned:
            return None
        row = await self._shop.rows.by_key(key)
        if row is not None and row.open:
            return row
        if row is None or _answered(row):
            for wish in wishes:
                await self._shop.inbox.ended(wish.key)
        else:
            await self._shop.rows.reopen(row.tenant, row.debate)
        return None

    def _room(self, *, brief: bool) -> int:
        """How many more debates may be owned, of those that are soon done with or of those that are run."""
        if self._draining or self._tasks is None:
            return 0
        alike = sum(ownership.brief is brief for ownership, _ in self._owned.values())
        return max(self._settings.most_debates - alike, 0)

    def _may_claim(self, row: Row, *, wished: bool) -> bool:
        if self._shop.clock.monotonic() < self._not_before.get(row.key, 0.0):
            return False
        # What an answered debate owes costs no model call.
        ours = row.owner == self._shop.owner or row.key in self._expected
        if not (self._settings.adopt or wished or _answered(row) or ours):
            return False
        if row.owner is None or row.owner == self._shop.owner or self._settings.exclusive:
            return True
        now = self._shop.clock.monotonic()
        seen = self._seen.get(row.key)
        if seen is None or (seen.owner, seen.beat) != (row.owner, row.beat):
            self._seen[row.key] = _Seen(row.owner, row.beat, now)
            return False
        return now - seen.at >= self._settings.lease_seconds

    def _leave_alone(self, row: Row, seconds: float) -> None:
        """Try this debate again only after a while: trouble that lasts must not become a loop."""
        self._not_before[row.key] = self._shop.clock.monotonic() + seconds

    def _forget(self, present: set[str], *, whole: bool) -> None:
        for known in (self._seen, self._not_before):
            for key in known.keys() - present:
                del known[key]
        if whole:  # else one that is expected may just not be in sight
            self._expected &= present

    def _own(
        self, row: Row, wishes: tuple[Wish, ...], *, brief: bool = False
    ) -> tuple[Ownership, asyncio.Task[None]]:
        assert self._tasks is not None
        ownership = Ownership(row, self._shop, wishes, brief=brief)
        # A context of its own: the deadline and the span of the request that made it are not the debate's.
        task = self._tasks.create_task(self._run(row, ownership), context=Context())
        self._owned[row.key] = (ownership, task)
        return self._owned[row.key]

    async def _run(self, row: Row, ownership: Ownership) -> None:
        """Run one debate; whatever becomes of it, the others go on."""
        with labelled(tenant=row.tenant, debate=row.debate):
            try:
                await ownership.run()
            except ClaimLostError as lost:
                _logger.info("claim lost", reason=str(lost))
                # By then the row tells of the one that was faster; or it was the last write of one that is gone.
                self._leave_alone(row, self._settings.poll_seconds)
            except CorruptEventError as corrupt:
                _logger.error("debate cannot be run", error=str(corrupt))  # noqa: TRY400 - the message says it all
                self._leave_alone(row, self._settings.lease_seconds)
            except StorageError as error:
                _logger.warning("store away; the debate goes on when it is back", error=str(error))
                self._leave_alone(row, self._settings.lease_seconds)
            except Exception:
                _logger.exception("debate stopped by a fault of the orchestrator")
                self._leave_alone(row, self._settings.lease_seconds)
            finally:
                self._owned.pop(row.key, None)
                self._wake.set()


def _answered(row: Row) -> bool:
    return row.status in (COMPLETED, CANCELLED)
