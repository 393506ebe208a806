"""The DSSE envelope around a statement: signed by one key, and opened with the keys that are known."""

import base64
import json
from collections.abc import Sequence
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from parley.receipts.errors import UnknownKeyError, VerificationError
from parley.receipts.keys import key_id_of
from parley.receipts.statement import canonical_json
from parley.v1.receipt_pb2 import ReceiptKey

MAX_CHARACTERS: Final = 4 * 1024 * 1024
"""Of a receipt: it has the question, of 256 KiB at most, in base64. JSON of very many small parts takes 20 times its size once read."""
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"


def encode_signed(payload: bytes) -> bytes:
    """Return what is signed of a payload: DSSE's pre-authentication encoding."""
    return b"DSSEv1 %d %b %d %b" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def sign_envelope(payload: bytes, key: Ed25519PrivateKey) -> str:
    """Return the envelope of a payload: JSON as RFC 8785 writes it, one line with its end."""
    signature = {
        "keyid": key_id_of(key.public_key()),
        "sig": _encode(key.sign(encode_signed(payload))),
    }
    return _write({"payload": _encode(payload), "payloadType": PAYLOAD_TYPE, "signatures": [signature]})


def read_envelope(receipt: str) -> tuple[bytes, str, bytes]:
    """Return the payload of an envelope, the id of the key that is said to have signed it, and the signature; none is verified.

    Raise VerificationError for a text that `sign_envelope` does not write: each changed byte shows.
    """
    if len(receipt) > MAX_CHARACTERS:
        raise VerificationError(f"it is longer than {MAX_CHARACTERS:,} characters, and no receipt is")
    try:
        found: Any = json.loads(receipt)
        (signature,) = found["signatures"]
        payload, signed = map(base64.b64decode, (found["payload"], signature["sig"]))
        key_id = signature["keyid"]
        again = _write(
            {
                "payload": _encode(payload),
                "payloadType": found["payloadType"],
                "signatures": [{"keyid": key_id, "sig": _encode(signed)}],
            }
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise VerificationError("it is no signed envelope (DSSE) with one signature") from None
    if found["payloadType"] != PAYLOAD_TYPE:
        raise VerificationError(f"it is no receipt: its payload is of the type {found['payloadType']!r:.80}")
    if again != receipt:
        raise VerificationError("it was changed: its JSON is not written as the receipt of a debate is")
    return payload, str(key_id), signed


def verify_envelope(receipt: str, keys: Sequence[ReceiptKey]) -> tuple[bytes, ReceiptKey]:
    """Return the payload of a receipt and the key that signed it, which may be revoked.

    Raises:
        VerificationError: it was changed, or none of these keys signed it.
    """
    payload, key_id, signature = read_envelope(receipt)
    key = next((each for each in keys if each.id == key_id), None)
    if key is None:
        known = ", ".join(each.id for each in keys) or "none"
        raise UnknownKeyError(f"it names the key {key_id!r:.80}, which is not known; known: {known}")
    try:
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(signature, encode_signed(payload))
    except (InvalidSignature, ValueError):  # ValueError: the known key is none
        raise VerificationError(f"it was changed: its signature is not that of the key {key_id}") from None
    return payload, key


def _write(envelope: dict[str, Any]) -> str:
    return canonical_json(envelope).decode() + "\n"


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()
