"""The RPC that keeps a debate of another system: verified first, protobuf in and out."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from parley.orchestrator.allowance.allowance import Allowance
from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.receipts import ReceiptServicer
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.log.envelope import GENESIS, Envelope, open_entry
from parley.orchestrator.log.events import CorruptEventError
from parley.runtime import audit
from parley.runtime.draining import Draining
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.runtime.identity.identity import current_identity, current_tenant
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.request_reading import request_bytes
from parley.runtime.validation import DEBATE_ID
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1 import receipt_pb2
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, Debate

_GROWING: Final = ("contributions", "failures", "warnings", "interventions")
"""Lists of a debate to which what follows its answer may add."""
_MAY_CHANGE: Final = frozenset(
    {*_GROWING, "analysis", "calls", "last_sequence", "phase", "update_time", "usage"}
)


class ImportServicer(ReceiptServicer):
    """Answers for debates that come from another system, and for receipts."""

    __slots__ = ()

    allowance: Allowance
    draining: Draining

    async def ImportDebate(  # noqa: N802
        self, request: receipt_pb2.ImportDebateRequest, _context: object
    ) -> receipt_pb2.ImportDebateResponse:
        """Keep a debate of another system."""
        if self.draining.is_set():
            raise self.draining.error()
        ring, size, caller = await self.receipt_keys.get(), request_bytes(), current_identity()
        revoked = {each.id for each in ring.keys if each.revoked} if ring is not None else set()
        async with self.allowance.admit_request(current_tenant(), size):
            events, key = await in_thread_if_large(size, partial(verify_import, request, revoked))
            receipt = receipt_pb2.GetReceiptResponse(receipt=request.receipt, key=key)
            with map_store_errors():
                async with self.allowance.admit_debate(current_tenant()):
                    existed = await self.importer.keep(current_tenant(), events, receipt, caller.subject)
        debate_id = events[0].debate
        audit.report_act(f"debate {debate_id}")
        return receipt_pb2.ImportDebateResponse(debate_id=debate_id, existed=existed)


def verify_import(
    request: receipt_pb2.ImportDebateRequest, revoked: Collection[str]
) -> tuple[Sequence[Envelope], receipt_pb2.ReceiptKey]:
    """Return the events of the debate that a request has, and the key that signed its receipt.

    Raise ParleyError if anything is not as it was signed, also if the key is in `revoked`, or if the debate is not closed with an answer.
    """
    from parley.receipts.errors import VerificationError
    from parley.receipts.log_file import read_log_file
    from parley.receipts.verification import verify_log, verify_receipt

    keys = _check_keys(request.keys, revoked)
    try:
        found = verify_receipt(request.receipt, keys)
    except VerificationError as error:
        raise _refuse("receipt", str(error)) from None
    try:
        entries = read_log_file(request.log)
        verify_log(found.statement, entries)
    except VerificationError as error:
        raise _refuse("log", str(error)) from None
    events, debate = _open(entries)
    if not DEBATE_ID.fullmatch(found.debate_id):
        raise _refuse("log", f"{found.debate_id[:80]!r} is not a debate id")
    if events[-1].kind != "closed" or debate.status != DEBATE_STATUS_COMPLETED:
        raise _refuse(
            "log", "the debate is not closed; export it again when all that follows its answer is done"
        )
    _check_end(fold(events[: found.statement.log.sequence]), debate)
    return events, found.key


def _check_keys(
    keys: Sequence[receipt_pb2.ReceiptKey], revoked: Collection[str]
) -> Sequence[receipt_pb2.ReceiptKey]:
    """Return the keys of a request, with those marked that are revoked here. Raise ParleyError for what is no key."""
    from parley.receipts.errors import KeyFileError
    from parley.receipts.keys import MAX_KEYS, check_key

    if not 1 <= len(keys) <= MAX_KEYS:
        raise _refuse("keys", f"must be 1 to {MAX_KEYS} keys")
    for place, each in enumerate(keys):
        try:
            check_key(each)
        except KeyFileError as error:
            raise _refuse(f"keys[{place}]", str(error)) from None
        each.revoked = each.revoked or each.id in revoked
    return keys


def _check_end(signed: Debate, whole: Debate) -> None:
    """Raise ParleyError if what follows the answer, which nobody signed, changes what was there before, or has an agent debate."""
    for name in _GROWING:
        before, all_ = list(getattr(signed, name)), list(getattr(whole, name))
        if all_[: len(before)] != before:
            raise _refuse("log", f"what follows the answer is not signed, and changes its {name}")
    added = whole.contributions[len(signed.contributions) :]
    if not all(each.key.startswith(AFTER_THE_ANSWER) for each in added):
        raise _refuse("log", "what follows the answer is not signed, and adds to its contributions")
    for field in Debate.DESCRIPTOR.fields:
        is_same = getattr(signed, field.name) == getattr(whole, field.name)
        if not is_same and field.name not in _MAY_CHANGE:
            raise _refuse("log", f"what follows the answer is not signed, and changes its {field.name}")


def _open(entries: Sequence[bytes]) -> tuple[Sequence[Envelope], Debate]:
    events: list[Envelope] = []
    try:
        for each in entries:
            events.append(open_entry(each, events[-1].hash if events else GENESIS))
        return events, fold(events)
    except CorruptEventError as error:
        raise _refuse("log", str(error)) from None


def _refuse(field: str, why: str) -> ParleyError:
    return invalid_argument([FieldViolation(field, why)])
