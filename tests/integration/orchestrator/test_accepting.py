"""What is accepted can be stored, and what cannot be stored is refused."""

from pathlib import Path

import grpc
import pytest

from parley.orchestrator.events import DebateCreated
from parley.orchestrator.spec import ContextDocument
from parley.runtime.errors import ParleyError
from tests.support.orchestration import backstage, make_spec

MOST_BYTES = 4 * 1024 * 1024
"""Of all documents of a request."""


@pytest.mark.parametrize(
    ("character", "count"),
    [('"', 3_400_000), ("\n", MOST_BYTES), ("é", MOST_BYTES // 2), ("€", MOST_BYTES // 3)],
)
async def test_documents_that_are_large_in_a_store_are_kept_whole(
    tmp_path: Path, character: str, count: int
) -> None:
    text = character * count
    async with backstage(tmp_path) as stage:
        debate = await stage.replica().create(make_spec(context=(ContextDocument("a.json", text),)))
        (created,) = [event.payload for event in await stage.events(debate)]
    assert isinstance(created, DebateCreated)
    assert created.spec.context[0].text == text


@pytest.mark.parametrize("character", ['"', "\\", "\x01"])
async def test_documents_that_swell_beyond_what_a_store_keeps_are_refused_and_leave_nothing_behind(
    tmp_path: Path, character: str
) -> None:
    spec = make_spec(context=(ContextDocument("a.json", character * MOST_BYTES),))
    async with backstage(tmp_path) as stage:
        replica = stage.replica()
        with pytest.raises(ParleyError) as refused:
            await replica.create(spec)
        assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
        assert [each.field for each in refused.value.violations] == ["spec"]
        assert "bytes to store" in refused.value.message
        rows = await replica.shop.rows.open()
        assert (rows.owned, rows.waiting) == ([], [])
