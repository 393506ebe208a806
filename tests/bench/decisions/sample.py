"""A sample of the simulated debates through the whole system: whether both come to the same, and what debates take."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from parley.v1.arena_pb2 import StoppingSettings
from tests.bench.decisions.agents import JUDGE_SEAT, REGIMES, Panel, Regime, questions
from tests.bench.decisions.debates import AFTER_ALL, calls, hold
from tests.bench.decisions.deciding import Ballots, decide_by_drafts, decide_by_last_vote
from tests.bench.decisions.engine import ADAPTIVE, FIXED, Debated, debate_cases
from tests.bench.decisions.scripted import Case
from tests.bench.decisions.stops import adaptive_end


@dataclass(frozen=True, slots=True)
class Sample:
    """Debates of one topology and one way to end.

    Attributes:
        debates: How many there were.
        agreeing: How many came to the same drafts, ballots and answer, with as many calls, as in process.
        by_drafts: How many were decided by the first drafts; the others by the last vote, since drafts could not be told apart.
        calls: Model calls of a debate, on average, but for those that group positions, which `grouped` counts; `tokens`: of its prompts.
        one_voice: Panels whose voters were said to be one voice.
    """

    topology: str
    ends: str
    debates: int
    agreeing: int
    by_drafts: int
    calls: float
    grouped: float
    tokens: float
    one_voice: frozenset[str]


async def sample(panels: Sequence[Panel]) -> list[Sample]:
    """Hold a debate of each cell of these panels that holds all rounds and one that ends by the rules; by ring and star fewer."""
    every, few = _cases(panels, REGIMES), _cases(panels, REGIMES[-1:])
    return [
        await _sample("all to all", "all rounds", every, FIXED),
        await _sample("all to all", "adaptive", every, ADAPTIVE),
        await _sample("ring", "all rounds", few, FIXED),
        await _sample("star", "all rounds", few, FIXED),
    ]


def _cases(panels: Sequence[Panel], regimes: Sequence[Regime]) -> list[Case]:
    return [
        Case(f"{panel.dice}-{regime.name}-{question.number}", panel, regime, question)
        for panel in panels
        for seed, regime in enumerate(regimes)
        for question in questions(panel, 1, np.random.default_rng([seed, panel.dice]))
    ]


async def _sample(topology: str, ends: str, cases: Sequence[Case], stopping: StoppingSettings) -> Sample:
    found = await debate_cases(cases, topology, stopping)
    return Sample(
        topology,
        ends,
        len(cases),
        sum(_agrees(case, each, topology, ends) for case, each in zip(cases, found, strict=True)),
        sum(each.by_drafts for each in found),
        mean(each.calls for each in found),
        mean(each.grouped for each in found),
        mean(each.tokens for each in found),
        frozenset(case.panel.name for case, each in zip(cases, found, strict=True) if each.one_voice),
    )


def _agrees(case: Case, found: Debated, topology: str, ends: str) -> bool:
    panel = case.panel
    sure = case.question.confidences[: len(panel.skills)]
    course = hold(panel, case.regime, case.question, topology)
    end = AFTER_ALL if ends == "all rounds" else adaptive_end(course, sure, topology)
    last = course.stands[end.place]
    judge = case.question.first[JUDGE_SEAT]
    stood = (
        decide_by_drafts(course.drafts, (), judge)
        if found.by_drafts
        else decide_by_last_vote(Ballots(last, sure), judge)
    )
    expected = course.drafts, stood, calls(len(sure), end, topology)
    voted = all(one in ("", other) for one, other in zip(found.last, last, strict=True))
    return voted and expected == (found.drafts, found.stood, found.calls)
