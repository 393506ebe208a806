"""Signatures by the Standard Webhooks specification: https://www.standardwebhooks.com."""

from collections.abc import Sequence
from datetime import datetime

from standardwebhooks import Webhook


def sign(secrets: Sequence[str], message_id: str, time: datetime, body: bytes) -> dict[str, str]:
    """Return the headers that sign a body: once for each secret, so that a receiver that has one of them can verify.

    `secrets` are `whsec_` and bytes in base64, `time` is aware.
    """
    text = body.decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(time.timestamp())),
        "webhook-signature": " ".join(Webhook(each).sign(message_id, time, text) for each in secrets),
    }
