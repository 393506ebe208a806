"""What is signed: an in-toto Statement (v1) whose subjects are a debate's log and its answer."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import rfc8785
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from msgspec import Struct

from parley.receipts.errors import VerificationError
from parley.receipts.log_file import digest_log
from parley.v1.receipt_pb2 import DecisionReceipt

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:parley:decision-receipt:v1"
"""Names what `DecisionReceipt` means. Another meaning gets another number."""


class LogSubject(Struct, frozen=True):
    """The part of a log that a receipt is about.

    Attributes:
        sequence: Of its last event, `Concluded`.
        head: The hash of that event, in hex.
        sha256: Of the file of these events, in hex.
    """

    sequence: int
    head: str
    sha256: str


class Statement(Struct, frozen=True):
    """What a receipt states.

    Attributes:
        answer: SHA-256 of the answer, in hex.
    """

    log: LogSubject
    answer: str
    receipt: DecisionReceipt


def canonical_json(value: Any) -> bytes:
    """Return a JSON value as RFC 8785 writes it. Raise ValueError for a number that it cannot write."""
    return rfc8785.dumps(value)


def describe_log(entries: Sequence[bytes]) -> LogSubject:
    """Return the subject for the stored bytes of a log's first events."""
    return LogSubject(len(entries), entries[-1][-32:].hex(), digest_log(entries))


def digest_answer(answer: str) -> str:
    """Return the SHA-256 of an answer, in hex."""
    return hashlib.sha256(answer.encode()).hexdigest()


def write_statement(statement: Statement) -> bytes:
    """Return a statement as RFC 8785 writes it: the same statement has the same bytes."""
    debate_id = statement.receipt.debate_id
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [
                {
                    "name": f"{debate_id}/log",
                    "digest": {"sha256": statement.log.sha256},
                    "annotations": {"sequence": statement.log.sequence, "hash": statement.log.head},
                },
                {"name": f"{debate_id}/answer", "digest": {"sha256": statement.answer}},
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": MessageToDict(statement.receipt),
        }
    )


def read_statement(content: bytes) -> Statement:
    """Return the statement of these bytes; what a later version adds is passed over. Raise VerificationError."""
    try:
        found = json.loads(content)
        kinds = found["_type"], found["predicateType"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise VerificationError("what is signed is no in-toto statement") from None
    if kinds != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise VerificationError(f"what is signed is no receipt of a debate, but of the type {kinds[1]!r:.80}")
    try:
        receipt = ParseDict(found["predicate"], DecisionReceipt(), ignore_unknown_fields=True)
        subjects = {each["name"]: each for each in found["subject"]}
        log, answer = subjects[f"{receipt.debate_id}/log"], subjects[f"{receipt.debate_id}/answer"]
        subject = LogSubject(
            int(log["annotations"]["sequence"]), str(log["annotations"]["hash"]), _sha256_of(log)
        )
        return Statement(subject, _sha256_of(answer), receipt)
    except (ParseError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise VerificationError("the statement lacks a part that every receipt has") from None


def _sha256_of(subject: Mapping[str, Any]) -> str:
    return str(subject["digest"]["sha256"])
