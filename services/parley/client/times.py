"""Times, as a client puts them into requests."""

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp


def to_timestamp(time: datetime | None) -> Timestamp | None:
    """Return a time as the contract has it; without a zone, it is UTC. None stays None."""
    if time is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
