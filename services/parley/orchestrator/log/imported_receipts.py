"""The receipts that imported debates came with, and the keys that signed them."""

import base64
from typing import Final

from parley.orchestrator.log.debate_record import record_key
from parley.storage.ports import Collection, Documents, DuplicateError
from parley.v1.receipt_pb2 import GetReceiptResponse

IMPORTED_RECEIPTS: Final = Collection("imported_receipts", private=("receipt",))


class ImportedReceiptStore:
    """Stores the receipts of all imported debates."""

    def __init__(self, documents: Documents) -> None:
        """Use a store whose collection IMPORTED_RECEIPTS is prepared."""
        self._documents = documents

    async def put(self, tenant: str, debate: str, receipt: GetReceiptResponse) -> None:
        """Store the receipt of a debate, in place of one that an import left that did not end."""
        fields = {"receipt": base64.b64encode(receipt.SerializeToString()).decode()}
        key = record_key(tenant, debate)
        try:
            await self._documents.insert(IMPORTED_RECEIPTS, key, fields)
        except DuplicateError:
            await self._documents.update(IMPORTED_RECEIPTS, key, fields)

    async def get(self, tenant: str, debate: str) -> GetReceiptResponse | None:
        """Return the receipt that a debate came with; None if it has none."""
        found = await self._documents.get(IMPORTED_RECEIPTS, record_key(tenant, debate))
        if found is None:
            return None
        return GetReceiptResponse.FromString(base64.b64decode(str(found.fields["receipt"])))

    async def delete(self, tenant: str, debate: str) -> None:
        """Remove the receipt of a debate, if it has one."""
        await self._documents.delete(IMPORTED_RECEIPTS, record_key(tenant, debate))
