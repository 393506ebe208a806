"""Stops: what agents say of themselves ends the rounds only where enough of them say enough."""

from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.formats.arena.rules import (
    confidence_finding,
    probability_finding,
    readiness_finding,
    stability_finding,
    unanimity_finding,
)
from parley.orchestrator.formats.arena.settings import asks_readiness
from parley.orchestrator.model.readiness import Readiness
from parley.v1.arena_pb2 import StoppingSettings
from parley.v1.debate_pb2 import DraftGroup, DraftGroups
from tests.support.arena_debates import arena_settings

STOPPING = arena_settings().stopping
SAID = st.lists(
    st.builds(Readiness, st.sampled_from([True, False, None]), st.none() | st.floats(0, 1)), max_size=12
)
SURE = Readiness(True, 0.8)


def test_three_of_four_that_are_eighty_percent_sure_are_enough() -> None:
    assert readiness_finding([SURE, SURE, SURE, Readiness()], 4, STOPPING).ends_rounds
    assert not readiness_finding([SURE, SURE, Readiness(True, 0.79), Readiness()], 4, STOPPING).ends_rounds
    assert not readiness_finding([SURE, SURE, Readiness(False, 0.9), Readiness()], 4, STOPPING).ends_rounds


@given(SAID, st.integers(0, 4))
def test_who_says_nothing_is_not_ready(said: list[Readiness], silent: int) -> None:
    agents = len(said) + silent
    assert readiness_finding([*said, *[Readiness()] * silent], agents, STOPPING) == readiness_finding(
        said, agents, STOPPING
    )


@given(SAID)
def test_one_more_that_is_ready_never_undoes_it(said: list[Readiness]) -> None:
    agents = len(said) + 1
    if readiness_finding([*said, Readiness()], agents, STOPPING).ends_rounds:
        assert readiness_finding([*said, SURE], agents, STOPPING).ends_rounds


@given(SAID)
def test_the_average_counts_only_where_three_quarters_say_how_sure_they_are(said: list[Readiness]) -> None:
    stopping = StoppingSettings(confidence_threshold_percent=1)
    stated = [each.confidence for each in said if each.confidence is not None]
    holds = confidence_finding(said, len(said), stopping).ends_rounds
    if not said or len(stated) < 0.75 * len(said):
        assert not holds
    else:
        assert holds == (100 * sum(stated) / len(stated) >= 1)


def test_agents_are_asked_only_where_a_rule_goes_by_it() -> None:
    assert asks_readiness(StoppingSettings(ready_signal=True))
    assert asks_readiness(StoppingSettings(confidence_threshold_percent=90))
    assert asks_readiness(StoppingSettings(stable_positions=True))
    assert not asks_readiness(StoppingSettings(judge_termination=True))


def drafts(*groups: str, certain: bool = True) -> DraftGroups:
    return DraftGroups(groups=[DraftGroup(agent_ids=each.split()) for each in groups], certain=certain)


def test_drafts_are_unanimous_only_where_that_is_certain() -> None:
    assert unanimity_finding(drafts("ada bo cy")).ends_rounds
    assert not unanimity_finding(drafts("ada bo", "cy")).ends_rounds
    assert not unanimity_finding(drafts("ada bo cy", certain=False)).ends_rounds


def test_a_position_is_probable_enough_only_where_it_is_certain_who_holds_it() -> None:
    sure = {"ada": 3.0, "bo": 3.0}
    assert probability_finding(drafts("ada bo"), sure, STOPPING).ends_rounds
    assert not probability_finding(drafts("ada bo", certain=False), sure, STOPPING).ends_rounds
    assert not probability_finding(drafts("ada", "bo"), sure, STOPPING).ends_rounds


def test_positions_are_stable_up_to_the_threshold_and_not_where_that_cannot_be_told() -> None:
    assert stability_finding(0.05, STOPPING).ends_rounds
    assert not stability_finding(0.06, STOPPING).ends_rounds
    assert not stability_finding(None, STOPPING).ends_rounds
