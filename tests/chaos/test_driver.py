"""Clients under chaos ask again as long as what failed is the connection."""

import grpc
import pytest

from parley.client import ParleyError
from tests.chaos.driver import call_until_answered


class Call:
    """Raises each error once, then answers."""

    def __init__(self, errors: list[ParleyError]) -> None:
        self.errors = errors

    async def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "answered"


async def test_a_call_is_made_again_whatever_the_status_of_its_broken_connection() -> None:
    broken = [
        ParleyError(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", "the store is away"),
        ParleyError(grpc.StatusCode.DEADLINE_EXCEEDED, "", "Deadline Exceeded"),
        ParleyError(grpc.StatusCode.UNKNOWN, "", "Stream removed (Deadline Exceeded)"),
    ]
    assert await call_until_answered(Call(broken)) == "answered"


async def test_a_refused_call_is_not_made_again() -> None:
    refused = ParleyError(grpc.StatusCode.FAILED_PRECONDITION, "DEBATE_ENDED", "it has ended")
    with pytest.raises(ParleyError, match="it has ended"):
        await call_until_answered(Call([refused]))
