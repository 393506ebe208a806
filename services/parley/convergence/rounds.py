"""Rounds of positions: their relations and vectors, assessment and groups."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Final

from parley.convergence.agreement import Agreements, Pair, Relation, pair_relation, words_key
from parley.convergence.assessment import Assessment, Critic, Round, Thresholds, assess
from parley.convergence.embeddings import Embeddings
from parley.convergence.grouping import Grouping, Reading, group
from parley.convergence.vectors import Vector, center
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.convergence_pb2 import AgentPosition

Settled = Mapping[Pair, bool]
"""Pairs of positions, by their words, and whether it was decided that they are the same answer."""
_Probabilities = Mapping[Pair, float | None]
"""The probability that two positions are one answer."""
IS_SAME: Final = {Relation.SAME: True, Relation.APART: False, Relation.UNSURE: None}
"""Whether two positions are the same answer, by their relation; so whether a position was kept."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(*_#-])|\n+")
_MARKUP: Final = re.compile(r"^[\s#>*_\-•\d.)]*|[*_`]+")
_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MAX_SENTENCES: Final = 200


class Rounds:
    """Assesses and groups positions: positions by the agreement model, texts and sentences by their vectors.

    An agent without a position cannot be compared: a text weighs many things, and which of its sentences is the
    position is a guess.
    """

    def __init__(self, fast: Embeddings, agreements: Agreements) -> None:
        self._fast = fast
        self._agreements = agreements

    async def group(
        self, agent_positions: Sequence[AgentPosition], settled: Settled | None = None
    ) -> tuple[Grouping, Reading]:
        """Return the groups of positions and their relations; `settled` decides pairs that are unsure."""
        reading = _reading(
            agent_positions, await self._estimate_probabilities(_pairs(agent_positions)), settled or {}
        )
        return group(reading), reading

    async def compare(self, pairs: Sequence[Pair]) -> list[Relation]:
        """Return the relation of each pair, in their order."""
        probabilities = await self._estimate_probabilities(pairs)
        return [pair_relation(each, probabilities[each]) for each in pairs]

    async def assess(
        self,
        question: str,
        agent_positions: Sequence[AgentPosition],
        previous: Sequence[AgentPosition],
        critics: Sequence[Critic],
        thresholds: Thresholds,
        settled: Settled | None = None,
    ) -> Assessment:
        """Assess a round against the one before, if there was one.

        `settled` decides pairs of both rounds' positions that are unsure.
        """
        pairs = [*_pairs(agent_positions), *_pairs(previous), *_moves(agent_positions, previous).values()]
        settled = settled or {}
        probabilities, vectors, vectors_before = await asyncio.gather(
            self._estimate_probabilities(pairs),
            self._embed_round(question, agent_positions),
            self._embed_round(question, previous),
        )
        present = Round(_reading(agent_positions, probabilities, settled), *vectors)
        before = Round(_reading(previous, probabilities, settled), *vectors_before) if previous else None
        kept = {
            agent: IS_SAME[_relation(move, probabilities[move], settled)]
            for agent, move in _moves(agent_positions, previous).items()
        }
        return await asyncio.to_thread(assess, present, before, kept, critics, thresholds)

    async def _estimate_probabilities(self, pairs: Sequence[Pair]) -> _Probabilities:
        """Read all pairs concurrently, since the caller waits for all of them."""
        return dict(zip(pairs, await self._agreements.estimate_probabilities(pairs), strict=True))

    async def _embed_round(
        self, question: str, agent_positions: Sequence[AgentPosition]
    ) -> tuple[tuple[Vector, ...], tuple[Vector, ...]]:
        """Return the vectors of a round's texts and of their sentences."""
        all_sentences = await in_thread_if_large(
            (each.text for each in agent_positions), partial(_sentences, agent_positions)
        )
        return await self._embed_texts(question, agent_positions), tuple(
            await self._fast.embed(all_sentences)
        )

    async def _embed_texts(
        self, question: str, agent_positions: Sequence[AgentPosition]
    ) -> tuple[Vector, ...]:
        if not agent_positions or not all(position.text.strip() for position in agent_positions):
            return ()
        origin, *vectors = await self._fast.embed(
            [question, *(position.text for position in agent_positions)]
        )
        return tuple(center(vector, origin) for vector in vectors)


def _sentences(agent_positions: Sequence[AgentPosition]) -> list[str]:
    return [each for position in agent_positions for each in sentences(position.text or position.position)]


def _positions(agent_positions: Sequence[AgentPosition]) -> dict[str, str]:
    return {each.agent_id: each.position for each in sorted(agent_positions, key=lambda each: each.agent_id)}


def _pairs(agent_positions: Sequence[AgentPosition]) -> list[Pair]:
    return list(combinations(_positions(agent_positions).values(), 2))


def _moves(agent_positions: Sequence[AgentPosition], previous: Sequence[AgentPosition]) -> dict[str, Pair]:
    """Return the earlier and the present position, by agent."""
    before = {each.agent_id: each.position for each in previous}
    return {
        each.agent_id: (before[each.agent_id], each.position)
        for each in agent_positions
        if each.agent_id in before
    }


def _reading(agent_positions: Sequence[AgentPosition], by_pair: _Probabilities, settled: Settled) -> Reading:
    positions = _positions(agent_positions)
    probabilities = {
        (one, other): by_pair[positions[one], positions[other]] for one, other in combinations(positions, 2)
    }
    relations = {
        (one, other): _relation((positions[one], positions[other]), each, settled)
        for (one, other), each in probabilities.items()
    }
    return Reading(positions, relations, probabilities)


def _relation(pair: Pair, probability: float | None, settled: Settled) -> Relation:
    """Return the relation of two positions: as the model says if it is sure, else as it was settled."""
    found, same = pair_relation(pair, probability), settled.get(words_key(*pair))
    if found is not Relation.UNSURE or same is None:
        return found
    return Relation.SAME if same else Relation.APART


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without code, markup and headings of a word or two; at most 200."""
    plain = _FENCED.sub("\n", text)
    cleaned = (" ".join(_MARKUP.sub("", part).split()) for part in _SENTENCE_END.split(plain))
    return [part for part in cleaned if len(part.split()) > 2][:_MAX_SENTENCES]
