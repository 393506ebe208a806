"""What a call without an answer says of its time."""

import pytest

from parley.gateway.failures import format_seconds


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (90, "90 s"),
        (89.93, "90 s"),
        (1200, "1200 s"),
        (9.7, "10 s"),
        (9.4, "9.4 s"),
        (4.98, "5 s"),
        (4.24, "4.2 s"),
        (0.25, "0.25 s"),
        (0, "0 s"),
    ],
)
def test_a_span_is_said_in_whole_seconds_where_less_would_tell_nothing(seconds: float, said: str) -> None:
    assert format_seconds(seconds) == said
