"""Receipts of debates as files, and the public keys by which anyone verifies them."""

from google.protobuf.descriptor import ServiceDescriptor
from starlette.requests import Request
from starlette.responses import Response

from parley.edge.calls import OrchestratorCalls
from parley.edge.statuses import to_response
from parley.receipts.keys import write_key_list
from parley.runtime.errors import ParleyError
from parley.v1.receipt_pb2 import GetReceiptRequest, ListReceiptKeysRequest


class Receipts:
    """Receipts, over the orchestrator's `GetReceipt` and `ListReceiptKeys`."""

    def __init__(self, service: ServiceDescriptor, calls: OrchestratorCalls) -> None:
        self._get = service.methods_by_name["GetReceipt"]
        self._list_keys = service.methods_by_name["ListReceiptKeys"]
        self._calls = calls

    async def answer_receipt(self, request: Request) -> Response:
        """Return the receipt of a debate as a file."""
        debate_id = request.path_params["debate_id"]
        wanted = GetReceiptRequest(debate_id=debate_id)
        try:
            found = await self._calls.call(self._get, wanted, dict(request.headers))
        except ParleyError as error:
            return to_response(error)
        # The id is well-formed: the orchestrator has found the debate.
        saved_as = {"Content-Disposition": f'attachment; filename="{debate_id}.receipt.json"'}
        return _to_json(found.receipt, saved_as)  # type: ignore[attr-defined]

    async def answer_keys(self, request: Request) -> Response:
        """Return the public keys as a JSON Web Key Set."""
        try:
            found = await self._calls.call(self._list_keys, ListReceiptKeysRequest(), dict(request.headers))
        except ParleyError as error:
            return to_response(error)
        return _to_json(write_key_list(found.keys), {})  # type: ignore[attr-defined]


def _to_json(text: str, headers: dict[str, str]) -> Response:
    kept = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(text, headers=kept | headers, media_type="application/json")
