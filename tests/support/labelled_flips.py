"""How well the position ledger finds the flips of the labelled set, with the models of the convergence service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from parley.convergence.agreement import Agreements, pair_relation
from parley.convergence.models import MiniLm
from parley.convergence.rounds import IS_SAME
from parley.memory.approvals import APPROVALS
from parley.memory.changes import CHANGES, SETTLEMENTS
from parley.memory.embedding import Embedding, EmbeddingClient
from parley.memory.positions import Positions
from parley.memory.stand_reader import StandReader
from parley.memory.stands import POSITIONS
from parley.memory.writing import write_together
from parley.runtime.clock import SystemClock
from parley.storage.opening import open_store
from parley.v1 import memory_pb2 as pb
from parley.v1.effect_pb2 import DECISION_RELATION_REFINES, RelatedDecision

_DATA: Final = Path("tests/data/memory")
_SAME_MATTER: Final = frozenset({"same", "refinement", "condition-met"})
"""The near misses that are on the matter of the earlier stand."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was found of the planted flips. `unknown` is how many of them cannot be told."""

    planted: int
    found: int
    wrong: int
    unknown: int

    @property
    def precision(self) -> float:
        return self.found / max(self.found + self.wrong, 1)

    @property
    def recall(self) -> float:
        return self.found / self.planted

    @property
    def f1(self) -> float:
        return 2 * self.found / (self.planted + self.found + self.wrong)


class _Meanings(EmbeddingClient):
    def __init__(self) -> None:
        self._model = MiniLm()

    async def embed(self, *texts: str) -> list[Embedding]:
        return [Embedding(self._model.embed(each), "minilm") for each in texts]


class _Reader(StandReader):
    def __init__(self, agreements: Agreements) -> None:
        self._agreements = agreements

    async def read(self, pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
        probabilities = await self._agreements.estimate_probabilities(pairs)
        return [IS_SAME[pair_relation(*each)] for each in zip(pairs, probabilities, strict=True)]


async def measure(half: str, agreements: Agreements, *, matter_is_named: bool) -> Figures:
    """Return the figures of a half.

    With `matter_is_named`, each debate says of the earlier ones on its matter that they are: the most that an answer's word can add.
    """
    loaded = yaml.load((_DATA / f"flips-{half}.yaml").read_text("utf-8"), yaml.CSafeLoader)["ledgers"]
    planted = {(each["id"], *pair) for each in loaded for pair in each["flips"]}
    outcomes = dict[tuple[str, str, str], int]()
    with TemporaryDirectory() as folder:
        async with open_store(f"sqlite:///{folder}/store", "memory") as store:
            await store.documents.prepare(POSITIONS, CHANGES, SETTLEMENTS, APPROVALS)
            positions = Positions(store.documents, _Meanings(), _Reader(agreements), SystemClock())
            for each in loaded:
                for record in _to_records(each, matter_is_named=matter_is_named):
                    await positions.apply(each["id"], record, write_together)
                outcomes |= await _list_outcomes(positions, each["id"])
    flips = {pair for pair, outcome in outcomes.items() if outcome == pb.FLIP_OUTCOME_FLIP}
    unknown = {pair for pair, outcome in outcomes.items() if outcome == pb.FLIP_OUTCOME_UNKNOWN}
    return Figures(len(planted), len(flips & planted), len(flips - planted), len(unknown & planted))


def _to_records(ledger: Mapping[str, Any], *, matter_is_named: bool) -> Sequence[pb.RecordDebateRequest]:
    """Return a debate for each stand."""
    named = {tuple(pair) for pair in ledger["flips"]} | {
        tuple(each["pair"]) for each in ledger["near_misses"] if each["why"] in _SAME_MATTER
    }
    records = []
    for number, stand in enumerate(ledger["stands"]):
        debate = pb.PastDebate(
            debate_id=stand["id"], question=stand["question"], conclusion="-", domain="general"
        )
        debate.concluded_at.FromDatetime(datetime.fromisoformat(stand["date"]).replace(tzinfo=UTC))
        debate.concluded_at.seconds += number
        debate.related.extend(
            RelatedDecision(debate_id=earlier, relation=DECISION_RELATION_REFINES)
            for earlier, later in named
            if matter_is_named and later == stand["id"]
        )
        record = pb.RecordDebateRequest(debate=debate)
        record.stands.add(agent_id=stand["agent"], text=stand["stand"])
        records.append(record)
    return records


async def _list_outcomes(positions: Positions, tenant: str) -> dict[tuple[str, str, str], int]:
    found, _ = await positions.list_page(tenant, agent="", only_flips=False, after=None, size=200)
    return {
        (tenant, change.earlier_debate_id, each.debate_id): change.outcome
        for each in found
        for change in each.changes
    }
