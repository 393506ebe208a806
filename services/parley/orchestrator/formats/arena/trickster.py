"""The trickster: agreement that would end the rounds is looked at, and challenged if it is hollow."""

import asyncio
import math
from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict

from parley.orchestrator.formats.arena.discussion import Discussion
from parley.orchestrator.formats.arena.judge import judge_of
from parley.orchestrator.model.challenge import challenge_of
from parley.orchestrator.model.hollowness import features_of, hollow_probability
from parley.orchestrator.model.tasks import user_part
from parley.orchestrator.phases.assess import Support, assess_support
from parley.orchestrator.phases.prompting import direction
from parley.runtime.contract_settings import default_of
from parley.v1.arena_pb2 import (
    TRICKSTER_VERDICT_CHALLENGED,
    TRICKSTER_VERDICT_NO_INTERVENTION_LEFT,
    TRICKSTER_VERDICT_NO_ROUND_LEFT,
    TRICKSTER_VERDICT_SOUND,
    AgreementFeatures,
    TricksterFinding,
    TricksterSettings,
    TricksterVerdict,
)
from parley.v1.debate_pb2 import (
    STOP_REASON_AGENTS_READY,
    STOP_REASON_CONFIDENCE_REACHED,
    STOP_REASON_CONVERGED,
    STOP_REASON_UNANIMOUS_DRAFTS,
)
from parley.v1.event_pb2 import RoundsEnded, TricksterChecked
from parley.v1.gateway_pb2 import PromptPart

_AGREEMENT: Final = frozenset(
    {
        STOP_REASON_CONVERGED,
        STOP_REASON_AGENTS_READY,
        STOP_REASON_CONFIDENCE_REACHED,
        STOP_REASON_UNANIMOUS_DRAFTS,
    }
)
"""Reasons to end the rounds that are agreement, or say that the agents have no more to settle."""
_MAX_ODDS_BY_TEXT: Final = 2.0
"""If the judge says what evidence there is, the texts count for or against hollowness by so much log-odds at most (88 %)."""
_ODDS_PER_POINT: Final = 0.8
_MIDDLE: Final = 5.0
"""Of the support that the judge sees, each point below the middle of its scale counts by so much log-odds. Chosen, not fitted:
a judge that is sure, three points from the middle, outweighs the texts, and one that is not sure leaves it to them."""


def combine_with_support(probability: float, support: float) -> float:
    """Return how probable it is that an agreement is hollow, by its texts and by the support of 0 to 10 that the judge sees."""
    odds = (
        math.log(probability / (1 - probability))
        if 0 < probability < 1
        else math.copysign(math.inf, probability - 0.5)
    )
    total_odds = max(-_MAX_ODDS_BY_TEXT, min(_MAX_ODDS_BY_TEXT, odds)) + _ODDS_PER_POINT * (_MIDDLE - support)
    return 1 / (1 + math.exp(-total_odds))


async def challenge_if_hollow(arena: Discussion, number: int, ended: RoundsEnded) -> bool:
    """Return whether an agreement after a round is challenged, so that the rounds go on; what was found is recorded."""
    settings, work = arena.settings.trickster, arena.works()
    if not arena.settings.HasField("trickster") or ended.reason not in _AGREEMENT or not work:
        return False
    critiques = arena.transcript.critiques_of(number)
    features = await asyncio.to_thread(features_of, arena.debate.spec.question, work, critiques)
    probability, said = hollow_probability(features), None
    if settings.asks:
        said = await assess_support(
            arena.debate, judge_of(arena), number, work, arena.requirements.to_prompt_text()
        )
    if said is not None:
        probability = combine_with_support(probability, said.mean)
    threshold = settings.threshold_percent or default_of(TricksterSettings, "threshold_percent")
    verdict = _verdict(arena, number, is_hollow=100 * probability >= threshold)
    challenge = (
        _challenge_prompt(challenge_of(features), said) if verdict == TRICKSTER_VERDICT_CHALLENGED else ()
    )
    finding = TricksterFinding(
        round=number,
        verdict=verdict,
        hollow_percent=100 * probability,
        threshold_percent=threshold,
        features=AgreementFeatures(**asdict(features)),
        support=None if said is None else said.mean,
        challenge="\n\n".join(each.text for each in challenge),
    )
    arena.debate.record_event(f"round/{number}/trickster", TricksterChecked(finding=finding))
    if challenge:
        arena.challenges[number] = challenge
    return bool(challenge)


def _verdict(arena: Discussion, number: int, *, is_hollow: bool) -> TricksterVerdict.ValueType:
    if not is_hollow:
        return TRICKSTER_VERDICT_SOUND
    if number >= arena.last_revision:
        return TRICKSTER_VERDICT_NO_ROUND_LEFT
    most = arena.settings.trickster.max_interventions or default_of(TricksterSettings, "max_interventions")
    if len(arena.challenges) >= most:
        return TRICKSTER_VERDICT_NO_INTERVENTION_LEFT
    return TRICKSTER_VERDICT_CHALLENGED


def _challenge_prompt(challenge: str, said: Support | None) -> Sequence[PromptPart]:
    """Return what the prompts of the next round say; the judge's words as a quotation."""
    own = user_part(challenge)
    if said is None or not said.missing:
        return (own,)
    return (own, direction("What the judge finds without support", said.missing))
