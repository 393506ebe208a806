"""A debate that is forgotten or recorded anew leaves nothing in the ledger, wherever a process stops."""

from collections.abc import Sequence
from itertools import combinations, count, product
from typing import Any

import pytest

from parley.memory import changes as changes_module
from parley.memory.changes import CHANGES
from parley.memory.retention import DAY, Retention, end_effect
from parley.memory.writing import write_together
from parley.storage.ports import Collection
from tests.support.stopping_stores import StoppedError, Writes
from tests.unit.memory.positions.kept_positions import FLIP, NO_FLIP, KeptPositions, Sides, record, stand


async def test_a_process_keeps_no_stand_of_a_debate_that_it_forgets(kept: KeptPositions) -> None:
    positions, other = kept.positions, kept.positions
    first = record("deb-1", stand("No."))
    await positions.apply("acme", first, write_together)
    await positions.remove("acme", first)
    await other.apply("acme", record("deb-1", stand("Yes.")), write_together)
    await positions.apply("acme", record("deb-2", stand("No.")), write_together)
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_a_forgotten_debate_takes_all_changes_to_its_stands_along_and_no_others(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes_module, "_PAGE", 2)
    both = (stand("Yes."), stand("Yes.", "bo"))
    records = [record(f"deb-{number}", *both) for number in (1, 2, 3, 10, 31)]
    await kept.record(*records)
    await kept.positions.remove("acme", records[2])
    left = ["deb-1", "deb-2", "deb-10", "deb-31"]
    assert await kept.outcomes() == {(one, other): NO_FLIP for other, one in combinations(left, 2)}
    assert not [each for each in await kept.stored() if "deb-3/" in each.key]


async def test_a_forgotten_debate_leaves_nothing_and_takes_its_flips_along(kept: KeptPositions) -> None:
    records = [
        record("deb-1", stand("Yes.")),
        record("deb-2", stand("No.")),
        record("deb-3", stand("No.", for_decision=True)),
    ]
    await kept.record(*records)
    await kept.positions.remove("acme", records[0])
    assert not [each for each in await kept.stored() if "deb-1" in each.key]
    assert await kept.outcomes() == {("deb-3", "deb-2"): NO_FLIP}
    assert not await kept.listed(only_flips=True)
    for each in records:
        await kept.positions.remove("acme", each)
    assert not await kept.stored()


async def test_debates_that_are_older_than_positions_are_kept_leave_the_ledger_with_their_changes(
    kept: KeptPositions,
) -> None:
    await kept.record(
        record("deb-1", stand("Yes."), stand("Yes.", "bo")),
        record("deb-2", stand("No.")),
        record("deb-3", stand("Yes.")),
    )

    async def may_go_on() -> bool:
        return True

    for days, left in ((0, {"deb-1", "deb-2", "deb-3"}), (5, {"deb-2", "deb-3"})):
        retention = Retention(days, kept.positions.list_old, end_effect(kept.positions))
        await retention.end_old(7 * DAY, may_go_on)
        assert {each.debate_id for each in await kept.listed()} == left
    assert await kept.outcomes() == {("deb-3", "deb-2"): FLIP}
    assert not [each for each in await kept.stored() if "deb-1" in each.key]


async def test_a_debate_that_is_recorded_anew_with_other_stands_leaves_none_of_the_old_ones(
    kept: KeptPositions,
) -> None:
    await kept.record(
        record("deb-1", stand("Yes."), stand("Yes.", "bo")),
        record("deb-2", stand("No."), stand("No.", "bo")),
        record("deb-2", stand("Yes.")),
    )
    assert sorted((each.debate_id, each.agent_id, each.stand) for each in await kept.listed()) == [
        ("deb-1", "ada", "Yes."),
        ("deb-1", "bo", "Yes."),
        ("deb-2", "ada", "Yes."),
    ]
    assert await kept.outcomes() == {("deb-2", "deb-1"): NO_FLIP}


async def test_wherever_the_process_stops_the_same_record_again_finishes_it(kept: KeptPositions) -> None:
    records = [
        record("deb-1", stand("Yes.")),
        record("deb-2", stand("No."), stand("No.", "bo")),
        record("deb-3", stand("Yes.", for_decision=True), stand("Yes.", "bo", for_decision=True)),
    ]
    await kept.record(*records)
    whole = await kept.stored()
    assert len(await kept.listed(only_flips=True)) == 3
    stops = 0
    for action, lost in product(("apply", "remove"), (False, True)):
        for limit in count():
            await kept.record(*(records if action == "remove" else records[:2]))
            try:
                stopping = kept.stopping(Writes(limit, lost))
                if action == "remove":
                    await stopping.remove("acme", records[2])
                else:
                    await stopping.apply("acme", records[2], write_together)
                break
            except StoppedError:
                stops += 1
            if action == "remove":
                await kept.positions.remove("acme", records[2])
                assert not [each for each in await kept.stored() if "deb-3" in each.key]
            await kept.record(records[2])
            assert await kept.stored() == whole
            await kept.positions.remove("acme", records[2])
    assert stops > 20


@pytest.mark.parametrize("lost", [False, True])
async def test_wherever_a_removal_stops_the_same_again_removes_what_others_settled(
    kept: KeptPositions, *, lost: bool
) -> None:
    records = [
        record("deb-1", stand("Yes.")),
        record("deb-2", stand("No.")),
        record("deb-3", stand("No.", for_decision=True)),
    ]
    for limit in count():
        await kept.record(*records)
        assert (await kept.settled())["deb-2"] == ("deb-3", True)
        try:
            await kept.stopping(Writes(limit, lost)).remove("acme", records[0])
            break
        except StoppedError:
            await kept.positions.remove("acme", records[0])
        assert not [each for each in await kept.stored() if "deb-1" in each.key]
    assert limit > 2


async def test_what_a_forgotten_debate_was_compared_with_meanwhile_is_not_kept(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = record("deb-1", stand("Yes.")), record("deb-2", stand("No."))
    await kept.record(earlier)
    read = Sides.read

    async def forget_and_read(self: Sides, pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
        if pairs:
            await kept.positions.remove("acme", earlier)
        return await read(self, pairs)

    monkeypatch.setattr(Sides, "read", forget_and_read)
    await kept.record(later)
    assert [each.key.split("/")[1] for each in await kept.stored()] == ["deb-2"]


async def test_of_debates_that_were_compared_with_the_forgotten_ones_alone_lose_their_changes(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = (stand("Yes."), stand("Yes.", "bo"))
    earlier = [record(f"deb-{number}", *both) for number in (1, 2, 3)]
    await kept.record(*earlier)
    put = kept.documents.put

    async def forget_and_put(collection: Collection, *given: Any) -> None:
        if collection == CHANGES:
            await kept.positions.remove("acme", earlier[1])
        await put(collection, *given)

    monkeypatch.setattr(kept.documents, "put", forget_and_put)
    await kept.record(record("deb-4", *both))
    outcomes = await kept.outcomes()
    assert outcomes.keys() == {("deb-3", "deb-1"), ("deb-4", "deb-1"), ("deb-4", "deb-3")}
    assert not [each for each in await kept.stored() if "deb-2" in each.key]
