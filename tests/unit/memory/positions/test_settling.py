"""A flip is settled by the first later decision that takes a side, or by a person who finds its own debate good."""

from collections.abc import Sequence

import pytest

from parley.memory.approvals import Approvals
from parley.memory.changes import SETTLEMENTS
from parley.v1.effect_pb2 import (
    DECISION_RELATION_OTHER_MATTER,
)
from parley.v1.memory_pb2 import (
    FinalStand,
    RecordDebateRequest,
)
from tests.support.stopping_stores import StoppedError, StoppingDocuments, Writes
from tests.unit.memory.positions.kept_positions import CHOIR, CONFIRMS, REVERSES, KeptPositions, record, stand


async def test_a_decision_does_not_settle_a_flip_that_its_answer_calls_another_matter(
    kept: KeptPositions,
) -> None:
    other = DECISION_RELATION_OTHER_MATTER
    await kept.record(
        record("deb-1", stand("Yes.")),
        record("deb-2", stand("No.")),
        record("deb-3", stand("No.", "bo", for_decision=True), deb_1=other, deb_2=other),
    )
    assert await kept.settled() == {"deb-2": None}


SETTLING = [
    (record("deb-3", stand("No.", "bo", for_decision=True)), True),
    (record("deb-3", stand("Yes.", "bo", for_decision=True)), False),
    (record("deb-3", stand("? Other.", "bo", for_decision=True), deb_2=CONFIRMS), True),
    (record("deb-3", stand("? Other.", "bo", for_decision=True), deb_1=REVERSES), True),
    (record("deb-3", stand("? Other.", "bo", for_decision=True), deb_2=REVERSES), False),
    (record("deb-3", stand("? Other.", "bo", for_decision=True), deb_1=CONFIRMS, deb_2=CONFIRMS), None),
    (record("deb-3", stand("? Other.", "bo", for_decision=True)), None),
    (record("deb-3", stand("No.", "bo")), None),
    (record("deb-3", stand("No.", "bo", for_decision=True), question=CHOIR), None),
    (record("deb-0", stand("No.", "bo", for_decision=True), at=1), None),
]


@pytest.mark.parametrize(("decision", "took_later"), SETTLING, ids=range(len(SETTLING)))
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1)])
async def test_a_flip_is_open_until_a_later_decision_on_the_matter_takes_a_side(
    kept: KeptPositions, decision: RecordDebateRequest, took_later: bool | None, order: Sequence[int]
) -> None:
    flip = [
        record("deb-1", stand("Yes.", for_decision=True)),
        record("deb-2", stand("No.", for_decision=True)),
    ]
    records = [*flip, decision]
    await kept.record(*(records[place] for place in order))
    assert await kept.settled() == {"deb-2": None if took_later is None else ("deb-3", took_later)}


@pytest.mark.parametrize(
    ("flipped", "took_later"),
    [
        ((stand("No.", for_decision=True),), True),
        ((stand("No.", for_decision=False), stand("Yes.", "bo", for_decision=True)), False),
        ((stand("No.", for_decision=False), stand("Never.", "bo", for_decision=True)), None),
        ((stand("? Other.", "bo", for_decision=True), stand("No.", for_decision=True)), True),
        ((stand("? Other.", "bo", for_decision=True), stand("No.", for_decision=False)), None),
        ((stand("No."),), None),
    ],
    ids=[
        "for it",
        "against it",
        "for a third thing",
        "for unclear words",
        "against unclear words",
        "not known",
    ],
)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_a_debate_that_a_person_found_good_settles_its_own_flips_by_its_decision(
    kept: KeptPositions, flipped: Sequence[FinalStand], took_later: bool | None, order: Sequence[int]
) -> None:
    records = [record("deb-1", stand("Yes.", for_decision=True)), record("deb-2", *flipped)]
    await kept.record(*(records[place] for place in order))
    assert await kept.settled() == {"deb-2": None}, "feedback has to agree with it"
    await kept.rate("deb-2", 1)
    assert await kept.settled() == {"deb-2": None if took_later is None else ("deb-2", took_later)}
    await kept.rate("deb-2", 1, -1)
    assert await kept.settled() == {"deb-2": None}, "the latest feedback counts"


async def test_feedback_that_came_before_the_debate_was_recorded_settles_its_flips(
    kept: KeptPositions,
) -> None:
    await kept.rate("deb-2", 1)
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("No.", for_decision=True)))
    assert await kept.settled() == {"deb-2": ("deb-2", True)}
    (entry,) = await kept.listed(only_flips=True)
    assert entry.changes[0].settlement.approved


async def test_a_flip_is_open_again_if_a_person_does_not_find_the_decision_good_that_settled_it(
    kept: KeptPositions,
) -> None:
    decisions = [record(f"deb-{day}", stand("No.", "bo", for_decision=True)) for day in range(3, 7)]
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("No.")), decisions[0])
    await kept.rate("deb-3", -1)
    assert await kept.settled() == {"deb-2": None}
    await kept.record(*decisions[1:])
    assert await kept.settled() == {"deb-2": ("deb-4", True)}, "the next decision settles it"
    assert len(await kept.documents.find(SETTLEMENTS, {})) == 4, "one that does not count takes no place"
    await kept.rate("deb-3", -1, 1)
    assert await kept.settled() == {"deb-2": ("deb-3", True)}


@pytest.mark.parametrize("lost", [True, False])
async def test_wherever_the_process_stops_the_same_feedback_again_settles_a_flip_once(
    kept: KeptPositions, lost: bool
) -> None:
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("No.", for_decision=True)))
    approvals = Approvals(StoppingDocuments(kept.documents, Writes(0, lost)))
    with pytest.raises(StoppedError):
        await approvals.put("acme/deb-2", 1, 1)
    await kept.rate("deb-2", 1)
    await kept.rate("deb-2", 1)
    assert await kept.settled() == {"deb-2": ("deb-2", True)}
    assert len(await kept.documents.find(SETTLEMENTS, {})) == 1


async def test_feedback_on_the_debate_before_a_flip_does_not_settle_it(kept: KeptPositions) -> None:
    await kept.record(record("deb-1", stand("Yes.", for_decision=True)), record("deb-2", stand("No.")))
    await kept.rate("deb-1", 1)
    assert await kept.settled() == {"deb-2": None}


async def test_the_first_decision_that_takes_a_side_settles_and_the_next_one_does_once_it_is_forgotten(
    kept: KeptPositions,
) -> None:
    first = record("deb-3", stand("Yes.", "bo", for_decision=True))
    await kept.record(
        record("deb-1", stand("Yes.")),
        record("deb-2", stand("No.")),
        record("deb-4", stand("No.", "bo", for_decision=True)),
        first,
    )
    assert (await kept.settled())["deb-2"] == ("deb-3", False)
    await kept.positions.remove("acme", first)
    assert (await kept.settled())["deb-2"] == ("deb-4", True)


async def test_a_flip_is_settled_by_three_decisions_at_most_of_which_the_first_counts(
    kept: KeptPositions,
) -> None:
    decisions = [record(f"deb-{day}", stand("No.", "bo", for_decision=True)) for day in range(3, 9)]
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("No.")), *decisions)
    assert len(await kept.documents.find(SETTLEMENTS, {})) == 3
    assert await kept.settled() == {"deb-2": ("deb-3", True)}
    for each in decisions[:2]:
        await kept.positions.remove("acme", each)
    assert await kept.settled() == {"deb-2": ("deb-5", True)}
