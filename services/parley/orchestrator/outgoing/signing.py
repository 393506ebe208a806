"""Signatures by the Standard Webhooks specification: https://www.standardwebhooks.com."""

import base64
import binascii
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from standardwebhooks import Webhook

_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = 32


def create_secret() -> str:
    """Return a new secret, in the form of Standard Webhooks."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def is_secret(text: str) -> bool:
    """Return whether a text is a secret in the form of Standard Webhooks: 24 to 64 bytes."""
    if not text.startswith(_PREFIX):
        return False
    try:
        return 24 <= len(base64.b64decode(text.removeprefix(_PREFIX), validate=True)) <= 64
    except (binascii.Error, ValueError):
        return False


def sign(valid: Sequence[str], message_id: str, time: datetime, body: bytes) -> dict[str, str]:
    """Return the headers that sign a body: once for each secret, so that a receiver that has one of them can verify.

    `valid` are `whsec_` and bytes in base64, `time` is aware.
    """
    text = body.decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(time.timestamp())),
        "webhook-signature": " ".join(Webhook(each).sign(message_id, time, text) for each in valid),
    }
