"""What can go wrong with a step, told apart by whether it is recorded."""

from parley.orchestrator.events import Usage

__all__ = ["DebateFailedError", "OutOfReachError", "StepError"]


class StepError(Exception):
    """A step failed for good. It is an outcome, and is recorded."""

    def __init__(self, reason: str, message: str, usage: Usage | None = None) -> None:
        """Say why in a word (`PROVIDER_AUTH`) and in a line, and what was used up to then."""
        super().__init__(message)
        self.reason = reason
        self.usage = usage or Usage()


class OutOfReachError(Exception):
    """A service of our own is away. It is no outcome: the step waits and is made again."""


class DebateFailedError(Exception):
    """The debate cannot go on. `steps` are tried again when it is resumed."""

    def __init__(
        self, reason: str, message: str, *, agent: str = "", phase: str = "", steps: tuple[str, ...] = ()
    ) -> None:
        """Say why in a word and in a line, and where it happened."""
        super().__init__(message)
        self.reason = reason
        self.agent = agent
        self.phase = phase
        self.steps = steps
