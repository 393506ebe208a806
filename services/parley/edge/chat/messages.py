"""Chat completions and their parts, as OpenAI's clients read them."""

import json
import time
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from parley.edge.chat.debates import Answer
from parley.edge.chat.errors import to_error_object
from parley.runtime.errors import ParleyError
from parley.v1.agent_pb2 import Usage

END = "data: [DONE]\n\n"
ALIVE = ": alive\n\n"


class Completion(Struct, frozen=True):
    """What all parts of one answer have in common.

    Attributes:
        debate_id: The debate.
        model: The model that was asked for.
        ignored: Parameters of the request that had no effect.
    """

    debate_id: str
    model: str
    ignored: tuple[str, ...]
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        named = {"Parley-Ignored": ", ".join(self.ignored)} if self.ignored else {}
        return {"Cache-Control": "no-store", "Parley-Debate-Id": self.debate_id, **named}

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the answer in one piece."""
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self._frame("chat.completion"), "choices": [choice], "usage": to_usage(answer.usage)}

    def part(self, delta: Mapping[str, str], finish_reason: str | None = None) -> str:
        """Return a part of the answer."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return to_event({**self._frame("chat.completion.chunk"), "choices": [choice]})

    def usage_part(self, usage: Usage) -> str:
        """Return the part that says what was used."""
        return to_event({**self._frame("chat.completion.chunk"), "choices": [], "usage": to_usage(usage)})

    def _frame(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.debate_id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "parley": {"debate_id": self.debate_id, "ignored": self.ignored},
        }


def to_usage(usage: Usage) -> dict[str, Any]:
    """Return the sums of a debate; `cost` is in US dollars, and null if a price is not known."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "cost": usage.cost_micros / 1e6 if usage.HasField("cost_micros") else None,
    }


def to_event(data: Mapping[str, Any]) -> str:
    """Return an event of the stream."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def to_error_event(error: ParleyError) -> str:
    """Return the event that says why the stream ends without an answer."""
    return to_event(to_error_object(error))
