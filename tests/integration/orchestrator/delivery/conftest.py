"""A store with hooks, whose deliveries are sent by an injected clock."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.hook_stage import HookStage, open_hook_stage
from tests.support.manual_clock import ManualClock


@pytest.fixture
async def stage(tmp_path: Path, clock: ManualClock) -> AsyncIterator[HookStage]:
    async with open_hook_stage(tmp_path, clock) as opened:
        yield opened
