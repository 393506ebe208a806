"""What each tenant may use."""

from typing import Final

from msgspec import Struct

REQUEST_BYTES: Final = 16 * 1024 * 1024
"""Of large requests that are worked on at a time, by default."""


class TenantLimits(Struct, frozen=True):
    """Limits of each tenant; 0: no limit.

    Attributes:
        debates: Debates that run or are to be run. Those that wait for a person or a provider do not count.
        waiting: Debates that wait.
        requests: Calls a minute.
        watches: Streams that follow a debate or read a log, at a time.
        tokens: Tokens a day (UTC), of prompts and answers.
        cost_micros: Millionths of a US dollar a day (UTC), of calls whose price is known.
        stored_bytes: Bytes of all logs.
    """

    debates: int = 0
    waiting: int = 0
    requests: int = 0
    watches: int = 0
    tokens: int = 0
    cost_micros: int = 0
    stored_bytes: int = 0
