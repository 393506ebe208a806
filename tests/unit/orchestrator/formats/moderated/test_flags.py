"""Guards: each fires on every one of twenty planted debates, and on none of forty clean ones."""

import pytest

from parley.orchestrator.formats.moderated.flags import (
    is_off_topic,
    is_over_budget,
    is_repetition,
    on_topic_share,
    repetition_share,
)
from tests.support.planted_debates import Argued, clean, list_astray, list_repeating


def _measure_repetition(each: Argued) -> float:
    share = repetition_share(each.text, each.before)
    assert share is not None
    return share


def _measure_on_topic(each: Argued) -> float:
    share = on_topic_share(each.text, (each.question, *each.others))
    assert share is not None
    return share


def test_there_are_twenty_planted_debates_of_a_kind_and_forty_clean_ones() -> None:
    assert [len(each()) for each in (list_repeating, list_astray, clean)] == [20, 20, 40]


def test_repetition_is_flagged_in_all_that_repeat_and_in_none_that_go_on() -> None:
    assert min(map(_measure_repetition, list_repeating())) > 0.65
    assert max(map(_measure_repetition, clean())) < 0.25
    assert all(is_repetition(_measure_repetition(each)) for each in list_repeating())
    assert not any(is_repetition(_measure_repetition(each)) for each in clean())


def test_who_strays_is_flagged_and_who_argues_on_the_question_is_not() -> None:
    assert max(map(_measure_on_topic, list_astray())) < 0.09
    assert min(map(_measure_on_topic, clean())) > 0.11
    assert all(is_off_topic(_measure_on_topic(each)) for each in list_astray())
    assert not any(is_off_topic(_measure_on_topic(each)) for each in clean())


def test_a_budget_is_exceeded_by_what_is_written_in_a_round_together() -> None:
    planted = [(1000 + 50 * extra, 1001) for extra in range(20)]
    fine = [(1000 - 25 * less, 1000) for less in range(40)]
    assert all(is_over_budget(each, 2000, truncated=False) for each in planted)
    assert not any(is_over_budget(each, 2000, truncated=False) for each in fine)
    assert is_over_budget((10, 10), 2000, truncated=True)
    assert not is_over_budget((10_000, 10_000), 0, truncated=True), "there is no limit"


def test_of_short_texts_nothing_is_told() -> None:
    assert repetition_share("Yes, I agree.", "Yes, I agree.") is None
    assert on_topic_share("Yes, I agree.", ["Is it so?"]) is None


def test_exactly_the_limit_is_no_repetition() -> None:
    assert not is_repetition(0.6)
    assert is_repetition(0.61)


@pytest.mark.parametrize("text", ["缓存会话应该放在内存数据库里 因为延迟更低 而且团队已经熟悉它"])
def test_languages_without_blanks_are_measured_too(text: str) -> None:
    assert repetition_share(text, text) == 1.0
