"""Positions in a store, and records of debates that have final stands."""

from collections.abc import Sequence
from dataclasses import dataclass

from parley.memory.approvals import Approvals
from parley.memory.changes import CHANGES, SETTLEMENTS
from parley.memory.positions import Positions
from parley.memory.stand_reader import StandReader
from parley.memory.stands import POSITIONS
from parley.memory.writing import write_together
from parley.runtime.clock import SystemClock
from parley.runtime.errors import unavailable
from parley.storage.ports import Document, Documents
from parley.v1.effect_pb2 import (
    DECISION_RELATION_CONFIRMS,
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
from tests.support.stopping_stores import StoppingDocuments, Writes
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
class KeptPositions:
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
            await self.positions.apply("acme", each, write_together)

    async def listed(
        self, tenant: str = "acme", *, agent: str = "", only_flips: bool = False
    ) -> list[LedgerPosition]:
        found, _ = await self.positions.list_page(
            tenant, agent=agent, only_flips=only_flips, after=None, size=200
        )
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
