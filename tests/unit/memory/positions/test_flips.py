"""Opposed stands of an agent on one matter are a flip, in whichever order their debates are recorded."""

import asyncio
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest

from parley.memory import changes as changes_module
from parley.memory import latest_stands
from parley.memory import positions as positions_module
from parley.memory.embedding import hold_embeddings
from parley.memory.stands import HEAD_FIELDS, POSITIONS
from parley.memory.writing import write_together
from parley.runtime.errors import ParleyError
from parley.storage.ports import Collection, Document, Fields
from parley.v1.effect_pb2 import (
    DECISION_RELATION_OTHER_MATTER,
    DecisionRelation,
)
from parley.v1.memory_pb2 import (
    FlipOutcome,
)
from tests.support.commits import count_commits
from tests.unit.memory.positions.kept_positions import (
    CHOIR,
    CONFIRMS,
    FENCE,
    FLIP,
    NO_FLIP,
    REFINES,
    REVERSES,
    UNKNOWN,
    KeptPositions,
    record,
    stand,
)


async def test_each_agent_of_a_debate_has_an_entry_with_its_stand_and_day(kept: KeptPositions) -> None:
    await kept.record(record("deb-1", stand("Yes.", for_decision=True), stand("No.", "bo")))
    ada, bo = sorted(await kept.listed(), key=lambda each: each.agent_id)
    assert (ada.agent_name, ada.debate_id, ada.question, ada.domain) == ("Ada", "deb-1", FENCE, "garden")
    assert (ada.stand, ada.for_decision, ada.concluded_at.seconds) == ("Yes.", True, 86_400)
    assert (bo.stand, bo.HasField("for_decision"), list(bo.changes)) == ("No.", False, [])
    assert not await kept.listed("other"), "another tenant sees none"


async def test_opposed_stands_of_one_agent_on_one_question_are_a_flip(kept: KeptPositions) -> None:
    await kept.record(
        record("deb-1", stand("Yes."), stand("No.", "bo")),
        record("deb-2", stand("No, the deer are gone."), stand("No!", "bo")),
    )
    assert [(each.agent_id, each.debate_id) for each in await kept.listed(only_flips=True)] == [
        ("ada", "deb-2")
    ]
    (ada,) = await kept.listed(agent="ada", only_flips=True)
    (change,) = ada.changes
    assert (change.earlier_debate_id, change.earlier_stand, change.outcome) == ("deb-1", "Yes.", FLIP)
    assert change.earlier_concluded_at.seconds == 86_400


@pytest.mark.parametrize(
    ("first", "second", "question", "outcome"),
    [
        ("Yes.", "Yes, with a gate.", FENCE, NO_FLIP),
        ("Yes.", "? It depends.", FENCE, UNKNOWN),
        ("Yes.", "No.", CHOIR, None),
    ],
)
async def test_stands_that_are_not_opposed_or_on_another_matter_are_no_flip(
    kept: KeptPositions, first: str, second: str, question: str, outcome: FlipOutcome.ValueType | None
) -> None:
    await kept.record(record("deb-1", stand(first)), record("deb-2", stand(second), question=question))
    assert (await kept.outcomes()).get(("deb-2", "deb-1")) == outcome
    assert not await kept.listed(only_flips=True)


