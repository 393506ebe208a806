"""What can go wrong with a step, told apart by whether it is recorded."""

from parley.v1.agent_pb2 import Usage

__all__ = [
    "CheckpointExpiredError",
    "DebateFailedError",
    "ReplayError",
    "ServiceUnavailableError",
    "StepError",
]


class StepError(Exception):
    """A step failed for good. It is an outcome, and is recorded."""

    def __init__(self, reason: str, message: str, usage: Usage | None = None, partial_text: str = "") -> None:
        """Say why in a word (`PROVIDER_AUTH`) and in a line, and what was used and had been written up to then."""
        super().__init__(message)
        self.reason = reason
        self.usage = usage or Usage()
        self.partial_text = partial_text


class ServiceUnavailableError(Exception):
    """A service of our own is away. It is no outcome: the step waits and is made again."""

    def __init__(self, message: str, usage: Usage | None = None, partial_text: str = "") -> None:
        """Say what is away, and what was used and had been written up to then."""
        super().__init__(message)
        self.usage = usage or Usage()
        self.partial_text = partial_text


class ReplayError(Exception):
    """A format did not do again what it did before; the debate must not go on with this version of it."""


class CheckpointExpiredError(Exception):
    """Nobody came to a checkpoint in time; the debate is to pause."""

    def __init__(self, key: str) -> None:
        """Say which."""
        super().__init__(f"nobody came to checkpoint {key} in time")
        self.key = key


class DebateFailedError(Exception):
    """The debate cannot go on. `steps` are tried again when it is resumed.

    Where it can go on once the steps `steps_to_wait_for` succeed, which they may do later, these are waited for first.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        agent: str = "",
        phase: str = "",
        steps: tuple[str, ...] = (),
        awaited: tuple[str, ...] = (),
    ) -> None:
        """Say why in a word and in a line, and where it happened."""
        super().__init__(message)
        self.reason = reason
        self.agent = agent
        self.phase = phase
        self.steps = steps
        self.steps_to_wait_for = awaited
