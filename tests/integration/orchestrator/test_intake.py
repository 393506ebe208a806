"""What is accepted can be stored, and what cannot be stored is refused."""

from pathlib import Path

import grpc
import pytest

from parley.orchestrator.model.spec import ContextDocument
from parley.runtime.errors import ParleyError
from parley.v1.event_pb2 import DebateCreated
from tests.support.orchestration import backstage, make_spec

MAX_BYTES = 4 * 1024 * 1024
"""Of all documents of a request."""


@pytest.mark.parametrize(
    ("character", "count"),
    [
        *((character, MAX_BYTES) for character in ('"', "\\", "\n", "\x01")),
        ("é", MAX_BYTES // 2),
        ("€", MAX_BYTES // 3),
    ],
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


async def test_a_debate_larger_than_what_a_store_keeps_is_refused_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    spec = make_spec(context=(ContextDocument("a.json", "x" * 3 * MAX_BYTES),))
    async with backstage(tmp_path) as stage:
        replica = stage.replica()
        with pytest.raises(ParleyError) as refused:
            await replica.create(spec)
        assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
        assert [each.field for each in refused.value.violations] == ["spec"]
        assert "bytes to store" in refused.value.message
        found = await replica.dependencies.index.open()
        assert (found.owned, found.waiting) == ([], [])
