"""The events of a debate as a client reads them: one frozen dataclass a kind.

A payload may gain fields; readers pass over those, and over kinds, that they do not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, get_args

from pydantic import TypeAdapter, ValidationError

from parley.v1 import orchestrator_pb2

__all__ = [
    "CheckpointClosed",
    "CheckpointExpired",
    "CheckpointOpened",
    "Claimed",
    "Closed",
    "Concluded",
    "ControlSeen",
    "DebateCreated",
    "DebateEvent",
    "DebateFailed",
    "Intervened",
    "LimitReached",
    "Paused",
    "Payload",
    "PhaseFinished",
    "PhaseStarted",
    "Recalled",
    "Reply",
    "Resumed",
    "RoundFinished",
    "RoundStarted",
    "Solution",
    "StepFailed",
    "StepStarted",
    "StepSucceeded",
    "ToolCall",
    "UnfulfilledRequirement",
    "Usage",
    "WaitFinished",
    "WaitStarted",
    "Warned",
    "Work",
    "decode",
]


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls used. `cost_micros` is millionths of a US dollar, None where a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """What a step is for.

    `activity` is `proposal`, `critique`, `refinement`, `summary`, `synthesis`, `assessment` or the name of a
    service's work; `agent` is empty where a service works; `round` is 0 outside of rounds; `target` is the agent
    whose work is looked at.
    """

    activity: str
    agent: str = ""
    round: int = 0
    target: str = ""

    @property
    def phase(self) -> str:
        """The phase in words, such as `round 1 proposal`."""
        return f"round {self.round} {self.activity}" if self.round else self.activity


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model asked of a tool: `arguments` is JSON text, cut; `characters` is the length of what it was answered."""

    name: str
    arguments: str = ""
    failed: bool = False
    characters: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """An agent's answer and what it took.

    `position` is the one-sentence stand it takes, if it states one; `tool_calls` is what was looked up for it, in order.
    """

    text: str
    position: str = ""
    usage: Usage = field(default_factory=Usage)
    latency_ms: int = 0
    route: str = ""
    model: str = ""
    truncated: bool = False
    left_out: int = 0
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class DebateCreated:
    """The debate was accepted; `spec` is its frozen specification as JSON."""

    spec: Mapping[str, Any]
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A replica took the debate."""

    owner: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Past debates that the agents are shown."""

    debates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A round began."""

    number: int
    total: int = 0


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """A round is complete."""

    number: int


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A phase is about to begin; `expected` steps belong to it."""

    name: str
    round: int = 0
    expected: int = 0


@dataclass(frozen=True, slots=True)
class PhaseFinished:
    """All steps of a phase have ended."""

    name: str
    round: int = 0


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A call is about to be made."""

    work: Work


@dataclass(frozen=True, slots=True)
class StepSucceeded:
    """A step's result: an agent's reply, or None where a service worked."""

    work: Work
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step ended without a result."""

    work: Work
    reason: str
    message: str = ""
    usage: Usage = field(default_factory=Usage)
    latency_ms: int = 0


@dataclass(frozen=True, slots=True)
class Warned:
    """Something went other than wished, and the debate goes on."""

    message: str


@dataclass(frozen=True, slots=True)
class Intervened:
    """A wish was taken up: `cancel`, `pause`, `resume`, `continue`, `end`, `guide`, `answer`, `approve` or `mute`.

    `checkpoint` is the key of the one checkpoint that it was meant for; empty for whichever was open.
    """

    wish: str
    request_id: str = ""
    text: str = ""
    agent: str = ""
    stop_calls: bool = False
    approved: bool = False
    checkpoint: str = ""


@dataclass(frozen=True, slots=True)
class ControlSeen:
    """The debate went on with the wishes recorded up to a sequence."""

    through: int = 0


@dataclass(frozen=True, slots=True)
class Paused:
    """No call is in flight, and none is made until the debate is resumed."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """The debate goes on after a pause or a failure."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """`round_timeout`: whoever is late is left out. Any other: nothing new is asked but the answer."""

    limit: str
    round: int = 0
    used: float = 0.0


@dataclass(frozen=True, slots=True)
class WaitStarted:
    """The debate waits for providers that may come back, and goes on by itself."""

    reason: str
    until: datetime
    message: str = ""
    agent: str = ""
    phase: str = ""


@dataclass(frozen=True, slots=True)
class WaitFinished:
    """What was waited for is tried again."""


@dataclass(frozen=True, slots=True)
class CheckpointOpened:
    """The debate waits for a person until then; the event's key names the checkpoint."""

    text: str
    until: datetime


@dataclass(frozen=True, slots=True)
class CheckpointClosed:
    """A person ended the wait: `continue`, `guide`, `end`, `answer` or `approve`, with what was said."""

    wish: str
    text: str = ""
    approved: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointExpired:
    """Nobody came in time; the debate pauses."""


@dataclass(frozen=True, slots=True)
class DebateFailed:
    """The debate stopped on a failure; `steps` are tried again when it is resumed."""

    reason: str
    message: str = ""
    agent: str = ""
    phase: str = ""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnfulfilledRequirement:
    """A stated requirement that the answer does not meet."""

    text: str
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Solution:
    """The answer. `confidence` is 0 to 100; `scores` are 0 to 10 by agent id."""

    description: str
    implementation: str = ""
    tradeoffs: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    unfulfilled_requirements: tuple[UnfulfilledRequirement, ...] = ()
    open_questions: tuple[str, ...] = ()
    confidence: int = 0
    synthesized_by: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Concluded:
    """The debate ended: `completed` with an answer, or `cancelled` without.

    `ended_by` is the limit that ended it early, such as `total_timeout`; empty for none.
    """

    status: str
    solution: Solution | None = None
    ended_by: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """Everything that follows from the end is done. The last event."""


Payload = (
    DebateCreated
    | Claimed
    | Recalled
    | RoundStarted
    | RoundFinished
    | PhaseStarted
    | PhaseFinished
    | StepStarted
    | StepSucceeded
    | StepFailed
    | Warned
    | Intervened
    | ControlSeen
    | Paused
    | Resumed
    | LimitReached
    | WaitStarted
    | WaitFinished
    | CheckpointOpened
    | CheckpointClosed
    | CheckpointExpired
    | DebateFailed
    | Concluded
    | Closed
)


@dataclass(frozen=True, slots=True)
class DebateEvent:
    """An event of a debate's log.

    Attributes:
        sequence: Dense, from 1.
        key: Of the step, for a step's events.
        attempt: At the step, from 1; 0 where it is not a step's.
        kind: Such as `step_succeeded`.
        payload: What it says; None for a kind, or a shape of it, that this client does not know.
        payload_json: The same as JSON text.
    """

    sequence: int
    key: str
    attempt: int
    kind: str
    time: datetime
    payload: Payload | None
    payload_json: str


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


_KINDS: Final[Mapping[str, type[Payload]]] = {_snake(kind.__name__): kind for kind in get_args(Payload)}


@cache
def _adapter(kind: str) -> TypeAdapter[Payload]:
    return TypeAdapter(_KINDS[kind])


def decode(event: orchestrator_pb2.Event) -> DebateEvent:
    """The event with its payload read."""
    return DebateEvent(
        sequence=event.sequence,
        key=event.key,
        attempt=event.attempt,
        kind=event.kind,
        time=event.time.ToDatetime(UTC),
        payload=_payload(event.kind, event.payload_json),
        payload_json=event.payload_json,
    )


def _payload(kind: str, text: str) -> Payload | None:
    if kind not in _KINDS:
        return None
    try:
        return _adapter(kind).validate_json(text)
    except ValidationError:  # a later version of the kind, with another shape
        return None
