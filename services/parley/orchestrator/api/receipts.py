"""The RPCs about receipts: protobuf in and out."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from parley.orchestrator.api.decision_receipt import create_decision_receipt
from parley.orchestrator.api.folded_debates import FoldedDebates
from parley.orchestrator.api.reading import check_size, require_completed
from parley.orchestrator.api.requests import check_id
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.engine.debate_importer import DebateImporter
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.reading import read_events
from parley.runtime.errors import failed_precondition, not_found
from parley.runtime.identity.identity import current_tenant
from parley.runtime.large_texts import in_thread_if_large
from parley.storage.ports import Log
from parley.v1 import orchestrator_pb2_grpc, receipt_pb2

if TYPE_CHECKING:  # imported on use: a system that signs nothing starts faster
    from parley.receipts.keys import KeyRing

_NO_RING = "this server has no key that signs receipts; its operator sets PARLEY_RECEIPT_KEYS"


class ReceiptKeys:
    """The keys of this system's receipts: those that its operator names, or one that it makes for itself when it is needed."""

    def __init__(self, load: "Callable[[], KeyRing | None]") -> None:
        """Take what loads the keys, once; None: there are none."""
        self._load = load
        self._ring: KeyRing | None = None

    @classmethod
    def create(cls, files: Sequence[str], revoked: Sequence[str], own_folder: Path | None) -> Self:
        """Return the keys of these files, else of the data folder, else none. Raise ConfigurationError if a file cannot be used."""
        if files:
            from parley.receipts.key_files import load_ring

            ring = load_ring(files, revoked)
            return cls(lambda: ring)
        return cls(partial(_load_own_ring, own_folder) if own_folder is not None else lambda: None)

    async def get(self) -> "KeyRing | None":
        """Return the keys; None if there are none. Raise ParleyError if the system's own key cannot be used."""
        if self._ring is None:
            self._ring = await asyncio.to_thread(self._load)
        return self._ring


def _load_own_ring(folder: Path) -> "KeyRing":
    from parley.receipts.errors import KeyFileError
    from parley.receipts.key_files import OWN_KEY, load_own_ring

    try:
        return load_own_ring(folder)
    except (OSError, KeyFileError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        message = f"the key of this folder's receipts, {OWN_KEY}, cannot be used: {why}"
        raise failed_precondition("RECEIPT_KEY_UNUSABLE", message) from None


class ReceiptServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for the receipts of the caller's debates."""

    __slots__ = ()

    log: Log
    debates: FoldedDebates
    receipt_keys: ReceiptKeys
    importer: DebateImporter

    async def GetReceipt(  # noqa: N802
        self, request: receipt_pb2.GetReceiptRequest, _context: object
    ) -> receipt_pb2.GetReceiptResponse:
        """Return the receipt of a debate."""
        debate_id = check_id(request.debate_id)
        debate, size = await self.debates.get_with_size(current_tenant(), debate_id)
        require_completed(debate, "has a receipt")
        if debate.HasField("imported"):
            return await self._get_imported(debate_id)
        ring = await self.receipt_keys.get()
        if ring is None:
            raise failed_precondition("NO_RECEIPT_KEY", _NO_RING)
        with map_store_errors():
            events = await read_events(self.log, current_tenant(), debate_id)
        if not events:  # deleted meanwhile
            raise not_found("debate", debate_id)
        receipt = await in_thread_if_large(size, partial(sign_receipt, events, ring))
        response = receipt_pb2.GetReceiptResponse(receipt=receipt, key=ring.keys[0])
        check_size(response, debate_id, "no receipt is made of it")
        return response

    async def _get_imported(self, debate_id: str) -> receipt_pb2.GetReceiptResponse:
        """Return the receipt that a debate of another system came with."""
        with map_store_errors():
            found = await self.importer.receipts.get(current_tenant(), debate_id)
        if found is None:  # deleted meanwhile
            raise not_found("debate", debate_id)
        return found

    async def ListReceiptKeys(  # noqa: N802
        self, _request: receipt_pb2.ListReceiptKeysRequest, _context: object
    ) -> receipt_pb2.ListReceiptKeysResponse:
        """Return the public keys."""
        ring = await self.receipt_keys.get()
        return receipt_pb2.ListReceiptKeysResponse(keys=ring.keys if ring is not None else ())


def sign_receipt(events: Sequence[Envelope], ring: "KeyRing") -> str:
    """Return the receipt of a completed debate, given all its events."""
    from parley.receipts.envelope import sign_envelope
    from parley.receipts.statement import Statement, describe_log, digest_answer, write_statement

    last = next(place for place, each in enumerate(events, start=1) if each.kind == "concluded")
    receipt = create_decision_receipt(events[:last], machine_only=ring.machine_only)
    statement = Statement(
        describe_log([each.entry for each in events[:last]]),
        digest_answer(events[last - 1].message.concluded.outcome.description),
        receipt,
    )
    return sign_envelope(write_statement(statement), ring.signing)
