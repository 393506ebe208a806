"""What tests of deliveries have in common: all kinds of events, a day in seconds, and conditions to wait for."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from parley.v1.hook_pb2 import (
    HOOK_EVENT_BUDGET_REACHED,
    HOOK_EVENT_CONCLUDED,
    HOOK_EVENT_DECISION_REVERSED,
    HOOK_EVENT_FAILED,
    HOOK_EVENT_WAITING,
)

ALL = (
    HOOK_EVENT_CONCLUDED,
    HOOK_EVENT_FAILED,
    HOOK_EVENT_WAITING,
    HOOK_EVENT_BUDGET_REACHED,
    HOOK_EVENT_DECISION_REVERSED,
)
DAY = timedelta(days=1).total_seconds()


def make_async(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def is_met() -> bool:
        return condition()

    return is_met
