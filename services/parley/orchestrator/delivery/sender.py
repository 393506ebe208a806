"""Sends one message to one receiver, once, within a time."""

import asyncio
from dataclasses import dataclass
from typing import Final

from parley.orchestrator.delivery.message import CreateChannel, DeliveryError, Message, Receiver
from parley.runtime.logs import get_logger

SEND_SECONDS: Final = 30.0

_logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends messages through channels."""

    create_channel: CreateChannel
    seconds: float = SEND_SECONDS

    async def send(self, receiver: Receiver, message: Message) -> None:
        """Send a message. Raise DeliveryError, whatever went wrong."""
        try:
            async with asyncio.timeout(self.seconds):
                await self.create_channel(receiver).send(message)
        except DeliveryError:
            raise
        except TimeoutError:
            raise DeliveryError(f"it did not answer within {self.seconds:g} s") from None
        except Exception as error:
            # The fault of one channel must not end the others.
            _logger.exception("a channel failed", hook=receiver.hook.id)
            raise DeliveryError(f"internal error: {type(error).__name__}") from error
