"""The keys of receipts: Ed25519, by their RFC 7638 thumbprints, in PEM files and as a list for others (JWKS)."""

import base64
import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct

from parley.receipts.errors import KeyFileError
from parley.receipts.statement import canonical_json
from parley.v1.receipt_pb2 import ReceiptKey

MAX_KEYS: Final = 100
_CURVE: Final = {"crv": "Ed25519", "kty": "OKP"}


class KeyRing(Struct, frozen=True):
    """The keys of one system.

    Attributes:
        signing: The key that signs.
        keys: The public keys by which receipts are verified; that of `signing` first.
        machine_only: Whether the system made the key for itself.
    """

    signing: Ed25519PrivateKey
    keys: tuple[ReceiptKey, ...]
    machine_only: bool = False


def key_id_of(key: Ed25519PublicKey) -> str:
    """Return the id of a key: its thumbprint by RFC 7638, which anyone can compute."""
    return _base64url(
        hashlib.sha256(canonical_json(_CURVE | {"x": _base64url(key.public_bytes_raw())})).digest()
    )


def create_ring(
    keys: Iterable[Ed25519PrivateKey | Ed25519PublicKey],
    revoked: Collection[str] = (),
    *,
    machine_only: bool = False,
) -> KeyRing:
    """Return the ring of these keys: the first private one signs, all verify. Those with an id in `revoked` are revoked.

    Raises:
        KeyFileError: none can sign, the one that signs is revoked, or a revoked one is not among them.
    """
    signing, public = None, {}
    for each in keys:
        if isinstance(each, Ed25519PrivateKey):
            signing = signing or each
            each = each.public_key()  # noqa: PLW2901
        public[key_id_of(each)] = each
    if signing is None:
        raise KeyFileError("none of the files has a private key, which signs")
    first = key_id_of(signing.public_key())
    if first in revoked:
        raise KeyFileError(f"the key that signs, {first}, is revoked; put a new one before it")
    if unknown := sorted(set(revoked) - public.keys()):
        raise KeyFileError(
            f"no file has the revoked key {unknown[0]}; keep its file, with the public key alone"
        )
    ordered = sorted(public, key=lambda each: each != first)
    listed = [
        ReceiptKey(id=each, public_key=public[each].public_bytes_raw(), revoked=each in revoked)
        for each in ordered
    ]
    return KeyRing(signing, tuple(listed), machine_only)


def parse_pem(content: bytes) -> Ed25519PrivateKey | Ed25519PublicKey:
    """Return the key of a text in PEM: private (PKCS #8, not encrypted) or public. Raise KeyFileError."""
    try:
        key: Any = (
            serialization.load_pem_public_key(content)
            if b"BEGIN PUBLIC KEY" in content
            else serialization.load_pem_private_key(content, None)
        )
    except TypeError:
        raise KeyFileError("the key is encrypted; Parley needs it without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise KeyFileError(
            "there is no key in PEM; make one with: openssl genpkey -algorithm ed25519"
        ) from None
    if not isinstance(key, Ed25519PrivateKey | Ed25519PublicKey):
        raise KeyFileError(
            "the key is of another kind than Ed25519; make one with: openssl genpkey -algorithm ed25519"
        )
    return key


def check_key(key: ReceiptKey) -> None:
    """Raise KeyFileError unless a key is one, under its own id."""
    try:
        named = key_id_of(Ed25519PublicKey.from_public_bytes(key.public_key))
    except ValueError:
        raise KeyFileError("is no Ed25519 key: it must have 32 bytes") from None
    if named != key.id:
        raise KeyFileError(f"is named {key.id!r:.80}, and its thumbprint is {named}")


def write_pem(key: ReceiptKey) -> str:
    """Return a public key in PEM, as openssl takes it."""
    public = Ed25519PublicKey.from_public_bytes(key.public_key)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return public.public_bytes(serialization.Encoding.PEM, form).decode()


def write_key_list(keys: Iterable[ReceiptKey]) -> str:
    """Return public keys as a JSON Web Key Set (RFC 7517), one line. A revoked one says `"revoked": true`."""
    return canonical_json({"keys": [_to_jwk(each) for each in keys]}).decode() + "\n"


def read_keys(content: bytes) -> Sequence[ReceiptKey]:
    """Return the public keys of a file, at least one: what `write_key_list` writes, or one key in PEM. Raise KeyFileError."""
    if b"-----BEGIN" in content:
        key = parse_pem(content)
        public = key.public_key() if isinstance(key, Ed25519PrivateKey) else key
        return [ReceiptKey(id=key_id_of(public), public_key=public.public_bytes_raw())]
    try:
        listed = json.loads(content)["keys"]
        keys = [_from_jwk(each) for each in listed if {each["kty"], each.get("crv")} == set(_CURVE.values())]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise KeyFileError("there is neither a list of keys (JWKS) nor a key in PEM") from None
    if not keys:
        raise KeyFileError(
            "the list of keys (JWKS) has no Ed25519 key, and receipts are signed with no other"
        )
    return keys


def _to_jwk(key: ReceiptKey) -> dict[str, Any]:
    jwk = {**_CURVE, "x": _base64url(key.public_key), "kid": key.id, "alg": "EdDSA", "use": "sig"}
    return jwk | ({"revoked": True} if key.revoked else {})


def _from_jwk(jwk: Any) -> ReceiptKey:
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(f"{jwk['x']}="))
    # The id is computed and not believed: a list cannot give a key another one's name.
    return ReceiptKey(
        id=key_id_of(public), public_key=public.public_bytes_raw(), revoked=bool(jwk.get("revoked"))
    )


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
