"""Receipts of debates, as a client gets them."""

from collections.abc import Sequence

from parley.client.connection import OrchestratorConnection
from parley.v1 import receipt_pb2


class ReceiptClient(OrchestratorConnection):
    """Receipts of one tenant's debates at an orchestrator."""

    async def get_receipt(self, debate_id: str) -> receipt_pb2.GetReceiptResponse:
        """Return the signed receipt of a completed debate, a text to be kept byte for byte, and the key that signed it."""
        request = receipt_pb2.GetReceiptRequest(debate_id=debate_id)
        return await self._call(self._stub.GetReceipt, request)

    async def import_debate(
        self, receipt: str, keys: Sequence[receipt_pb2.ReceiptKey], log: bytes
    ) -> receipt_pb2.ImportDebateResponse:
        """Keep a debate of another system, if one of these keys signed its receipt and `log` is its whole log as a file.

        The same again changes nothing.
        """
        request = receipt_pb2.ImportDebateRequest(receipt=receipt, keys=keys, log=log)
        return await self._call(self._stub.ImportDebate, request)

    async def list_receipt_keys(self) -> Sequence[receipt_pb2.ReceiptKey]:
        """Return the public keys by which the server's receipts are verified, revoked ones included."""
        request = receipt_pb2.ListReceiptKeysRequest()
        return (await self._call(self._stub.ListReceiptKeys, request)).keys
