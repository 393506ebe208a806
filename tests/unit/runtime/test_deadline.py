import time

from hypothesis import given
from hypothesis import strategies as st

from parley.runtime import deadline
from tests.support.deadlines import deadline_in


def test_without_a_deadline_a_call_keeps_its_own_timeout_or_none() -> None:
    assert deadline.remaining() is None
    assert deadline.timeout_for_call(None) is None
    assert deadline.timeout_for_call(3.0) == 3.0


@given(st.floats(min_value=0.001, max_value=1e6))
def test_what_is_passed_on_is_less_by_the_smaller_of_the_two_margins(seconds: float) -> None:
    began = time.monotonic()
    with deadline_in(seconds):
        passed_on = deadline.timeout_for_call(None)
    assert passed_on is not None
    took = time.monotonic() - began
    margin = min(deadline.MARGIN_SECONDS, deadline.MARGIN_SHARE * seconds)
    assert seconds - margin - took <= passed_on <= seconds - margin + took
    assert passed_on < seconds


def test_a_deadline_that_passed_leaves_nothing_to_pass_on() -> None:
    with deadline_in(-1):
        passed_on = deadline.timeout_for_call(10)
    assert passed_on is not None
    assert passed_on < 0
