"""Messages as JSON: read and written in a thread if they are large, since the event loop serves all callers.

The library that speaks Connect reads and writes messages by a codec, which cannot wait for a thread. So this codec does neither: a call gets
its request unread, and returns its answer written.
"""

from functools import partial
from typing import TypeAlias

from google.protobuf.json_format import MessageToJson, Parse
from google.protobuf.message import Message
from msgspec import Struct

from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.message_limits import MAX_FIELDS, is_crowded_json


class UnreadJson(Struct, frozen=True):
    """A request as it came, and the kind of message that it should be."""

    content: bytes | bytearray
    kind: type[Message]


Request: TypeAlias = Message | UnreadJson
Answer: TypeAlias = Message | bytes


class JsonCodec:
    """Passes JSON on as it is, in both directions."""

    def name(self) -> str:
        """Return the end of the media types of which it is."""
        return "json"

    def decode(self, data: bytes | bytearray, message_class: type[Message]) -> UnreadJson:
        """Return a request for `read_request`."""
        return UnreadJson(data, message_class)

    def encode(self, message: bytes) -> bytes:
        """Return what `write_answer` has written."""
        return message


async def read_request(request: Request) -> Message:
    """Return the message of a request. Raise ValueError for JSON that is none, in words for people."""
    if isinstance(request, Message):
        return request
    return await in_thread_if_large(len(request.content), partial(_parse, request))


async def write_answer(request: Request, answer: Message) -> Answer:
    """Return an answer in the form of its request."""
    if isinstance(request, Message):
        return answer
    return await in_thread_if_large(answer.ByteSize(), lambda: MessageToJson(answer).encode())


def _parse(request: UnreadJson) -> Message:
    if is_crowded_json(request.content):
        raise ValueError(f"the body has more than {MAX_FIELDS:,} values; send fewer")
    try:
        return Parse(bytes(request.content), request.kind())
    except Exception as error:
        # The library says it in several lines, with a point for each level.
        why = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"the body is not the JSON of this message: {why}") from error
