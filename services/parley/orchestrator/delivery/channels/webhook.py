"""Webhooks by the Standard Webhooks specification: signed for every secret that is valid at present."""

from dataclasses import dataclass, field

from parley.orchestrator.delivery.channels.post import post
from parley.orchestrator.delivery.message import DeliveryError, Message
from parley.orchestrator.outgoing.sender import GuardedSender
from parley.orchestrator.outgoing.signing import is_secret, sign
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
        secrets = tuple(filter(is_secret, self.secrets))
        if not secrets:
            why = "the hook's secret in the store is damaged; make a new one with `hooks rotate`, then test the hook"
            raise DeliveryError(why, permanent=True)
        headers = {
            "Content-Type": "application/cloudevents+json; charset=utf-8",
            **sign(secrets, message.id, self.clock.now(), message.body),
        }
        await post(self.sender, self.clock, self.url, message.body, headers)
