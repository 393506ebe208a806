"""A debate that is stopped wherever it can be: gone on with from every state that its store was ever in.

What an owner that stops leaves behind is what its store holds then. So the debate is held once, its store is copied at every
write to it, and a new owner goes on from each copy.
"""

import dataclasses
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from parley.orchestrator.engine import kept_steps
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.engine.running_code import name_running_code
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log import journal
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.peers.issue_tracker import IssueTracker
from parley.runtime.clock import Clock, SystemClock
from parley.storage.ports import Collection, Documents, Fields, Log, Record, Where
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import DebateCreated
from tests.support.checked_format import person
from tests.support.debate_logs import check_log, find_concluded, outcomes
from tests.support.flying_time import time_flies
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, backstage
from tests.support.passing_log import PassingLog
from tests.support.scripted_gateway import ScriptedGateway

_FILE = "parley.db"


@dataclass(frozen=True, slots=True)
class Play:
    """What is needed to hold a debate, and to go on with it.

    Attributes:
        gateway: Makes the gateway, which answers the same whenever it is asked.
        flying: Whether the debate waits for time to pass, and is spared that.
        issues: Where its decision becomes an issue.
        acts: What a person does at checkpoints with these keys, other than to let it go on.
    """

    spec: DebateCreated
    gateway: Callable[[], ScriptedGateway] = ScriptedGateway
    formats: Formats = field(default_factory=all_formats)
    flying: bool = False
    issues: IssueTracker | None = None
    acts: Mapping[str, str] = field(default_factory=dict)

    async def held(self, folder: Path) -> "Held":
        """Hold the debate undisturbed."""
        gateway = self.gateway()
        async with self._staged(folder / "whole", gateway, None) as (stage, clock):
            copies = _Copies(folder / "whole" / _FILE, folder, clock)
            store = replace(
                stage.store,
                log=_CopiedLog(stage.store.log, copies),
                documents=_CopiedDocuments(stage.store.documents, copies),
            )
            # Each event is a record of its own, and so a place to stop at.
            with patch.object(journal, "_BATCH", 1):
                async with (
                    dataclasses.replace(stage, store=store).replica(clock=clock) as replica,
                    person(stage, replica, self.acts),
                ):
                    debate = await replica.create(self.spec)
                    events = await stage.comes_to(debate, "COMPLETED")
        check_log(events)
        return Held(self, debate, events, gateway, copies.taken)

    async def gone_on_with(self, left: "Left", debate: str, code: str) -> list[Envelope]:
        """Let a new owner go on from what another one has left, and return the events once it is through.

        `code` names what it runs: if that is other code, it asks all again that is recorded.
        """
        gateway = self.gateway()
        with patch.object(kept_steps, "name_running_code", lambda: code):
            return await self._go_on(gateway, left, debate)

    async def _go_on(self, gateway: ScriptedGateway, left: "Left", debate: str) -> list[Envelope]:
        async with self._staged(left.folder, gateway, left.at) as (stage, clock):
            before = await stage.events(debate)
            async with stage.replica(clock=clock) as replica, person(stage, replica, self.acts):
                events = await stage.comes_to(debate, "COMPLETED")
        check_log(events)
        assert events[: len(before)] == before
        done = outcomes(before).keys()
        again = [asked.call for asked in gateway.calls if asked.call in done]
        assert not again, "what was recorded is not asked again"
        if not before or before[-1].kind != "closed":
            assert events[-1].epoch == (before[-1].epoch if before else 0) + 1
        return events

    @asynccontextmanager
    async def _staged(
        self, folder: Path, gateway: ScriptedGateway, at: datetime | None
    ) -> AsyncIterator[tuple[Backstage, Clock]]:
        async with AsyncExitStack() as stack:
            stage = await stack.enter_async_context(backstage(folder, gateway, self.formats))
            clock: Clock = SystemClock()
            if self.flying:
                manual = ManualClock(at) if at else ManualClock()
                clock = await stack.enter_async_context(time_flies(stage, manual))
            yield dataclasses.replace(stage, issues=self.issues), clock


@dataclass(frozen=True, slots=True)
class Left:
    """A copy of a store, in a folder, and what its owner's clock said then."""

    folder: Path
    at: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """A debate that was held undisturbed.

    Attributes:
        gateway: The one that was asked.
        left: What its store held after each write, in order.
    """

    play: Play
    debate: str
    events: Sequence[Envelope]
    gateway: ScriptedGateway
    left: Sequence[Left]

    @property
    def outcome(self) -> Outcome:
        return find_concluded(self.events).outcome

    async def ends_the_same_wherever_it_is_stopped(self, part: int = 0, of: int = 1) -> None:
        """Go on from each copy, or from each `of`-th beginning with number `part`, to the same outcomes and the same end."""
        for number, left in list(enumerate(self.left))[part::of]:
            code = "other" if number // of % 2 else name_running_code()
            where = f"stopped at write {number + 1} of {len(self.left)}, {code} code goes on"
            try:
                events = await self.play.gone_on_with(left, self.debate, code)
                assert outcomes(events) == outcomes(self.events)
                assert _rounds_over(events) == _rounds_over(self.events)
                assert find_concluded(events) == find_concluded(self.events)
            except AssertionError as error:
                error.add_note(where)
                raise


def _rounds_over(events: Sequence[Envelope]) -> list[str]:
    return [event.key for event in events if event.kind == "round_finished"]


class _Copies:
    """Copies of a database file, each into a folder of its own, but for those that would be alike."""

    def __init__(self, database: Path, folder: Path, clock: Clock) -> None:
        self.taken: list[Left] = []
        self._database = database
        self._folder = folder
        self._clock = clock
        self._last: list[str] = []

    def take(self) -> None:
        """Copy what is durable now."""
        with closing(sqlite3.connect(self._database)) as source, closing(sqlite3.connect(":memory:")) as copy:
            source.backup(copy)
            holds = list(copy.iterdump())
            if holds == self._last:
                return
            self._last = holds
            folder = self._folder / str(len(self.taken) + 1)
            folder.mkdir()
            with closing(sqlite3.connect(folder / _FILE)) as file:
                copy.backup(file)
        self.taken.append(Left(folder, self._clock.now()))


class _CopiedLog(PassingLog):
    def __init__(self, log: Log, copies: _Copies) -> None:
        super().__init__(log)
        self._copies = copies

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        await super().append(log, record, **beside)
        self._copies.take()


class _CopiedDocuments:
    def __init__(self, documents: Documents, copies: _Copies) -> None:
        self._copies = copies
        self.prepare, self.get = documents.prepare, documents.get
        self.find, self.count = documents.find, documents.count
        self._documents = documents

    async def insert(self, collection: Collection, key: str, fields: Fields, **kwargs: Any) -> None:
        await self._documents.insert(collection, key, fields, **kwargs)
        self._copies.take()

    async def put(self, *given: Any) -> None:
        await self._documents.put(*given)
        self._copies.take()

    async def update(
        self, collection: Collection, key: str, changes: Fields, where: Where | None = None
    ) -> bool:
        try:
            return await self._documents.update(collection, key, changes, where)
        finally:
            self._copies.take()

    async def delete(self, collection: Collection, key: str, where: Where | None = None) -> bool:
        try:
            return await self._documents.delete(collection, key, where)
        finally:
            self._copies.take()
