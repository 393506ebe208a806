"""Receipts are standard: others verify them by their specifications, without any code of ours."""

import base64
import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._key import SSlibKey

from parley.v1.orchestrator_pb2 import ReadLogResponse
from tests.support.receipts import NEW, OLD, pem_of, sign_debate


def key_of(envelope: Envelope, pem: str) -> SSlibKey:
    """A public key, as securesystemslib has it, under the id that an envelope names."""
    (key_id,) = envelope.signatures
    return SSlibKey.from_crypto(load_pem_public_key(pem.encode()), keyid=key_id)


def test_securesystemslib_verifies_the_envelope() -> None:
    envelope = Envelope.from_dict(json.loads(sign_debate().receipt))
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert envelope.verify([key_of(envelope, pem_of(OLD, private=False))], 1)


def test_securesystemslib_refuses_another_key_and_another_payload() -> None:
    envelope = Envelope.from_dict(json.loads(sign_debate().receipt))
    with pytest.raises(VerificationError):
        envelope.verify([key_of(envelope, pem_of(NEW, private=False))], 1)
    envelope.payload = envelope.payload.replace(b"panel", b"PANEL")
    with pytest.raises(VerificationError):
        envelope.verify([key_of(envelope, pem_of(OLD, private=False))], 1)


def test_the_payload_is_an_in_toto_statement_about_files_that_sha256_can_check(tmp_path: Path) -> None:
    debate = sign_debate()
    statement = json.loads(base64.b64decode(json.loads(debate.receipt)["payload"]))
    assert set(statement) == {"_type", "subject", "predicateType", "predicate"}
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:parley:decision-receipt:v1"
    log, answer = statement["subject"]
    assert answer["digest"]["sha256"] == hashlib.sha256(debate.answer.encode()).hexdigest()
    signed = debate.entries[: log["annotations"]["sequence"]]
    assert log["annotations"]["hash"] == signed[-1][-32:].hex()
    # The file is a message of the contract, which any protobuf library writes.
    assert (
        log["digest"]["sha256"]
        == hashlib.sha256(ReadLogResponse(events=signed).SerializeToString()).hexdigest()
    )


def test_the_id_of_a_key_is_its_thumbprint_by_rfc_7638() -> None:
    (signature,) = json.loads(sign_debate().receipt)["signatures"]
    x = base64.urlsafe_b64encode(OLD.public_key().public_bytes_raw()).rstrip(b"=").decode()
    jwk = f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'
    thumbprint = base64.urlsafe_b64encode(hashlib.sha256(jwk.encode()).digest()).rstrip(b"=").decode()
    assert signature["keyid"] == thumbprint
