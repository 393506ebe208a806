"""Texts that only an edge can read: what browsers keep for it, since it keeps nothing itself.

Their encryption is authenticated (Fernet: AES-CBC with HMAC-SHA-256).
"""

import base64
import hashlib
import json
import secrets
import zlib
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class Seal:
    """Encrypts lists of texts, each for one purpose."""

    def __init__(self, secrets_: Sequence[str]) -> None:
        """Encrypt with the first of the secrets, and read what any of them encrypted. None given: one of this process alone."""
        self._fernet = MultiFernet(
            [Fernet(_derive_key(each)) for each in secrets_ or [secrets.token_urlsafe(32)]]
        )

    def encrypt(self, purpose: str, *texts: str) -> str:
        """Return the texts as one, which has no separators of cookies."""
        # Tokens are Base64, so that packing makes up for what encryption adds: a browser keeps no cookie of more than 4 KiB.
        return self._fernet.encrypt(zlib.compress(json.dumps([purpose, *texts]).encode())).decode()

    def decrypt(self, purpose: str, sealed: str, seconds: float) -> Sequence[str] | None:
        """Return the texts; None if they are not ours, older than that, or for another purpose."""
        try:
            found = json.loads(zlib.decompress(self._fernet.decrypt(sealed.encode(), ttl=int(seconds))))
        except (InvalidToken, UnicodeEncodeError, zlib.error):
            return None
        return found[1:] if found[0] == purpose else None


def _derive_key(secret: str) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(f"parley console session:{secret}".encode()).digest())
