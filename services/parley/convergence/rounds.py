"""Rounds of stands, read and brought into vectors, then assessed and grouped."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import combinations

from parley.convergence.agreement import Agreements, Relation, relation
from parley.convergence.assessment import Assessment, Critic, Round, Thresholds, assess
from parley.convergence.embeddings import Embeddings
from parley.convergence.grouping import Grouping, Reading, group
from parley.convergence.stands import Stand, sentences
from parley.convergence.vectors import Vector, centred

__all__ = ["Rounds", "Settled"]

Settled = Mapping[tuple[str, str], bool]
"""Pairs of agents, the smaller id first, of which somebody said whether they are the same answer."""


class Rounds:
    """Stands assessed and grouped: positions by the agreement model, texts and sentences by their vectors."""

    def __init__(self, fast: Embeddings, agreements: Agreements) -> None:
        self._fast = fast
        self._agreements = agreements

    async def group(self, stands: Sequence[Stand]) -> tuple[Grouping, Reading]:
        """Group stands by position, and say how they relate."""
        reading = await self._reading(stands, {})
        return group(reading), reading

    async def assess(
        self,
        question: str,
        stands: Sequence[Stand],
        previous: Sequence[Stand],
        critics: Sequence[Critic],
        thresholds: Thresholds,
        settled: Settled | None = None,
    ) -> Assessment:
        """Assess a round against the one before, if there was one.

        `settled` decides pairs of the present round that the model is unsure of.
        """
        present = await self._round(question, stands, settled or {})
        before = await self._round(question, previous, {}) if previous else None
        kept = await self._kept(stands, previous)
        return await asyncio.to_thread(assess, present, before, kept, critics, thresholds)

    async def _reading(self, stands: Sequence[Stand], settled: Settled) -> Reading:
        positions = {each.agent_id: each.position for each in sorted(stands, key=lambda each: each.agent_id)}
        pairs = list(combinations(positions, 2))
        told = await self._agreements.of([(positions[one], positions[other]) for one, other in pairs])
        probabilities = dict(zip(pairs, told, strict=True))
        relations = {pair: relation(each) for pair, each in probabilities.items()}
        for pair, same in settled.items():
            if relations.get(pair) is Relation.UNSURE:
                relations[pair] = Relation.SAME if same else Relation.APART
        return Reading(positions, relations, probabilities)

    async def _kept(self, stands: Sequence[Stand], previous: Sequence[Stand]) -> dict[str, float | None]:
        before = {each.agent_id: each.position for each in previous}
        both = [each for each in stands if each.agent_id in before]
        told = await self._agreements.of([(before[each.agent_id], each.position) for each in both])
        return {each.agent_id: _decided(probability) for each, probability in zip(both, told, strict=True)}

    async def _round(self, question: str, stands: Sequence[Stand], settled: Settled) -> Round:
        said = [each for stand in stands for each in sentences(stand.text or stand.position)]
        return Round(
            reading=await self._reading(stands, settled),
            texts=await self._texts(question, stands),
            sentences=tuple(await self._fast.of(said)),
        )

    async def _texts(self, question: str, stands: Sequence[Stand]) -> tuple[Vector, ...]:
        if not all(stand.text.strip() for stand in stands):
            return ()
        origin, *vectors = await self._fast.of([question, *(stand.text for stand in stands)])
        return tuple(centred(vector, origin) for vector in vectors)


def _decided(probability: float | None) -> float | None:
    """Return 1 or 0 where it is decided whether a position was kept, and the probability where it is not."""
    return {Relation.SAME: 1.0, Relation.APART: 0.0}.get(relation(probability), probability)
