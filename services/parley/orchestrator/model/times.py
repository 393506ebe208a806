"""Times and durations, between Python and the contract."""

from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
_LAST_SECOND: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)


def timestamp(time: datetime) -> Timestamp:
    """Return a time as the contract has it. `FromDatetime` takes four times as long."""
    since = time - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1000)


def time_of(stamp: Timestamp) -> datetime:
    """Return a time of the contract (UTC). Raises ValueError if it is none. `ToDatetime` takes three times as long."""
    check_time(stamp)
    return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)


def check_time(stamp: Timestamp) -> None:
    """Raise ValueError unless this is a time that the contract knows, of the years 1 to 9999."""
    if not (_FIRST_SECOND <= stamp.seconds <= _LAST_SECOND and 0 <= stamp.nanos < 1_000_000_000):
        raise ValueError(f"this is no time: {stamp.seconds} seconds and {stamp.nanos} nanoseconds")


def describe_day(stamp: Timestamp) -> str:
    """Return the day of a time (UTC), such as `3 March 2026`."""
    day = time_of(stamp)
    return f"{day.day} {day:%B %Y}"


def duration(seconds: float) -> Duration:
    """Return a span of time, 0 seconds or more, as the contract has it. `FromTimedelta` takes three times as long."""
    span = timedelta(seconds=seconds)
    return Duration(seconds=span.days * 86_400 + span.seconds, nanos=span.microseconds * 1000)


def seconds_of(span: Duration) -> float:
    """Return a span of time of the contract in seconds, to the millisecond; 0 if it is unset."""
    return (span.seconds * 1000 + int(span.nanos / 1_000_000)) / 1000


def stored_time(text: str | None) -> Timestamp | None:
    """Return a time that `time_text` wrote as the contract has it; None if there is none."""
    return timestamp(datetime.fromisoformat(text)) if text else None


def time_text(time: datetime) -> str:
    """Return a time as documents store it, so that texts are ordered as times are (ISO 8601, UTC, microseconds)."""
    return time.isoformat(timespec="microseconds")
