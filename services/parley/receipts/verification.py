"""The checks of a receipt: its signature, and whether a log and an answer are the ones that it is about."""

from collections.abc import Sequence

from msgspec import Struct

from parley.receipts.chain import open_chain
from parley.receipts.envelope import verify_envelope
from parley.receipts.errors import VerificationError
from parley.receipts.statement import Statement, describe_log, digest_answer, read_statement
from parley.v1.receipt_pb2 import ReceiptKey


class VerifiedReceipt(Struct, frozen=True):
    """What a receipt states, and the key that signed it."""

    statement: Statement
    key: ReceiptKey

    @property
    def debate_id(self) -> str:
        """The debate that it is about."""
        return self.statement.receipt.debate_id


def verify_receipt(receipt: str, keys: Sequence[ReceiptKey]) -> VerifiedReceipt:
    """Return what a receipt states, if one of these keys signed it. Raise VerificationError, also if that key was revoked."""
    payload, key = verify_envelope(receipt, keys)
    statement = read_statement(payload)
    if key.revoked:
        raise VerificationError(f"the key {key.id} signed it, and was revoked: it may be anyone's")
    return VerifiedReceipt(statement, key)


def verify_log(statement: Statement, entries: Sequence[bytes]) -> int:
    """Return how many events a log has, if it begins with the one that a statement is about and all of it is as recorded.

    Raises:
        VerificationError: an event was changed, moved or left out, or it is the log of another debate.
    """
    if not entries:
        raise VerificationError("it has no event")
    events, signed = open_chain(entries), statement.log
    debate_id = statement.receipt.debate_id
    if events[0].debate_id != debate_id:
        raise VerificationError(
            f"it is the log of {events[0].debate_id!r:.60}, and the receipt is about {debate_id}"
        )
    if len(events) < signed.sequence:
        raise VerificationError(
            f"it ends with event {len(events)}, and the receipt is about {signed.sequence} events"
        )
    if signed.sequence < 1 or describe_log(entries[: signed.sequence]) != signed:
        raise VerificationError(f"its first {signed.sequence} events are not those that were signed")
    concluded = events[signed.sequence - 1]
    if not concluded.HasField("concluded"):
        raise VerificationError(f"event {signed.sequence} does not conclude the debate")
    verify_answer(statement, concluded.concluded.outcome.description)
    return len(events)


def verify_answer(statement: Statement, answer: str) -> None:
    """Raise VerificationError unless a text is the answer that a statement is about, to the character."""
    if digest_answer(answer) != statement.answer:
        raise VerificationError("it is not the answer that was signed")
