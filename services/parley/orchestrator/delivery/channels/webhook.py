"""Webhooks by the Standard Webhooks specification: signed for every secret that is valid at present."""

from dataclasses import dataclass, field

from parley.orchestrator.delivery.channels.post import post
from parley.orchestrator.delivery.message import Message
from parley.orchestrator.outgoing.sender import GuardedSender
from parley.orchestrator.outgoing.signing import sign
from parley.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """Sends CloudEvents to a URL.

    Attributes:
        secrets: What signs them, the newest first; a receiver that has one of them can verify.
    """

    sender: GuardedSender
    clock: Clock
    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    async def send(self, message: Message) -> None:
        """Send a message. Raise DeliveryError if the receiver may not have it."""
        headers = {
            "Content-Type": "application/cloudevents+json; charset=utf-8",
            **sign(self.secrets, message.id, self.clock.now(), message.body),
        }
        await post(self.sender, self.clock, self.url, message.body, headers)
