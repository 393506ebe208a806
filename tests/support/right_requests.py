"""A right request of every RPC, so that what is made of it comes past the first check.

It is the contract's example of the request; one that has only fields of `_USUAL` needs none, and is made from these.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import Parse, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from parley.v1.example_pb2 import example
from parley.v1.orchestrator_pb2 import DEBATE_VIEW_FULL, DeleteDebateRequest
from parley.v1.receipt_pb2 import ImportDebateRequest
from tests.support.access import methods
from tests.support.receipts import ring, sign_debate

DEBATE: Final = "deb-20260101-000000-aaaaaaaa"
"""Stands for a debate that is there."""

_USUAL: Final[Mapping[str, Any]] = {
    "debate_id": DEBATE,
    "request_id": "request-1",
    "page_size": 3,
    "page_token": "",
    "page_bytes": 1_000_000,
    "after_sequence": 1,
    "view": DEBATE_VIEW_FULL,
}
"""A right value of each field that means the same in every request."""

_MADE: Final[Sequence[Message]] = (
    ImportDebateRequest(receipt=sign_debate().receipt, keys=ring().keys, log=sign_debate().log_file),
    # Of another debate, since the others ask about this one.
    DeleteDebateRequest(debate_id="deb-20260101-000000-bbbbbbbb", ratings=True),
)
"""Requests that no example can say."""


def _list_right_requests(request: Descriptor) -> Iterator[Message]:
    kind = GetMessageClass(request)
    yield from (each for each in _MADE if isinstance(each, kind))
    for text in request.GetOptions().Extensions[example]:
        try:
            yield Parse(text, kind())
        except ParseError as error:
            raise ValueError(f"{request.full_name}: its `option (example)` is no request: {error}") from None
    if _USUAL.keys() >= set(request.fields_by_name):
        yield kind(**{name: _USUAL[name] for name in request.fields_by_name})


RIGHT_REQUESTS: Final = {
    each.input_type.name: list(_list_right_requests(each.input_type)) for each in methods()
}
"""By the name of their message."""
