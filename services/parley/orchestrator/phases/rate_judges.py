"""The order of those who may judge, by what the ratings know of them."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.judge_choice import Nominee
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Activity
from parley.v1.event_pb2 import StepFailed, Warned
from parley.v1.ratings_pb2 import GetWeightsRequest, Rating

__all__ = ["JUDGE_RATINGS", "rate_judges"]

JUDGE_RATINGS: Final = Activity("judge-ratings", "looking up who judges best", title="ratings of the judges")


async def rate_judges(
    debate: Debate, able: Sequence[AgentSpec], *, by_calibration: bool
) -> Sequence[Nominee]:
    """Return those who may judge, the best by Elo rating or by calibration first; nobody where nothing is known of any.

    Equal ones stand in their order.
    """
    key = JUDGE_RATINGS.name
    request = GetWeightsRequest(agent_ids=[each.id for each in able], domain=debate.spec.domain)
    found = await debate.call_service(
        key, JUDGE_RATINGS.create_work(), request, lambda: debate.services.ratings.get_weights(request)
    )
    if isinstance(found, StepFailed):
        return _nobody(debate, key, found.message)
    ratings = {each.agent_id: each.rating for each in found.weights}
    if not any(_is_known(each, by_calibration=by_calibration) for each in ratings.values()):
        what = "states its confidence in an answer that was judged" if by_calibration else "has a match"
        return _nobody(debate, key, f"no agent {what} yet")
    best_first = sorted(
        able, key=lambda each: -(ratings[each.id].calibration if by_calibration else ratings[each.id].elo)
    )
    return [Nominee(each, _reason(ratings[each.id], by_calibration=by_calibration)) for each in best_first]


def _nobody(debate: Debate, key: str, why: str) -> Sequence[Nominee]:
    message = f"{debate.spec.judge.id} judges, since no judge could be chosen by the ratings: {why}"
    debate.record_event(f"{key}/warning", Warned(message=message))
    return ()


def _is_known(rating: Rating, *, by_calibration: bool) -> bool:
    return rating.HasField("brier_score") if by_calibration else rating.matches > 0


def _reason(rating: Rating, *, by_calibration: bool) -> str:
    if by_calibration:
        return f"calibration {rating.calibration:.2f} after {rating.judged_answers} judged answers"
    return f"Elo rating {rating.elo:.0f} after {rating.matches} matches"
