"""Tokens of one-time links: what a link is for, signed. None is stored, and none can be guessed or changed."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from google.protobuf.message import DecodeError

from parley.v1.link_pb2 import LinkClaims

PREFIX: Final = "link_"
_PURPOSE: Final = b"parley one-time link 1\0"
"""Signed with the claims, so that nothing else that the same secret signs is a link."""
_MAC_BYTES: Final = 32
_MAX_CHARACTERS: Final = 2048


class LinkTokens:
    """Signs claims, and reads them. The first secret signs, all are accepted, so that one can be replaced."""

    def __init__(self, secrets: Sequence[str]) -> None:
        """Use these secrets, at least one."""
        self._keys = [each.encode() for each in secrets]

    def sign(self, claims: LinkClaims) -> str:
        """Return the token of a link. The same claims have the same token, so that a delivery that is sent again is the same."""
        content = claims.SerializeToString(deterministic=True)
        signed = _mac(self._keys[0], content) + content
        return PREFIX + base64.urlsafe_b64encode(signed).decode().rstrip("=")

    def read(self, token: str) -> LinkClaims | None:
        """Return what a link is for, though it may have expired; None if we did not sign the token."""
        text = token.removeprefix(PREFIX)
        if not token.startswith(PREFIX) or len(token) > _MAX_CHARACTERS:
            return None
        try:
            signed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        mac, content = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
        if not any(hmac.compare_digest(mac, _mac(key, content)) for key in self._keys):
            return None
        try:
            return LinkClaims.FromString(content)
        except DecodeError:
            return None


def hash_token(token: str) -> str:
    """Return the name under which it is noted that a link was used: it cannot be made back into the token."""
    return hashlib.sha256(token.encode()).hexdigest()


def link_subject(claims: LinkClaims) -> str:
    """Return who acts by a link, as events and the audit log name it."""
    return f"one-time link of {claims.hook_id}"


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + content, "sha256")
