"""How large one message may be, on its way in and out, in every service."""

from typing import Final

__all__ = ["MAX_MESSAGE_BYTES"]

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""gRPC itself refuses a larger one, with a status that says nothing a person can use: so none is sent."""
