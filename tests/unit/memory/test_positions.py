"""Who changed sides on a matter is in the ledger once, whichever debate is recorded first, and gone with what is forgotten."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count, product
from pathlib import Path
from typing import Any

import pytest

from parley.memory import changes as changes_module
from parley.memory import latest_stands
from parley.memory import positions as positions_module
from parley.memory.approvals import APPROVALS, Approvals
from parley.memory.changes import CHANGES, SETTLEMENTS
from parley.memory.embedding import hold_embeddings
from parley.memory.positions import Positions
from parley.memory.retention import DAY, Retention, end_effect
from parley.memory.stand_reader import StandReader
from parley.memory.stands import HEAD_FIELDS, POSITIONS
from parley.runtime.clock import SystemClock
from parley.runtime.errors import ParleyError, unavailable
from parley.storage.opening import open_store
from parley.storage.ports import Collection, Document, Documents, Fields
from parley.v1.effect_pb2 import (
    DECISION_RELATION_CONFIRMS,
    DECISION_RELATION_OTHER_MATTER,
    DECISION_RELATION_REFINES,
    DECISION_RELATION_REVERSES,
    DecisionRelation,
    RelatedDecision,
)
from parley.v1.memory_pb2 import (
    FLIP_OUTCOME_FLIP,
    FLIP_OUTCOME_NO_FLIP,
    FLIP_OUTCOME_UNKNOWN,
    FinalStand,
    FlipOutcome,
    LedgerPosition,
    PastDebate,
    RecordDebateRequest,
)
from tests.support.commits import count_commits
from tests.support.stopping_stores import StoppedError, StoppingDocuments, Writes
from tests.support.word_meanings import WordMeanings

FLIP, NO_FLIP, UNKNOWN = FLIP_OUTCOME_FLIP, FLIP_OUTCOME_NO_FLIP, FLIP_OUTCOME_UNKNOWN
CONFIRMS, REFINES, REVERSES = (
    DECISION_RELATION_CONFIRMS,
    DECISION_RELATION_REFINES,
    DECISION_RELATION_REVERSES,
)
FENCE, CHOIR = "A fence?", "Which language for the choir?"


class Sides(StandReader):
    """Takes two stands for the same answer if both begin with the same word; `?` cannot be told."""

    def __init__(self) -> None:
        self.read_pairs: list[tuple[str, str]] = []
        self.calls = 0
        self.away = False

    async def read(self, pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
        if self.away:
            raise unavailable("CONVERGENCE_UNAVAILABLE", "away")
        self.read_pairs += pairs
        self.calls += bool(pairs)
        return [self._is_same(*each) for each in pairs]

    def _is_same(self, *stands: str) -> bool | None:
        first, second = (each.split(maxsplit=1)[0].strip(".,!") for each in stands)
        return None if "?" in (first, second) else first == second


def stand(text: str, agent: str = "ada", *, for_decision: bool | None = None) -> FinalStand:
    return FinalStand(agent_id=agent, agent_name=agent.title(), text=text, for_decision=for_decision)


def record(
    debate_id: str,
    *stands: FinalStand,
    question: str = FENCE,
    at: int = 0,
    **related: DecisionRelation.ValueType,
) -> RecordDebateRequest:
    """A debate of this day. `related` names earlier debates `deb_N`."""
    debate = PastDebate(debate_id=debate_id, question=question, conclusion="This.", domain="garden")
    debate.concluded_at.FromSeconds(86_400 * (at or int(debate_id.rpartition("-")[2])))
    debate.related.extend(
        RelatedDecision(debate_id=name.replace("_", "-"), relation=relation)
        for name, relation in related.items()
    )
    return RecordDebateRequest(debate=debate, stands=stands)


@dataclass
class Kept:
    """What is stored. Each record is that of another replica, or all are of one process that is alone."""

    documents: Documents
    meanings: WordMeanings
    sides: Sides
    alone: bool
    _process: tuple[Positions, StoppingDocuments] | None = None

    @property
    def positions(self) -> Positions:
        return self._start()[0]

    def stopping(self, writes: Writes) -> Positions:
        """A process that stops at a write; another one is started after it."""
        positions, documents = self._start()
        self._process, documents.writes = None, writes
        return positions

    def _start(self) -> tuple[Positions, StoppingDocuments]:
        if self._process:
            return self._process
        documents = StoppingDocuments(self.documents, Writes())
        positions = Positions(documents, self.meanings, self.sides, SystemClock(), alone=self.alone)
        self._process = (positions, documents) if self.alone else None
        return positions, documents

    async def record(self, *records: RecordDebateRequest) -> None:
        for each in records:
            await self.positions.apply("acme", each)

    async def listed(
        self, tenant: str = "acme", *, agent: str = "", only_flips: bool = False
    ) -> list[LedgerPosition]:
        found, _ = await self.positions.page(tenant, agent=agent, only_flips=only_flips, after=None, size=200)
        return found

    async def rate(self, debate_id: str, *values: int) -> None:
        """Record this feedback on a debate, one after the other."""
        for number, value in enumerate(values, 1):
            await Approvals(self.documents).put(f"acme/{debate_id}", number, value)

    async def outcomes(self) -> dict[tuple[str, str], FlipOutcome.ValueType]:
        """How a stand of a debate stands to one of an earlier debate."""
        return {
            (each.debate_id, change.earlier_debate_id): change.outcome
            for each in await self.listed()
            for change in each.changes
        }

    async def settled(self) -> dict[str, tuple[str, bool] | None]:
        """Of each debate with a flip what settled that, and if it took the later side."""
        return {
            each.debate_id: (change.settlement.debate_id, change.settlement.took_later_side)
            if change.HasField("settlement")
            else None
            for each in await self.listed(only_flips=True)
            for change in each.changes
            if change.outcome == FLIP
        }

    async def stored(self) -> Sequence[Document]:
        return [
            *await self.documents.find(POSITIONS, {}),
            *await self.documents.find(CHANGES, {}),
            *await self.documents.find(SETTLEMENTS, {}),
        ]


@pytest.fixture(params=[False, True], ids=["replicas", "alone"])
async def kept(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Kept]:
    async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
        await store.documents.prepare(POSITIONS, CHANGES, SETTLEMENTS, APPROVALS)
        yield Kept(store.documents, WordMeanings(["fence", "choir", "gate"]), Sides(), request.param)


async def test_each_agent_of_a_debate_has_an_entry_with_its_stand_and_day(kept: Kept) -> None:
    await kept.record(record("deb-1", stand("Yes.", for_decision=True), stand("No.", "bo")))
    ada, bo = sorted(await kept.listed(), key=lambda each: each.agent_id)
    assert (ada.agent_name, ada.debate_id, ada.question, ada.domain) == ("Ada", "deb-1", FENCE, "garden")
    assert (ada.stand, ada.for_decision, ada.concluded_at.seconds) == ("Yes.", True, 86_400)
    assert (bo.stand, bo.HasField("for_decision"), list(bo.changes)) == ("No.", False, [])
    assert not await kept.listed("other"), "another tenant sees none"


async def test_opposed_stands_of_one_agent_on_one_question_are_a_flip(kept: Kept) -> None:
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
    kept: Kept, first: str, second: str, question: str, outcome: FlipOutcome.ValueType | None
) -> None:
    await kept.record(record("deb-1", stand(first)), record("deb-2", stand(second), question=question))
    assert (await kept.outcomes()).get(("deb-2", "deb-1")) == outcome
    assert not await kept.listed(only_flips=True)


async def test_opposed_stands_on_questions_that_are_only_alike_cannot_be_told(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
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
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.memory.stands.SAME_FROM", 1.1)
    questions = "Does the garden need a fence?", "The deer are gone. Does the garden still need a fence?"
    stands = stand("Yes, still needed."), stand("No.")
    records = [record(f"deb-{n}", stands[n - 1], question=questions[n - 1]) for n in (1, 2)]
    await kept.record(*records)
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_all_stands_of_a_debate_are_read_by_one_call_and_written_in_few_commits(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
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
    kept: Kept, monkeypatch: pytest.MonkeyPatch
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
        await kept.positions.apply("acme", agreeing)
    assert (looks == 0) == kept.alone
    assert (await kept.outcomes())["deb-3", "deb-2"] == NO_FLIP


@pytest.mark.parametrize("known", [True, False], ids=["known", "not yet known"])
async def test_of_debates_that_are_recorded_at_once_one_sees_the_other(kept: Kept, known: bool) -> None:
    if known:
        await kept.record(record("deb-1", stand("? It depends."), stand("No.", "bo")))
    numbers = range(2, 7)
    records = [record(f"deb-{n}", stand("Yes."), stand("Yes.", "bo")) for n in numbers]
    await asyncio.gather(*(kept.record(each) for each in records))
    outcomes = await kept.outcomes()
    together = {(f"deb-{later}", f"deb-{earlier}") for earlier, later in combinations(numbers, 2)}
    assert {pair for pair, outcome in outcomes.items() if outcome == NO_FLIP} == together


async def test_of_an_agent_with_many_stands_the_latest_are_looked_at_whenever_they_were_recorded(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latest_stands, "MAX_LATEST", 3)
    await kept.record(*(record(f"deb-{day}", stand("Yes.")) for day in (1, 4, 2, 3)))
    kept.sides.read_pairs.clear()
    await kept.record(record("deb-5", stand("No.")))
    compared = {earlier for later, earlier in await kept.outcomes() if later == "deb-5"}
    assert {"deb-3", "deb-4"} <= compared < {"deb-1", "deb-2", "deb-3", "deb-4"}


async def test_of_stands_on_other_matters_no_texts_are_read_and_each_question_once(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
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
        await positions.apply("acme", about)
        assert read == ([] if kept.alone else [HEAD_FIELDS] * 4), "two agents' questions of two debates"
    assert await kept.outcomes() == {("deb-2", "deb-1"): NO_FLIP}


async def test_stands_that_a_process_wrote_or_read_are_not_read_again_to_be_compared(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
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
        await positions.apply("acme", record(f"deb-{number}", stand("Yes.")))
    assert read == ([] if kept.alone else ["deb-1"])
    assert len(await kept.outcomes()) == 6


async def test_a_debate_that_is_recorded_anew_with_another_stand_is_compared_by_that(kept: Kept) -> None:
    positions = kept.positions
    await positions.apply("acme", record("deb-1", stand("No.")))
    await positions.apply("acme", record("deb-1", stand("Yes.")))
    await positions.apply("acme", record("deb-2", stand("No.")))
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_a_process_keeps_no_stand_of_a_debate_that_it_forgets(kept: Kept) -> None:
    positions, other = kept.positions, kept.positions
    first = record("deb-1", stand("No."))
    await positions.apply("acme", first)
    await positions.remove("acme", first)
    await other.apply("acme", record("deb-1", stand("Yes.")))
    await positions.apply("acme", record("deb-2", stand("No.")))
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_a_debate_that_is_recorded_anew_with_another_question_is_compared_by_that(kept: Kept) -> None:
    positions = kept.positions
    await positions.apply("acme", record("deb-1", stand("Yes."), question=CHOIR))
    await positions.apply("acme", record("deb-1", stand("Yes.")))
    await positions.apply("acme", record("deb-2", stand("No.")))
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_questions_that_another_model_embedded_are_not_compared(kept: Kept) -> None:
    await kept.record(record("deb-1", stand("Yes.")))
    kept.meanings.model = "other"
    await kept.record(record("deb-2", stand("No.")))
    assert not await kept.outcomes()


@pytest.mark.parametrize(
    "damage", [{"concluded": None}, {"concluded": "soon"}, {"related": 7}, {"vector": "A"}]
)
async def test_a_stand_that_cannot_be_read_hides_no_other_and_is_compared_with_none(
    kept: Kept, damage: Fields
) -> None:
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("Yes.")))
    (damaged,) = await kept.documents.find(POSITIONS, {"debate_key": "acme/deb-2"})
    await kept.documents.update(POSITIONS, damaged.key, damage)
    await kept.record(record("deb-3", stand("No.")))
    assert (await kept.outcomes())["deb-3", "deb-1"] == FLIP


async def test_a_question_that_another_model_embedded_since_is_read_again(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = kept.positions
    await positions.apply("acme", record("deb-1", stand("Yes.")))
    monkeypatch.setattr(kept.meanings, "model", "other")
    monkeypatch.setattr(kept.meanings, "_words", ["gate", "choir", "fence"])
    await kept.record(record("deb-1", stand("Yes.")))
    await positions.apply("acme", record("deb-2", stand("No.")))
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_a_matter_is_the_same_whatever_the_question_if_the_decision_names_the_earlier_one(
    kept: Kept,
) -> None:
    await kept.record(
        record("deb-1", stand("Yes.")), record("deb-2", stand("No."), question=CHOIR, deb_1=REFINES)
    )
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_stands_on_like_questions_are_not_compared_if_the_answer_says_that_it_is_another_matter(
    kept: Kept,
) -> None:
    other = record("deb-2", stand("No.", for_decision=True), deb_1=DECISION_RELATION_OTHER_MATTER)
    await kept.record(record("deb-1", stand("Yes.", for_decision=True)), other)
    assert not await kept.outcomes()


async def test_a_decision_does_not_settle_a_flip_that_its_answer_calls_another_matter(kept: Kept) -> None:
    other = DECISION_RELATION_OTHER_MATTER
    await kept.record(
        record("deb-1", stand("Yes.")),
        record("deb-2", stand("No.")),
        record("deb-3", stand("No.", "bo", for_decision=True), deb_1=other, deb_2=other),
    )
    assert await kept.settled() == {"deb-2": None}


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
    kept: Kept,
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


async def test_a_flip_is_found_whichever_debate_is_recorded_first(kept: Kept) -> None:
    await kept.record(
        record("deb-3", stand("Yes.")), record("deb-1", stand("Yes.")), record("deb-2", stand("No."))
    )
    assert await kept.outcomes() == {
        ("deb-2", "deb-1"): FLIP,
        ("deb-3", "deb-1"): NO_FLIP,
        ("deb-3", "deb-2"): FLIP,
    }


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
    kept: Kept, decision: RecordDebateRequest, took_later: bool | None, order: Sequence[int]
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
    kept: Kept, flipped: Sequence[FinalStand], took_later: bool | None, order: Sequence[int]
) -> None:
    records = [record("deb-1", stand("Yes.", for_decision=True)), record("deb-2", *flipped)]
    await kept.record(*(records[place] for place in order))
    assert await kept.settled() == {"deb-2": None}, "feedback has to agree with it"
    await kept.rate("deb-2", 1)
    assert await kept.settled() == {"deb-2": None if took_later is None else ("deb-2", took_later)}
    await kept.rate("deb-2", 1, -1)
    assert await kept.settled() == {"deb-2": None}, "the latest feedback counts"


async def test_feedback_that_came_before_the_debate_was_recorded_settles_its_flips(kept: Kept) -> None:
    await kept.rate("deb-2", 1)
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("No.", for_decision=True)))
    assert await kept.settled() == {"deb-2": ("deb-2", True)}
    (entry,) = await kept.listed(only_flips=True)
    assert entry.changes[0].settlement.approved


async def test_a_flip_is_open_again_if_a_person_does_not_find_the_decision_good_that_settled_it(
    kept: Kept,
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
    kept: Kept, lost: bool
) -> None:
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("No.", for_decision=True)))
    approvals = Approvals(StoppingDocuments(kept.documents, Writes(0, lost)))
    with pytest.raises(StoppedError):
        await approvals.put("acme/deb-2", 1, 1)
    await kept.rate("deb-2", 1)
    await kept.rate("deb-2", 1)
    assert await kept.settled() == {"deb-2": ("deb-2", True)}
    assert len(await kept.documents.find(SETTLEMENTS, {})) == 1


async def test_feedback_on_the_debate_before_a_flip_does_not_settle_it(kept: Kept) -> None:
    await kept.record(record("deb-1", stand("Yes.", for_decision=True)), record("deb-2", stand("No.")))
    await kept.rate("deb-1", 1)
    assert await kept.settled() == {"deb-2": None}


async def test_the_first_decision_that_takes_a_side_settles_and_the_next_one_does_once_it_is_forgotten(
    kept: Kept,
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


async def test_a_flip_is_settled_by_three_decisions_at_most_of_which_the_first_counts(kept: Kept) -> None:
    decisions = [record(f"deb-{day}", stand("No.", "bo", for_decision=True)) for day in range(3, 9)]
    await kept.record(record("deb-1", stand("Yes.")), record("deb-2", stand("No.")), *decisions)
    assert len(await kept.documents.find(SETTLEMENTS, {})) == 3
    assert await kept.settled() == {"deb-2": ("deb-3", True)}
    for each in decisions[:2]:
        await kept.positions.remove("acme", each)
    assert await kept.settled() == {"deb-2": ("deb-5", True)}


async def test_a_forgotten_debate_takes_all_changes_to_its_stands_along_and_no_others(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes_module, "_PAGE", 2)
    both = (stand("Yes."), stand("Yes.", "bo"))
    records = [record(f"deb-{number}", *both) for number in (1, 2, 3, 10, 31)]
    await kept.record(*records)
    await kept.positions.remove("acme", records[2])
    left = ["deb-1", "deb-2", "deb-10", "deb-31"]
    assert await kept.outcomes() == {(one, other): NO_FLIP for other, one in combinations(left, 2)}
    assert not [each for each in await kept.stored() if "deb-3/" in each.key]


async def test_a_forgotten_debate_leaves_nothing_and_takes_its_flips_along(kept: Kept) -> None:
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
    kept: Kept,
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
    kept: Kept,
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


async def test_wherever_the_process_stops_the_same_record_again_finishes_it(kept: Kept) -> None:
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
                await getattr(kept.stopping(Writes(limit, lost)), action)("acme", records[2])
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
    kept: Kept, *, lost: bool
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
    kept: Kept, monkeypatch: pytest.MonkeyPatch
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
    kept: Kept, monkeypatch: pytest.MonkeyPatch
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


async def test_without_the_convergence_service_an_error_says_so_and_the_record_can_be_applied_later(
    kept: Kept,
) -> None:
    await kept.record(record("deb-1", stand("Yes.")))
    kept.sides.away = True
    with pytest.raises(ParleyError, match="away"):
        await kept.record(record("deb-2", stand("No.")))
    kept.sides.away = False
    await kept.record(record("deb-2", stand("No.")))
    assert await kept.outcomes() == {("deb-2", "deb-1"): FLIP}


async def test_a_debate_without_stands_asks_for_no_meaning(kept: Kept) -> None:
    await kept.record(record("deb-1"))
    assert not kept.meanings.embedded


async def test_an_agent_of_many_debates_is_compared_with_the_latest_on_the_matter(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions_module, "_MAX_COMPARED", 2)
    monkeypatch.setattr(changes_module, "_MAX_CHANGES", 3)
    await kept.record(*(record(f"deb-{day}", stand("Yes.")) for day in range(1, 5)))
    kept.sides.read_pairs.clear()
    await kept.record(record("deb-5", stand("No.")))
    assert len(kept.sides.read_pairs) == 2
    (latest,) = await kept.listed(only_flips=True)
    assert [each.earlier_debate_id for each in latest.changes] == ["deb-4", "deb-3"]


async def test_the_ledger_is_listed_in_pages_the_latest_first(kept: Kept) -> None:
    await kept.record(*(record(f"deb-{day}", stand("Yes."), stand("No.", "bo")) for day in (2, 1, 3)))
    found, after = list[tuple[str, str]](), None
    while True:
        page, after = await kept.positions.page("acme", agent="", only_flips=False, after=after, size=4)
        found += [(each.debate_id, each.agent_id) for each in page]
        if after is None:
            break
    assert [debate for debate, _ in found] == ["deb-3"] * 2 + ["deb-2"] * 2 + ["deb-1"] * 2
    assert len(set(found)) == 6
