"""Times and durations, between Python and the contract."""

from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


def timestamp(time: datetime) -> Timestamp:
    """Return a time as the contract has it."""
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp


def time_of(stamp: Timestamp) -> datetime:
    """Return a time of the contract (UTC)."""
    return stamp.ToDatetime(UTC)


def duration(seconds: float) -> Duration:
    """Return a span of time as the contract has it."""
    span = Duration()
    span.FromTimedelta(timedelta(seconds=seconds))
    return span


def seconds_of(span: Duration) -> float:
    """Return a span of time of the contract in seconds, to the millisecond; 0 if it is unset."""
    return float(span.ToMilliseconds() / 1000)
