"""Times and spans of the contract are read as the library of Protocol Buffers reads them."""

from datetime import UTC, datetime

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.model.times import seconds_of, time_of

_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""The first second of the year 1, and the last of the year 9999."""


@pytest.mark.parametrize("seconds", [_FIRST, -1, 0, 1_795_727_119, _LAST])
@pytest.mark.parametrize("nanos", [0, 1, 999, 1_000, 999_999_999])
def test_a_time_is_what_the_library_makes_of_it(seconds: int, nanos: int) -> None:
    stamp = Timestamp(seconds=seconds, nanos=nanos)
    read: datetime = stamp.ToDatetime(UTC)
    assert time_of(stamp) == read


@pytest.mark.parametrize(("seconds", "nanos"), [(_FIRST - 1, 0), (_LAST + 1, 0), (0, -1), (0, 1_000_000_000)])
def test_what_is_no_time_is_refused(seconds: int, nanos: int) -> None:
    with pytest.raises(ValueError, match="no time"):
        time_of(Timestamp(seconds=seconds, nanos=nanos))


@pytest.mark.parametrize(("seconds", "nanos"), [(0, 0), (1, 999_999), (1, 1_000_000), (12, 345_678_901)])
def test_a_span_is_read_to_the_millisecond(seconds: int, nanos: int) -> None:
    span = Duration(seconds=seconds, nanos=nanos)
    assert seconds_of(span) == span.ToMilliseconds() / 1000
