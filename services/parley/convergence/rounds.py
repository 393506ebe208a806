"""Brings rounds of stands into vectors and has them assessed and grouped."""

import asyncio
from collections.abc import Sequence

from parley.convergence.assessment import Assessment, Round, Thresholds, assess
from parley.convergence.embeddings import Embeddings
from parley.convergence.grouping import Grouping, group
from parley.convergence.likeness import Placed, centred
from parley.convergence.stands import Stand, sentences
from parley.convergence.vectors import Vector

__all__ = ["Rounds"]


class Rounds:
    """Assesses and groups stands: positions by the fine model, texts and sentences by the fast one."""

    def __init__(self, fine: Embeddings, fast: Embeddings) -> None:
        self._fine = fine
        self._fast = fast

    async def group(self, question: str, stands: Sequence[Stand]) -> Grouping:
        """Groups stands by position."""
        placed = await self._placed(question, stands)
        return await asyncio.to_thread(group, question, placed)

    async def assess(
        self,
        question: str,
        stands: Sequence[Stand],
        previous: Sequence[Stand],
        critics: Sequence[bool],
        thresholds: Thresholds,
    ) -> Assessment:
        """Assesses a round against the one before, if there was one."""
        present = await self._round(question, stands)
        before = await self._round(question, previous) if previous else None
        return await asyncio.to_thread(assess, question, present, before, critics, thresholds)

    async def _placed(self, question: str, stands: Sequence[Stand]) -> tuple[Placed, ...]:
        positions = [stand.taken for stand in stands]
        origin, *vectors = await self._fine.of([question, *positions])
        return tuple(
            Placed(stand.agent_id, position, centred(vector, origin))
            for stand, position, vector in zip(stands, positions, vectors, strict=True)
        )

    async def _round(self, question: str, stands: Sequence[Stand]) -> Round:
        said = [each for stand in stands for each in sentences(stand.text or stand.position)]
        return Round(
            stands=await self._placed(question, stands),
            texts=await self._texts(question, stands),
            sentences=tuple(await self._fast.of(said)),
        )

    async def _texts(self, question: str, stands: Sequence[Stand]) -> tuple[Vector, ...]:
        if not all(stand.text.strip() for stand in stands):
            return ()
        origin, *vectors = await self._fast.of([question, *(stand.text for stand in stands)])
        return tuple(centred(vector, origin) for vector in vectors)
