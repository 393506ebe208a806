"""Sends one message to one receiver, once, within a time."""

import asyncio
from typing import Final

from msgspec import Struct

from parley.orchestrator.delivery.message import CreateChannel, DeliveryError, Message, Receiver
from parley.runtime.logs import get_logger

_SEND_SECONDS: Final = 30.0

_logger = get_logger(__name__)


class Sender(Struct, frozen=True):
    """Sends messages through channels."""

    create_channel: CreateChannel

    async def send(self, receiver: Receiver, message: Message) -> None:
        """Send a message. Raise DeliveryError, whatever went wrong."""
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                await self.create_channel(receiver).send(message)
        except DeliveryError:
            raise
        except TimeoutError:
            raise DeliveryError(f"it did not answer within {_SEND_SECONDS:g} s") from None
        except Exception as error:
            # The fault of one channel must not end the others.
            _logger.exception("a channel failed", hook=receiver.hook.id)
            raise DeliveryError(f"internal error: {type(error).__name__}") from error
