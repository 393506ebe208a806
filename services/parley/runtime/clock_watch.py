"""Whether the machine's clock was set. A module of its own: commands need a clock, and not what writes logs."""

from datetime import timedelta
from math import inf
from typing import Final

from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger

_STEADY_SECONDS: Final = 3600.0

_logger = get_logger(__name__)


class ClockWatch:
    """Notices that the wall time was set, so that nothing is deleted for its age by a time that is wrong and soon mended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measure()
        self._set_at = -inf

    def is_steady(self) -> bool:
        """Return whether the time was not set by more than an hour, as calls of this method saw, within the last hour."""
        before, self._offset = self._offset, self._measure()
        if abs(self._offset - before) > _STEADY_SECONDS:
            self._set_at = self._clock.monotonic()
            changed = timedelta(seconds=round(self._offset - before))
            _logger.warning("the clock was set; nothing is deleted for its age for an hour", by=str(changed))
        return self._clock.monotonic() - self._set_at >= _STEADY_SECONDS

    def _measure(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()