async def test_opposed_stands_on_questions_that_are_only_alike_cannot_be_told(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.memory.stands.SAME_FROM", 1.1)
    await kept.record(
        record("deb-1", stand("Yes.")), record("deb-2", stand("No.")), record("deb-3", stand("No."))
    )
    assert await kept.outcomes() == {
        ("deb-2", "deb-1"): UNKNOWN,
        ("deb-3", "deb-1"): UNKNOWN,
        ("deb-3", "deb-2"): NO_FLIP,
    }


async def test_opposed_stands_on_questions_that_ask_the_same_in_the_same_words_are_a_flip(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.memory.stands.SAME_FROM", 1.1)
    questions = "Does the garden need a fence?", "The deer are gone. Does the garden still need a fence?"
    stands = stand("Yes, still needed."), stand("No.")
    records = [record(f"deb-{n}", stands[n - 1], question=questions[n - 1]) for n in (1, 2)]
    await kept.record(*records)
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_all_stands_of_a_debate_are_read_by_one_call_and_written_in_few_commits(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = ["ada", "bo", "cy"]
    records = [record(f"deb-{n}", *(stand("Yes.", each) for each in agents)) for n in range(1, 10)]
    await kept.record(*records[:8])
    calls, pairs = kept.sides.calls, len(kept.sides.read_pairs)
    commits = count_commits(monkeypatch)
    await kept.record(records[8])
    assert (kept.sides.calls - calls, len(kept.sides.read_pairs) - pairs) == (1, 3 * 8)
    assert commits == ([2] if kept.alone else [1, 1]), "the stands, then their changes, or both together"


async def test_a_process_that_is_alone_looks_for_no_stands_that_it_knows(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kept.record(*(record(f"deb-{n}", stand("Yes."), stand("Yes.", "bo")) for n in (1, 2)))
    find, looks = kept.documents.find, 0

    async def note(collection: Collection, *given: Any, **named: Any) -> Sequence[Document]:
        nonlocal looks
        looks += collection is POSITIONS
        return await find(collection, *given, **named)

    monkeypatch.setattr(kept.documents, "find", note)
    agreeing = record("deb-3", stand("Yes."), stand("Yes.", "bo"))
    with hold_embeddings([FENCE], await kept.meanings.embed(FENCE)):
        await kept.positions.apply("acme", agreeing, write_together)
    assert (looks == 0) == kept.alone
    assert (await kept.outcomes())["deb-3", "deb-2"] == NO_FLIP


@pytest.mark.parametrize("known", [True, False], ids=["known", "not yet known"])
async def test_of_debates_that_are_recorded_at_once_one_sees_the_other(
    kept: KeptPositions, known: bool
) -> None:
    if known:
        await kept.record(record("deb-1", stand("? It depends."), stand("No.", "bo")))
    numbers = range(2, 7)
    records = [record(f"deb-{n}", stand("Yes."), stand("Yes.", "bo")) for n in numbers]
    await asyncio.gather(*(kept.record(each) for each in records))
    outcomes = await kept.outcomes()
    together = {(f"deb-{later}", f"deb-{earlier}") for earlier, later in combinations(numbers, 2)}
    assert {pair for pair, outcome in outcomes.items() if outcome == NO_FLIP} == together


async def test_of_an_agent_with_many_stands_the_latest_are_looked_at_whenever_they_were_recorded(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latest_stands, "MAX_LATEST", 3)
    await kept.record(*(record(f"deb-{day}", stand("Yes.")) for day in (1, 4, 2, 3)))
    kept.sides.read_pairs.clear()
    await kept.record(record("deb-5", stand("No.")))
    compared = {earlier for later, earlier in await kept.outcomes() if later == "deb-5"}
    assert {"deb-3", "deb-4"} <= compared < {"deb-1", "deb-2", "deb-3", "deb-4"}


async def test_of_stands_on_other_matters_no_texts_are_read_and_each_question_once(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = ["ada", "bo"]
    await kept.record(*(record(f"deb-{n}", *(stand("Yes.", each) for each in agents)) for n in (1, 2)))
    find, read = kept.documents.find, list[tuple[str, ...]]()

    async def note(*given: Any, fields: Sequence[str] = (), **named: Any) -> Sequence[Document]:
        found = await find(*given, fields=fields, **named)
        read.extend(tuple(fields) for each in found if "agent_name" in each.fields or "vector" in each.fields)
        return found

    monkeypatch.setattr(kept.documents, "find", note)
    positions = kept.positions
    for debate, question in (("deb-3", CHOIR), ("deb-4", "Which colour?")):
        about = record(debate, *(stand("No.", each) for each in agents), question=question)
        await positions.apply("acme", about, write_together)
        assert read == ([] if kept.alone else [HEAD_FIELDS] * 2), "the questions of two debates"
    assert await kept.outcomes() == {("deb-2", "deb-1"): NO_FLIP}


async def test_stands_of_an_earlier_version_are_on_the_matter_that_their_documents_have_now(
    kept: KeptPositions,
) -> None:
    """It did not write what tells whether the matter has changed."""
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("Yes."), question=CHOIR))
    written = {str(each.fields["debate"]): each for each in await kept.documents.find(POSITIONS, {})}
    fence, choir = ({**written[debate].fields, "about": None} for debate in ("deb-1", "deb-2"))
    await kept.documents.put(POSITIONS, {written["deb-1"].key: fence, written["deb-2"].key: choir})
    kept = KeptPositions(kept.documents, kept.meanings, kept.sides, kept.alone)
    positions = kept.positions

    await positions.apply("acme", record("deb-3", stand("No.")), write_together)
    assert await kept.outcomes() == {("deb-3", "deb-1"): FLIP}

    moved = {**fence, "question": CHOIR, "vector": choir["vector"]}
    await kept.documents.put(POSITIONS, {written["deb-1"].key: moved})
    await positions.apply("acme", record("deb-4", stand("No.")), write_together)
    assert ("deb-4", "deb-1") not in await kept.outcomes()


async def test_stands_that_a_process_wrote_or_read_are_not_read_again_to_be_compared(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kept.record(record("deb-1", stand("Yes.")))
    find, read = kept.documents.find, list[str]()

    async def note(*given: Any, fields: Sequence[str] = (), **named: Any) -> Sequence[Document]:
        found = await find(*given, fields=fields, **named)
        read.extend(str(each.fields["debate"]) for each in found if "text" in fields)
        return found

    monkeypatch.setattr(kept.documents, "find", note)
    positions = kept.positions
    for number in (2, 3, 4):
        await positions.apply("acme", record(f"deb-{number}", stand("Yes.")), write_together)
    assert read == ([] if kept.alone else ["deb-1"])
    assert len(await kept.outcomes()) == 6


async def test_a_debate_that_is_recorded_anew_with_another_stand_is_compared_by_that(
    kept: KeptPositions,
) -> None:
    positions = kept.positions
    await positions.apply("acme", record("deb-1", stand("No.")), write_together)
    await positions.apply("acme", record("deb-1", stand("Yes.")), write_together)
    await positions.apply("acme", record("deb-2", stand("No.")), write_together)
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_a_debate_that_is_recorded_anew_with_another_question_is_compared_by_that(
    kept: KeptPositions,
) -> None:
    positions = kept.positions
    await positions.apply("acme", record("deb-1", stand("Yes."), question=CHOIR), write_together)
    await positions.apply("acme", record("deb-1", stand("Yes.")), write_together)
    await positions.apply("acme", record("deb-2", stand("No.")), write_together)
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_questions_that_another_model_embedded_are_not_compared(kept: KeptPositions) -> None:
    await kept.record(record("deb-1", stand("Yes.")))
    kept.meanings.model = "other"
    await kept.record(record("deb-2", stand("No.")))
    assert not await kept.outcomes()


@pytest.mark.parametrize(
    "damage", [{"concluded": None}, {"concluded": "soon"}, {"related": 7}, {"vector": "A"}]
)
async def test_a_stand_that_cannot_be_read_hides_no_other_and_is_compared_with_none(
    kept: KeptPositions, damage: Fields
) -> None:
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("Yes.")))
    (damaged,) = await kept.documents.find(POSITIONS, {"debate_key": "acme/deb-2"})
    await kept.documents.update(POSITIONS, damaged.key, damage)
    await kept.record(record("deb-3", stand("No.")))
    assert (await kept.outcomes())["deb-3", "deb-1"] == FLIP


async def test_a_question_that_another_model_embedded_since_is_read_again(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = kept.positions
    await positions.apply("acme", record("deb-1", stand("Yes.")), write_together)
    monkeypatch.setattr(kept.meanings, "model", "other")
    monkeypatch.setattr(kept.meanings, "_words", ["gate", "choir", "fence"])
    await kept.record(record("deb-1", stand("Yes.")))
    await positions.apply("acme", record("deb-2", stand("No.")), write_together)
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_a_matter_is_the_same_whatever_the_question_if_the_decision_names_the_earlier_one(
    kept: KeptPositions,
) -> None:
    await kept.record(
        record("deb-1", stand("Yes.")), record("deb-2", stand("No."), question=CHOIR, deb_1=REFINES)
    )
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_stands_on_like_questions_are_not_compared_if_the_answer_says_that_it_is_another_matter(
    kept: KeptPositions,
) -> None:
    other = record("deb-2", stand("No.", for_decision=True), deb_1=DECISION_RELATION_OTHER_MATTER)
    await kept.record(record("deb-1", stand("Yes.", for_decision=True)), other)
    assert not await kept.outcomes()


@pytest.mark.parametrize(
    ("relation", "was_for", "is_for", "outcome"),
    [
        (CONFIRMS, True, True, NO_FLIP),
        (REFINES, True, False, FLIP),
        (CONFIRMS, False, True, FLIP),
        (REVERSES, True, True, FLIP),
        (CONFIRMS, False, False, UNKNOWN),
        (REVERSES, False, True, UNKNOWN),
        (REVERSES, True, False, UNKNOWN),
        (REVERSES, None, True, UNKNOWN),
    ],
)
async def test_without_reading_them_a_flip_follows_from_who_was_for_which_decision(
    kept: KeptPositions,
    relation: DecisionRelation.ValueType,
    was_for: bool | None,
    is_for: bool,
    outcome: FlipOutcome.ValueType,
) -> None:
    await kept.record(
        record("deb-1", stand("? This.", for_decision=was_for)),
        record("deb-2", stand("? That.", for_decision=is_for), deb_1=relation),
    )
    assert await kept.outcomes() == {("deb-2", "deb-1"): outcome}
    assert bool(kept.sides.read_pairs) == (outcome == UNKNOWN)


async def test_a_flip_is_found_whichever_debate_is_recorded_first(kept: KeptPositions) -> None:
    await kept.record(
        record("deb-3", stand("Yes.")), record("deb-1", stand("Yes.")), record("deb-2", stand("No."))
    )
    assert await kept.outcomes() == {
        ("deb-2", "deb-1"): FLIP,
        ("deb-3", "deb-1"): NO_FLIP,
        ("deb-3", "deb-2"): FLIP,
    }


async def test_without_the_convergence_service_an_error_says_so_and_the_record_can_be_applied_later(
    kept: KeptPositions,
) -> None:
    await kept.record(record("deb-1", stand("Yes.")))
    kept.sides.away = True
    with pytest.raises(ParleyError, match="away"):
        await kept.record(record("deb-2", stand("No.")))
    kept.sides.away = False
    await kept.record(record("deb-2", stand("No.")))
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_a_debate_without_stands_asks_for_no_meaning(kept: KeptPositions) -> None:
    await kept.record(record("deb-1"))
    assert not kept.meanings.embedded


async def test_an_agent_of_many_debates_is_compared_with_the_latest_on_the_matter(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions_module, "_MAX_COMPARED", 2)
    monkeypatch.setattr(changes_module, "_MAX_CHANGES", 3)
    await kept.record(*(record(f"deb-{day}", stand("Yes.")) for day in range(1, 5)))
    kept.sides.read_pairs.clear()
    await kept.record(record("deb-5", stand("No.")))
    assert len(kept.sides.read_pairs) == 2
    (latest,) = await kept.listed(only_flips=True)
    assert [each.earlier_debate_id for each in latest.changes] == ["deb-4", "deb-3"]


async def test_stands_on_the_same_matter_are_compared_before_later_ones_that_may_be_on_it(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions_module, "_MAX_COMPARED", 1)
    monkeypatch.setattr("parley.memory.stands.SAME_FROM", 1.1)
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("Yes.")))
    await kept.record(record("deb-3", stand("No."), deb_1=REVERSES))
    assert {earlier for later, earlier in await kept.outcomes() if later == "deb-3"} == {"deb-1"}


async def test_an_agent_of_many_later_debates_is_compared_with_the_latest_of_these(
    kept: KeptPositions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions_module, "_MAX_COMPARED", 2)
    await kept.record(*(record(f"deb-{day}", stand("Yes.")) for day in range(2, 6)))
    kept.sides.read_pairs.clear()
    await kept.record(record("deb-1", stand("No.")))
    assert len(kept.sides.read_pairs) == 2
    compared = {later for later, earlier in await kept.outcomes() if earlier == "deb-1"}
    assert compared == {"deb-4", "deb-5"}


async def test_the_ledger_is_listed_in_pages_the_latest_first(kept: KeptPositions) -> None:
    await kept.record(*(record(f"deb-{day}", stand("Yes."), stand("No.", "bo")) for day in (2, 1, 3)))
    found, after = list[tuple[str, str]](), None
    while True:
        page, after = await kept.positions.list_page("acme", agent="", only_flips=False, after=after, size=4)
        found += [(each.debate_id, each.agent_id) for each in page]
        if after is None:
            break
    assert [debate for debate, _ in found] == ["deb-3"] * 2 + ["deb-2"] * 2 + ["deb-1"] * 2
    assert len(set(found)) == 6
