"""The latest stands of agents, as a process that is alone on its store knows them."""

from collections.abc import Sequence
from typing import Any

import pytest

from parley.memory import latest_stands
from parley.memory.embedding import Embedding
from parley.memory.latest_stands import LatestStands
from parley.memory.stands import POSITIONS, Stand, create_stands, to_fields
from parley.memory.stored_vectors import to_vector
from parley.storage.ports import Collection, Document, Documents, Where
from tests.unit.memory.positions.kept_positions import record, stand


def make_stand(debate: str, agent: str = "ada") -> Stand:
    (made,) = create_stands("acme", record(debate, stand("Yes.", agent)), Embedding(to_vector([1.0]), "m"))
    return made


FIRST, SECOND, THIRD = map(make_stand, ("deb-1", "deb-2", "deb-3"))


@pytest.fixture
async def prepared(documents: Documents) -> Documents:
    await documents.prepare(POSITIONS)
    return documents


async def list_latest(latest: LatestStands) -> list[str]:
    (found,) = await latest.load([FIRST])
    return [each.key for each in found]


async def test_a_stand_that_is_recorded_late_has_its_place_in_the_order_of_time(prepared: Documents) -> None:
    latest = LatestStands(prepared, alone=True)
    assert await list_latest(latest) == []
    for each in (FIRST, THIRD, SECOND):
        latest.add(each)
    assert await list_latest(latest) == [THIRD.key, SECOND.key, FIRST.key]


async def test_a_stand_that_is_stored_while_those_of_its_agent_are_read_is_not_missed(
    prepared: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest, find = LatestStands(prepared, alone=True), prepared.find

    async def find_and_store(collection: Collection, where: Where, **named: Any) -> Sequence[Document]:
        found = await find(collection, where, **named)
        monkeypatch.setattr(prepared, "find", find)
        await prepared.insert(POSITIONS, SECOND.key, to_fields(SECOND))
        latest.add(SECOND)
        return found

    monkeypatch.setattr(prepared, "find", find_and_store)
    assert await list_latest(latest) == []
    assert await list_latest(latest) == [SECOND.key]


async def test_of_many_agents_those_that_were_asked_for_last_are_known(
    prepared: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latest_stands, "_MAX_AGENTS", 2)
    ada, bo, cy = (make_stand("deb-1", agent) for agent in ("ada", "bo", "cy"))
    latest = LatestStands(prepared, alone=True)
    for each in (ada, bo, ada, cy):
        await latest.load([each])
    assert [latest.knows(each) for each in (ada, bo, cy)] == [True, False, True]
