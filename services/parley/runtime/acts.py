"""Acts: calls as an audit log sees them, for a service that keeps one."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Protocol

from parley.runtime.errors import ParleyError


class Act(Protocol):
    """A call of an RPC. The server says how it goes on."""

    async def start(self, request: object) -> None:
        """Record that it is about to be done, if it must not be done unrecorded. The caller is admitted. Raise ParleyError."""
        ...

    def finish(self, response: object = None) -> None:
        """Record that it is done, with the ids in its response; of a stream, that it is open. A second call does nothing.

        The server does it too, so that only a handler that writes its stream by itself has to.
        """
        ...

    def fail(self, error: ParleyError | None) -> None:
        """Record why it is not done, unless it is finished; None: it was cut off."""
        ...


Acts = Callable[[str], Act]
"""Returns the act of a call of a method (`parley.v1.OrchestratorService/CreateDebate`), before its caller is known."""


class _UnrecordedAct:
    """A call of a service that keeps no audit log."""

    async def start(self, request: object) -> None:
        pass

    def finish(self, response: object = None) -> None:
        pass

    def fail(self, error: ParleyError | None) -> None:
        pass


_UNRECORDED: Final = _UnrecordedAct()
_act: ContextVar[Act] = ContextVar("parley_act", default=_UNRECORDED)


def unrecorded(_method: str) -> Act:
    """Return the act of a call that is not recorded."""
    return _UNRECORDED


def current_act() -> Act:
    """Return the act of the current call."""
    return _act.get()


def set_act(act: Act) -> None:
    """Set the act of this task's call."""
    _act.set(act)
