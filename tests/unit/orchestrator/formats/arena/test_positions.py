"""Positions round by round: how far they have shifted, and where that cannot be told."""

from collections.abc import Sequence

from parley.orchestrator.formats.arena.positions import PositionTracker
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.readiness import Readiness
from parley.v1.convergence_pb2 import AgentStability, AssessResponse, Contradiction, UnsurePair
from parley.v1.debate_pb2 import DraftGroup, DraftGroups

APART = DraftGroups(groups=[DraftGroup(agent_ids=["ada", "bo"]), DraftGroup(agent_ids=["cy"])], certain=True)
SPLIT = (("ada", "cy"), ("bo", "cy"))


def work(confidence: float | None = None) -> list[Contribution]:
    return [
        Contribution(each, "refinement", 3, "text", readiness=Readiness(None, confidence))
        for each in ("ada", "bo", "cy")
    ]


def make_assessment(
    moved: Sequence[str] = (), apart: Sequence[tuple[str, str]] = (), unsure: Sequence[tuple[str, str]] = ()
) -> AssessResponse:
    return AssessResponse(
        stability=[AgentStability(agent_id=each, kept=each not in moved) for each in ("ada", "bo", "cy")],
        contradictions=[Contradiction(agent_id=one, other_agent_id=other) for one, other in apart],
        unsure=[UnsurePair(agent_id=one, other_agent_id=other) for one, other in unsure],
    )


def start_tracker(drafts: DraftGroups | None = APART) -> PositionTracker:
    positions = PositionTracker()
    positions.start(drafts)
    return positions


def test_nobody_has_moved_even_where_it_is_open_who_agrees_with_whom() -> None:
    assert start_tracker().track_shift(3, work(), make_assessment(apart=SPLIT)) == 0
    assert start_tracker().track_shift(3, work(), make_assessment(unsure=SPLIT)) == 0
    assert start_tracker(None).track_shift(3, work(), make_assessment(apart=SPLIT)) == 0


def test_somebody_has_moved_where_it_is_certain_who_agrees_with_whom() -> None:
    shifted = start_tracker().track_shift(3, work(), make_assessment(["cy"]))
    assert shifted is not None
    assert shifted > 0.05


def test_it_cannot_be_told_where_somebody_moved_and_that_is_open_before_or_now() -> None:
    assert start_tracker().track_shift(3, work(), None) is None
    assert start_tracker().track_shift(3, work(), make_assessment(["cy"], unsure=SPLIT)) is None
    assert start_tracker(None).track_shift(3, work(), make_assessment(["cy"])) is None
    assert start_tracker().track_shift(3, work(), make_assessment(["cy"], apart=SPLIT[:1])) is None, (
        "bo agrees with both"
    )


def test_after_a_round_that_could_not_be_told_the_next_one_is_compared_with_what_is_known_again() -> None:
    positions = start_tracker(None)
    assert positions.track_shift(3, work(), make_assessment(["cy"], apart=SPLIT)) is None
    moved = positions.track_shift(4, work(), make_assessment(["bo"], apart=(("ada", "bo"), ("ada", "cy"))))
    assert moved is not None
    assert moved > 0.05


def test_agents_that_swap_their_positions_have_moved() -> None:
    shifted = start_tracker().track_shift(3, work(), make_assessment(["ada", "bo", "cy"], apart=SPLIT))
    assert shifted is not None
    assert shifted > 0.05


def test_how_sure_they_are_counts_from_the_second_round_on_in_which_they_say_it() -> None:
    positions = start_tracker()
    assert positions.track_shift(3, work(0.5), make_assessment(apart=SPLIT)) == 0
    shifted = positions.track_shift(4, work(0.9), make_assessment(apart=SPLIT))
    assert shifted is not None
    assert shifted > 0
