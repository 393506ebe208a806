"""How long an answer takes: fixed or log-normal, drawn by a key and not by the order of arrival."""

import asyncio
from dataclasses import dataclass
from hashlib import blake2b
from math import exp
from statistics import NormalDist
from time import monotonic

BENCH_KEY_HEADER = "X-Parley-Bench-Key"
"""A caller that sends this header names the draw itself: same seed and key, same latency."""

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Latency:
    """The time a call takes from its arrival to the last byte of its answer, streamed or not.

    It is a draw (`median` seconds; log-normal when `sigma` is above 0, else fixed) plus `per_token` seconds
    for each word of the answer. Of the draw, the share `first_token_share` (0 to 1) passes before the first
    token of a stream, the rest is spread over its words. A latency of 0 never sleeps.
    """

    median: float = 0.0
    sigma: float = 0.0
    seed: int = 0
    first_token_share: float = 1.0
    per_token: float = 0.0

    def __post_init__(self) -> None:
        if min(self.median, self.sigma, self.per_token) < 0 or not 0 <= self.first_token_share <= 1:
            raise ValueError(f"{self}: times are 0 or more, first_token_share is between 0 and 1")

    def draw(self, key: str) -> float:
        """Return the seconds for this key: the same for the same seed and key, whatever came before."""
        if self.sigma == 0.0 or self.median == 0.0:
            return self.median
        digest = blake2b(f"{self.seed}/{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        uniform = ((int.from_bytes(digest) >> 11) + 0.5) / (1 << 53)
        return self.median * exp(self.sigma * _NORMAL.inv_cdf(uniform))


async def sleep_until(moment: float) -> None:
    """Sleep until a moment of `time.monotonic`; return at once, with no turn of the loop, if it has passed."""
    left = moment - monotonic()
    if left > 0:
        await asyncio.sleep(left)
