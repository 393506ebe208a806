"""What is said of a service that gave no answer."""

from typing import Any

import grpc
import pytest

from parley.orchestrator.model.errors import StepError
from parley.orchestrator.peers.services import Memory
from parley.v1.memory_pb2 import ListPatternsRequest


class SlowChannel:
    """A channel on which every call takes longer than its time."""

    def unary_unary(self, *_: object, **__: object) -> Any:
        async def call(*_: object, **__: object) -> None:
            no = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, no, no, "Deadline Exceeded")

        return call

    unary_stream = unary_unary


async def test_one_that_is_slow_did_not_answer_in_time() -> None:
    memory = Memory(SlowChannel())  # type: ignore[arg-type]
    with pytest.raises(StepError, match=r"^memory did not answer in time$") as caught:
        await memory.list_patterns(ListPatternsRequest())
    assert caught.value.reason == "MEMORY_AWAY"
