"""The errors of a step; they differ in whether they are recorded."""

from parley.v1.agent_pb2 import Usage


class StepError(Exception):
    """A step failed for good. It is an outcome, and is recorded."""

    def __init__(self, reason: str, message: str, usage: Usage | None = None, partial_text: str = "") -> None:
        """Create it with a reason (`PROVIDER_AUTH`), a message of one line, and the usage and the text up to then."""
        super().__init__(message)
        self.reason = reason
        self.usage = usage or Usage()
        self.partial_text = partial_text


class UnusableAnswerError(Exception):
    """What an agent wrote, though it is of the form that was asked for, is no answer; the message says why."""


class ServiceUnavailableError(Exception):
    """A service of our own is unavailable. This is no outcome: the step waits and runs again."""

    def __init__(self, message: str, usage: Usage | None = None, partial_text: str = "") -> None:
        """Create it with a message that names the service, and the usage and the text up to then."""
        super().__init__(message)
        self.usage = usage or Usage()
        self.partial_text = partial_text


class ReplayError(Exception):
    """A format did not repeat its recorded steps; the debate must not continue with this version of it."""


class CheckpointExpiredError(Exception):
    """No person answered at a checkpoint in time; the debate is to pause."""

    def __init__(self, key: str) -> None:
        """Create it for the checkpoint of this key."""
        super().__init__(f"no person answered at checkpoint {key} in time")
        self.key = key


class DebateFailedError(Exception):
    """The debate cannot continue. `steps` are tried again when it is resumed.

    If it can continue once the steps `steps_to_wait_for` succeed, which may still happen, it waits for these first. With
    `has_stand_in`, it goes on without them after that.
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
        has_stand_in: bool = False,
    ) -> None:
        """Create it with a reason, a message of one line, and the agent and phase in which it happened."""
        super().__init__(message)
        self.reason = reason
        self.agent = agent
        self.phase = phase
        self.steps = steps
        self.steps_to_wait_for = awaited
        self.has_stand_in = has_stand_in
