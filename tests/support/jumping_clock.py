"""The machine's clock, whose time a test sets forward or back, as an administrator or a time server does."""

from datetime import datetime, timedelta

from parley.runtime.clock import SystemClock


class JumpingClock(SystemClock):
    """`jump` moves its wall time alone: what is measured from it goes on as before."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self._ahead

    def jump(self, ahead: timedelta) -> None:
        self._ahead += ahead
