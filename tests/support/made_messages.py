"""Messages as channels get them, and a sender that reaches servers of tests."""

from collections.abc import Sequence
from datetime import UTC, datetime

from parley.orchestrator.delivery.message import Message
from parley.orchestrator.outgoing.reach import Reach
from parley.orchestrator.outgoing.sender import GuardedSender
from parley.v1.hook_pb2 import HOOK_EVENT_CONCLUDED
from tests.support.web_server import WEB_NETWORK

SENDER = GuardedSender(Reach((WEB_NETWORK,), ports=None), seconds=5.0)


def make_message(
    *,
    text: str = "A title\n\nAn answer.",
    body: bytes = b'{"id": "dlv-1"}',
    link: str = "https://parley.example/d/1",
    answers: Sequence[tuple[str, str]] = (),
) -> Message:
    """A message of a debate that ended."""
    return Message(
        id="dlv-1",
        tenant="acme",
        hook="hook-1",
        event=HOOK_EVENT_CONCLUDED,
        debate="deb-20270102-030405-abcdefgh",
        sequence=7,
        time=datetime(2027, 1, 2, tzinfo=UTC),
        body=body,
        text=text,
        link=link,
        answers=answers,
    )
