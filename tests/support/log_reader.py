"""Debates' logs for those who look again and again: read on from where they were read to before."""

from parley.orchestrator.log.envelope import GENESIS
from parley.orchestrator.log.reading import log_name, open_records
from parley.orchestrator.log.replay import RecordedState
from tests.support.orchestration import TENANT, Backstage


class LogReader:
    """Reads debates' logs on from where it has read them to before, for those who look again and again."""

    def __init__(self, stage: Backstage) -> None:
        self._log = stage.store.log
        self._read: dict[str, tuple[RecordedState, int, bytes]] = {}

    async def recorded(self, debate: str) -> RecordedState:
        """What a debate's log holds now."""
        recorded, after, before = self._read.get(debate) or (RecordedState(), 0, GENESIS)
        records = await self._log.read(log_name(TENANT, debate), after)
        for event in open_records(records, after, before):
            recorded.apply([event])
            after, before = event.sequence, event.hash
        self._read[debate] = recorded, after, before
        return recorded

    def length(self, debate: str) -> int:
        """How many events were read."""
        return self._read[debate][1]
