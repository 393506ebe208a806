"""What people do in debates."""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from parley.runtime.errors import ParleyError
from parley.v1 import debate_pb2
from parley.v1.event_pb2 import (
    Intervened,
)


def intervention(
    act: str,
    request_id: str = "",
    *,
    text: str = "",
    agent_id: str = "",
    stop_calls: bool = False,
    approved: bool = False,
    checkpoint: str = "",
    answers: Mapping[str, str] | None = None,
    enough: bool = False,
) -> Intervened:
    """What a person does, by the contract's name of the act."""
    acts: dict[str, Callable[[], Message]] = {
        "cancel": lambda: debate_pb2.Cancel(reason=text),
        "pause": lambda: debate_pb2.Pause(stop_calls=stop_calls),
        "guide": lambda: debate_pb2.Guide(text=text),
        "mute": lambda: debate_pb2.Mute(agent_id=agent_id),
        "unmute": lambda: debate_pb2.Unmute(agent_id=agent_id),
        "answer": lambda: debate_pb2.Answer(
            text=text,
            enough=enough,
            answers=[
                debate_pb2.QuestionAnswer(question_id=each, text=told)
                for each, told in (answers or {}).items()
            ],
        ),
        "approve": lambda: debate_pb2.Approve(approved=approved, text=text),
        "resume": debate_pb2.Resume,
        "end": debate_pb2.EndRounds,
        "continue_debate": debate_pb2.Continue,
    }
    given: dict[str, Any] = {act: acts[act]()}
    made = debate_pb2.Intervention(checkpoint=checkpoint, **given)
    return Intervened(request_id=request_id or uuid.uuid4().hex, intervention=made)


async def hear_end(intervening: Awaitable[int]) -> int | str:
    """Return the sequence that records an intervention, or the reason for which it was refused."""
    try:
        return await intervening
    except ParleyError as error:
        return error.reason
