"""What a channel is given to send, and how it says that it could not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from parley.v1.hook_pb2 import Hook, HookEvent


class DeliveryError(Exception):
    """A delivery was not made, as far as is known. The text is one line for people, without a secret.

    Attributes:
        retry_after: Seconds that the receiver asks to be left alone; None if it does not say.
        permanent: Whether no later try can help, as after 410 Gone: the delivery is a dead letter, and the hook is paused.
    """

    def __init__(self, text: str, *, retry_after: float | None = None, permanent: bool = False) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        self.permanent = permanent


class Message(Struct, frozen=True):
    """A delivery as a channel sends it.

    Attributes:
        id: The delivery's id, the same over all tries.
        hook: Id of the hook.
        debate: Id of the debate; empty for a test.
        sequence: Sequence of the event in the debate's log; 0 for a test.
        time: When the event was recorded (UTC).
        body: A CloudEvent (1.0, structured mode) in JSON, UTF-8. Its `data` is a `HookNews`.
        text: The same for people: a title in one line, then an empty line and some lines more. What agents wrote in it may hold
            anything: a channel escapes it.
        link: A page that shows the debate; empty if the operator has set no address.
        answers: Links that answer what the debate waits for: what each does, and its URL.
    """

    id: str
    tenant: str
    hook: str
    event: HookEvent.ValueType
    debate: str
    sequence: int
    time: datetime
    body: bytes
    text: str
    link: str
    answers: Sequence[tuple[str, str]] = ()

    @property
    def links(self) -> Sequence[tuple[str, str]]:
        """What people can go to from here: what is shown of each link, and its URL."""
        return (*([("Open the debate", self.link)] if self.link else []), *self.answers)


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where the deliveries of one hook go.

    Attributes:
        hook: The hook, with the whole target.
        secrets: Those that sign a webhook, the newest first: while a secret is replaced, two. They are in no log.
    """

    tenant: str
    hook: Hook = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


class Channel(Protocol):
    """A way to one receiver."""

    async def send(self, message: Message) -> None:
        """Send a message. Return once the receiver has it. Raise DeliveryError if it may not have it."""


CreateChannel = Callable[[Receiver], Channel]
"""Returns the channel to a receiver. Raises DeliveryError if the operator does not allow its target."""
