"""Receipts of debates whose logs are kept, signed by a key of the test's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from parley.orchestrator.api.receipts import sign_receipt
from parley.receipts.keys import KeyRing, create_ring
from parley.receipts.log_file import frame
from tests.support.kept_logs import KEPT, read_log

OLD = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
NEW = Ed25519PrivateKey.from_private_bytes(bytes(range(32, 64)))


@dataclass(frozen=True)
class SignedDebate:
    """A debate that is over: its receipt, and the stored bytes of its log."""

    receipt: str
    entries: Sequence[bytes]
    answer: str

    @property
    def log_file(self) -> bytes:
        return b"".join(map(frame, self.entries))


def ring(*keys: Ed25519PrivateKey) -> KeyRing:
    """The ring in which the first of these keys signs; by default the old one alone."""
    return create_ring(keys or (OLD,))


@cache
def sign_debate(name: str = "panel@1-voting", key: Ed25519PrivateKey = OLD) -> SignedDebate:
    """A debate whose log is kept under this name, with its receipt."""
    events = read_log(KEPT[name])
    answer = next(each.message.concluded.outcome.description for each in events if each.kind == "concluded")
    return SignedDebate(sign_receipt(events, ring(key)), [each.entry for each in events], answer)


def pem_of(key: Ed25519PrivateKey, *, private: bool = True) -> str:
    """A key in PEM; not `private`: its public half."""
    if private:
        return key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )
