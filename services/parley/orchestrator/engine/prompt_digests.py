"""Digests of what agents are asked. The prompts of an agent begin alike, and what they have in common is hashed once."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.json_format import MessageToDict
from msgspec import Struct

from parley.orchestrator.model.digest import DIGEST_BYTES, canonical_json
from parley.orchestrator.model.tasks import AnswerShape, Task
from parley.v1.agent_pb2 import Agent
from parley.v1.gateway_pb2 import PROMPT_ROLE_ASSISTANT, PROMPT_ROLE_SYSTEM, PROMPT_ROLE_USER, PromptPart

if TYPE_CHECKING:
    from hashlib import blake2b as _Hash  # noqa: N812

_ROLES: Final[Mapping[int, str]] = {
    PROMPT_ROLE_SYSTEM: "system",
    PROMPT_ROLE_USER: "user",
    PROMPT_ROLE_ASSISTANT: "assistant",
}


class HashedStart(Struct, frozen=True):
    """How a prompt begins, as far as it is hashed.

    Attributes:
        head: What stands before the prompt.
        documents: The digests of documents by their paths.
        parts: The parts that are hashed; `states`: the hash after each of them.
    """

    head: bytes
    documents: Mapping[str, str]
    parts: tuple[PromptPart, ...] = ()
    states: tuple["_Hash", ...] = ()

    def find_rest(self, task: Task) -> Sequence[PromptPart]:
        """Return the parts of the task's prompt that are not hashed yet."""
        return task.prompt[len(self.parts) :]


class PromptDigests:
    """Makes the digests of what the agents of one debate are asked.

    A digest is that of a JSON value, as `model/digest.py` makes it, with these members: agent, answer_start, max_output_tokens,
    prompt, schema, seconds. Default values are left out, so that a setting that is added later does not change old digests.
    Only the last prompt of each agent is kept.
    """

    def __init__(self) -> None:
        """Know no prompt yet."""
        self._agents: dict[bytes, bytes] = {}
        self._last: dict[bytes, HashedStart] = {}

    def find_start(self, agent: Agent, task: Task, documents: Mapping[str, str]) -> HashedStart:
        """Return how the prompt of a task begins, as far as it is hashed. `documents` are the digests of documents by their paths."""
        head = self._head(agent, task)
        last = self._last.get(head)
        if last is None or last.documents is not documents:
            return HashedStart(head, documents)
        shared = 0
        for known, part in zip(last.parts, task.prompt, strict=False):
            if known is not part and known != part:
                break
            shared += 1
        return HashedStart(head, documents, last.parts[:shared], last.states[:shared])

    def digest(self, start: HashedStart, task: Task, shape: AnswerShape[Any] | None, seconds: float) -> str:
        """Return the digest of what an agent is asked, 32 hex digits. `start` is how its prompt begins."""
        states: list[_Hash] = list(start.states)
        state: _Hash = states[-1] if states else blake2b(start.head, digest_size=DIGEST_BYTES)
        for part in start.find_rest(task):
            state = state.copy()
            state.update(b"," if states else b'"prompt":[')
            state.update(canonical_json(_part(part, start.documents)))
            states.append(state)
        self._last[start.head] = HashedStart(start.head, start.documents, task.prompt, tuple(states))
        schema = _schema_member(shape.name, shape.json_schema) if shape else b""
        members = (b"]," if states else b"") + schema + _seconds_member(seconds)
        end = state.copy()
        end.update(members.removesuffix(b",") + b"}")
        return end.hexdigest()

    def _head(self, agent: Agent, task: Task) -> bytes:
        """Return the members that stand before the prompt."""
        key = agent.SerializeToString(deterministic=True)
        if key not in self._agents:
            self._agents[key] = _member("agent", MessageToDict(agent, preserving_proto_field_name=True))
        members = (
            self._agents[key],
            _member("answer_start", task.answer_start),
            _member("max_output_tokens", task.max_output_tokens),
        )
        return b"{" + b"".join(members)


def _member(name: str, value: Any) -> bytes:
    """Return a member of an object and the comma after it; nothing for a value that is left out."""
    return b'"%s":%s,' % (name.encode(), canonical_json(value)) if value else b""


@lru_cache(64)
def _schema_member(name: str, json_schema: str) -> bytes:
    return _member("schema", [name, json_schema])


@lru_cache(64)
def _seconds_member(seconds: float) -> bytes:
    return _member("seconds", seconds)


def _part(part: PromptPart, documents: Mapping[str, str]) -> dict[str, Any]:
    text = {"digest": documents[part.document]} if part.document in documents else {"text": part.text}
    fields = {
        "role": _ROLES[part.role],
        "give": part.shrink_priority,
        "document": part.document,
        "source": part.source,
        **text,
    }
    return {name: value for name, value in fields.items() if value}
