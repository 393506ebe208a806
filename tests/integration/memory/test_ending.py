"""A memory service that is stopped leaves nothing to be done again."""

from pathlib import Path

from parley.memory.debate import DEBATES
from parley.storage.opening import open_store
from tests.integration.memory.serving import KAFKA, PRICES, convergence, debate, run_memory


async def test_a_service_that_is_stopped_ends_the_marks_of_what_it_has_recorded(tmp_path: Path) -> None:
    async with convergence() as address, run_memory(tmp_path, address) as memory:
        await memory.RecordDebate(debate("deb-1", KAFKA))
        await memory.RecordDebate(debate("deb-2", PRICES))
    async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
        found = await store.documents.find(DEBATES, {})
        assert [each.fields["unfinished"] for each in found] == [None, None]
