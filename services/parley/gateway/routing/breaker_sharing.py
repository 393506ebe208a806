"""Breakers shared by replicas: a document for each route has the last change, and the replica that runs a trial.

Each replica's breaker stays its own and right by itself. What another replica found out is taken over within a second
or so, counted from the moment it was read, so that no two clocks are compared. While the store does not answer,
every replica goes by what it sees.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from parley.gateway.routing.breaker import BreakerState, RouteBreaker
from parley.gateway.routing.route import LiveRoute
from parley.gateway.routing.table import RouteTable
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.storage.ports import Collection, Document, Documents, DuplicateError, Fields, Index, StorageError

_BREAKERS: Final = Collection("breakers", superseded=(Index(("touched_ms",)),))
_TURN_SECONDS: Final = 1.0
_CLAIM_SECONDS: Final = 1.0
"""How long a trial waits for the store before it goes out without asking."""
_MAX_ROUTES: Final = 4096
"""Routes that are shared; since clients name models as they like, further ones are not."""
_FORGOTTEN_SECONDS: Final = 3600.0
"""A breaker without news for this long is taken out of the store, unless it is open and its route in use here."""

_logger = get_logger(__name__)


class _SharedState(Struct):
    """What this replica and the store last agreed on about a route.

    `version` is the document's, 0 without one, and was new at `since`; `generation` is of `breaker`. `trial` is who had
    a trial out, seen first at `trial_since`.
    """

    version: int = 0
    since: float = 0.0
    generation: int = 0
    breaker: RouteBreaker | None = None
    trial: str | None = None
    trial_since: float = 0.0


class BreakerSharing:
    """The breakers of a table, shared under this replica's name.

    `trial_seconds` is how long a trial of a replica that fell silent is respected. What was written before `prepare`
    is not taken over: a restart, with a new key perhaps, is a fresh look.
    """

    def __init__(
        self, documents: Documents, table: RouteTable, clock: Clock, replica: str, *, trial_seconds: float
    ) -> None:
        self._documents = documents
        self._table = table
        self._clock = clock
        self._replica = replica
        self._trial_seconds = trial_seconds
        self._known: dict[str, _SharedState] = {}
        self._full = False
        self._away = False
        self._turn = asyncio.Lock()  # else a claim could take this replica's own news for another's

    async def prepare(self) -> None:
        """Make the collection if it is missing, and note what is in it."""
        await self._documents.prepare(_BREAKERS)
        for found in await self._documents.find(_BREAKERS, {}, limit=_MAX_ROUTES):
            fields: Mapping[str, Any] = found.fields
            now = self._clock.monotonic()
            self._known[found.key] = _SharedState(
                fields["version"], since=now, trial=fields["trial"], trial_since=now
            )

    async def run(self) -> None:
        """Publish changes at once and adopt those of others every second, for ever."""
        async with self._table.watch() as watcher:
            while True:
                try:
                    async with asyncio.timeout(_TURN_SECONDS):
                        await watcher.wake.wait()
                except TimeoutError:
                    pass
                watcher.wake.clear()
                watcher.changed = {}
                try:
                    await self.synchronize()
                    self._away = False
                except StorageError as error:
                    if not self._away:
                        _logger.warning(
                            "breakers are not shared: the store does not answer", error=str(error)
                        )
                    self._away = True
                for live in self._table.all_routes():
                    live.breaker.end_hold()

    async def synchronize(self) -> None:
        """Publish changes and adopt those of others, once. Raise StorageError."""
        async with self._turn:
            await self._publish_changes()
            await self._adopt_changes()

    async def may_send_trial(self, live: LiveRoute) -> bool:
        """Return whether this replica may send a trial to a half-open route: one of all replicas at a time."""
        if self._away:
            return True
        try:
            async with asyncio.timeout(_CLAIM_SECONDS), self._turn:
                return await self._claim_trial(live)
        except (StorageError, TimeoutError):
            return True

    async def _claim_trial(self, live: LiveRoute) -> bool:
        name = live.route.name
        known = self._get_known(live)
        if live.breaker.generation != known.generation:
            await self._publish(live, known)
        found = await self._documents.get(_BREAKERS, name)
        if found is None:
            return True
        fields: Mapping[str, Any] = found.fields
        self._adopt(name, live, fields)
        trial = fields["trial"]
        respected = self._clock.monotonic() - known.trial_since < self._trial_seconds
        if fields["state"] != BreakerState.OPEN.value or (trial not in {None, self._replica} and respected):
            return False
        changes: Fields = {"trial": self._replica}
        return await self._documents.update(
            _BREAKERS, name, changes, {"version": fields["version"], "trial": trial}
        )

    async def _publish_changes(self) -> None:
        for live in self._table.all_routes():
            known = self._get_known(live)
            if live.breaker.generation != known.generation:
                await self._publish(live, known)
            elif known.trial == self._replica and not live.breaker.trial_in_flight:
                changes: Fields = {"trial": None}
                await self._documents.update(_BREAKERS, live.route.name, changes, {"trial": self._replica})
                known.trial = None

    async def _publish(self, live: LiveRoute, known: _SharedState) -> None:
        generation, state = live.breaker.generation, live.breaker.state
        if state is not BreakerState.HALF_OPEN:  # that is known from the trial
            fields: Fields = {
                "version": known.version + 1,
                "state": state.value,
                "said": live.breaker.snapshot().last_failure,
                "trial": None,
            }
            if await self._write(live.route.name, known, fields):
                known.version, known.trial = known.version + 1, None
                known.since = self._clock.monotonic()
        known.generation = generation

    async def _write(self, name: str, known: _SharedState, fields: Fields) -> bool:
        """Return whether the change was written first; if another replica's was, that is adopted next and holds."""
        if known.version:
            return await self._documents.update(_BREAKERS, name, fields, {"version": known.version})
        if self._full:
            return False
        try:
            await self._documents.insert(_BREAKERS, name, fields)
        except DuplicateError:
            return False
        return True

    async def _adopt_changes(self) -> None:
        stored = await self._documents.find(_BREAKERS, {}, limit=_MAX_ROUTES)
        self._full = len(stored) == _MAX_ROUTES
        for found in stored:
            # A route that this replica has not used yet is only worth having once there is news of it.
            noted = self._known.get(found.key)
            news = noted is None or found.fields["version"] != noted.version
            live = self._table.get(found.key) if news else self._table.find_known(found.key)
            self._adopt(found.key, live, found.fields)
        await self._sweep(stored)

    def _adopt(self, name: str, live: LiveRoute | None, fields: Mapping[str, Any]) -> None:
        known = self._known.setdefault(name, _SharedState()) if live is None else self._get_known(live)
        now = self._clock.monotonic()
        if fields["trial"] != known.trial:
            known.trial, known.trial_since = fields["trial"], now
        if fields["version"] == known.version:
            return
        known.version, known.since = fields["version"], now
        if live is not None:
            live.breaker.adopt(BreakerState(fields["state"]), fields["said"])
            known.generation = live.breaker.generation

    def _get_known(self, live: LiveRoute) -> _SharedState:
        known = self._known.setdefault(live.route.name, _SharedState())
        if known.breaker is not live.breaker:  # a new one, which has nothing to publish before it changes
            known.breaker, known.generation = live.breaker, 0
        return known

    async def _sweep(self, stored: Sequence[Document]) -> None:
        """Take old documents out of the store, and out of mind those that were taken out."""
        now = self._clock.monotonic()
        for found in stored:
            known = self._known[found.key]
            is_open = found.fields["state"] == BreakerState.OPEN.value
            in_use = is_open and self._table.find_known(found.key) is not None
            if not in_use and now - known.since > _FORGOTTEN_SECONDS:
                await self._documents.delete(_BREAKERS, found.key, {"version": known.version})
        for name in self._known.keys() - {found.key for found in stored}:
            if self._table.find_known(name) is None:
                del self._known[name]
            else:
                self._known[name].version, self._known[name].trial = 0, None
