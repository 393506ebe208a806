"""Stores and clocks of audit logs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.orchestrator.audit import writer
from parley.orchestrator.audit.parts import AUDIT_LOGS
from parley.storage.opening import Store, open_store
from tests.support.manual_clock import ManualClock
from tests.unit.orchestrator.audit.audit_logs import NOON


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as opened:
        await opened.documents.prepare(AUDIT_LOGS)
        yield opened


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_ENTRIES", 3)
