"""The events of a debate: what each kind says, and how it is written.

The log stores an event's payload as canonical JSON. A kind's shape may only gain fields that have a default; any
other change is a new `schema` version of the kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, get_args

from pydantic import JsonValue, TypeAdapter, ValidationError

from parley.orchestrator.canonical import ADDED_LATER, canonical_json
from parley.orchestrator.spec import DebateSpec

Json = JsonValue


class CorruptEventError(Exception):
    """A stored event is not what its kind says. The log was changed from outside."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls used. `cost_micros` is millionths of a US dollar, None where a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None
    attempts: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Add field by field; an unknown cost makes the sum unknown, unless nothing was asked of a model there."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_micros=_sum_costs(self, other),
            attempts=self.attempts + other.attempts,
        )


def _sum_costs(one: Usage, other: Usage) -> int | None:
    if one.attempts == 0:
        return other.cost_micros
    if other.attempts == 0:
        return one.cost_micros
    if one.cost_micros is None or other.cost_micros is None:
        return None
    return one.cost_micros + other.cost_micros


@dataclass(frozen=True, slots=True)
class Work:
    """What a step is for.

    Attributes:
        activity: `proposal`, `critique`, `refinement`, `summary`, `synthesis`, `assessment`, or the name of a
            service's work, such as `first-draft-vote`.
        agent: The agent that works; empty where a service does.
        round: From 1; 0 outside of rounds.
        target: The agent whose work is looked at; empty where there is none.
        summarized: Characters of the history that a summary replaces; 0 for everything else.
    """

    activity: str
    agent: str = ""
    round: int = 0
    target: str = ""
    summarized: int = 0

    @property
    def phase(self) -> str:
        """The phase in words for people, such as `round 1 proposal`."""
        return f"round {self.round} {self.activity}" if self.round else self.activity


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model asked of a tool.

    Attributes:
        name: The tool as the model named it.
        arguments: JSON text, cut to 500 characters.
        failed: Whether the model was answered with an error.
        characters: Characters it was answered with.
    """

    name: str
    arguments: str = ""
    failed: bool = False
    characters: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """An agent's answer and what it took.

    Attributes:
        position: The one-sentence stand it takes; empty where none was stated.
        left_out: Characters of the prompt that were left out to fit the route's context.
        tool_calls: What was looked up for it, in order.
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
    """The debate was accepted."""

    request_id: str
    spec: DebateSpec
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A replica took the debate; everything after is written under the event's epoch."""

    owner: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """Past debates that the agents are shown."""

    debates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A round began."""

    number: int
    total: int


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """A round is complete."""

    number: int


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """The first step of a phase is about to begin; `expected` steps belong to it."""

    name: str
    round: int
    expected: int


@dataclass(frozen=True, slots=True)
class PhaseFinished:
    """All steps of a phase have ended."""

    name: str
    round: int


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step's call is about to be made. `digest` stands for all that is asked."""

    work: Work
    digest: str


@dataclass(frozen=True, slots=True)
class StepSucceeded:
    """A step's result: an agent's reply, or the value that a service returned."""

    work: Work
    digest: str
    reply: Reply | None = None
    value: Json = None


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step ended without a result, for good: an agent failed, abstained or was late."""

    work: Work
    digest: str
    reason: str
    message: str
    usage: Usage = field(default_factory=Usage)
    latency_ms: int = 0


@dataclass(frozen=True, slots=True)
class Warned:
    """Something went other than wished, and the debate goes on."""

    message: str


@dataclass(frozen=True, slots=True)
class Intervened:
    """A wish was taken up.

    Attributes:
        wish: `cancel`, `pause`, `resume`, `continue`, `end`, `guide`, `answer`, `approve` or `mute`.
        text: Guidance, an answer, what is said to an approval, or the reason of a cancel.
        agent: Who is muted.
        stop_calls: Whether a pause stops the calls in flight.
        checkpoint: Key of the one checkpoint that it was meant for; empty for whichever was open.
    """

    request_id: str
    wish: str
    text: str = ""
    agent: str = ""
    stop_calls: bool = False
    approved: bool = False
    checkpoint: str = field(default="", metadata=ADDED_LATER)


@dataclass(frozen=True, slots=True)
class ControlSeen:
    """A format looked at the wishes recorded up to a sequence, and went on with these."""

    through: int


@dataclass(frozen=True, slots=True)
class Paused:
    """No call is in flight, and none is made until the debate is resumed."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """The debate goes on after a pause or a failure. The event's attempt counts the debate's attempts."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit was reached. What was late for it is stopped, and fails with what it had used by then.

    Attributes:
        limit: `round_timeout`: whoever is late is left out. `total_timeout`, `token_budget` or `cost_budget`: nothing new
            is asked but the answer.
        round: The round, from 1; 0 for the whole debate.
        used: Seconds, tokens or millionths of a US dollar, as recorded by then.
        late: Keys of the steps that fail for it, whatever their calls came to afterwards.
    """

    limit: str
    round: int = 0
    used: float = 0.0
    late: tuple[str, ...] = field(default=(), metadata=ADDED_LATER)


@dataclass(frozen=True, slots=True)
class WaitStarted:
    """The debate waits for providers that may come back, and then tries the steps again by itself.

    Attributes:
        seconds: Length of this wait; `until` is when it ends.
        waited: Seconds of all earlier waits of this phase.
        steps: Keys of the steps that are tried again.
    """

    reason: str
    message: str
    agent: str
    phase: str
    until: datetime
    seconds: float
    waited: float
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WaitFinished:
    """The steps that were waited for are tried again."""


@dataclass(frozen=True, slots=True)
class CheckpointOpened:
    """The debate waits for a person until then. `text` is what is put to them."""

    text: str
    until: datetime


@dataclass(frozen=True, slots=True)
class CheckpointClosed:
    """A person ended the wait. `wish` is `continue`, `guide`, `end`, `answer` or `approve`, with what was said."""

    wish: str
    text: str = ""
    approved: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointExpired:
    """Nobody came in time. The debate pauses, and opens the checkpoint again once it is resumed."""


@dataclass(frozen=True, slots=True)
class DebateFailed:
    """The debate stopped on a failure. `steps` are tried again when it is resumed."""

    reason: str
    message: str
    agent: str = ""
    phase: str = ""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnfulfilledRequirement:
    """A stated requirement that the answer does not meet."""

    text: str
    hard: bool


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

    `ended_by` is the limit that ended it early: `total_timeout`, `token_budget` or `cost_budget`; empty for none.
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

SCHEMA_VERSION = 1
"""Version of every kind's shape; a kind that changes gets a number of its own."""


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


KINDS: Mapping[str, type[Payload]] = {_snake(kind.__name__): kind for kind in get_args(Payload)}
_NAMES: Mapping[type[Payload], str] = {kind: name for name, kind in KINDS.items()}


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def kind_of(payload: Payload) -> str:
    """Return the name of a payload's kind, such as `step_succeeded`."""
    return _NAMES[type(payload)]


def to_json(value: object) -> Any:
    """Return a dataclass as a JSON value."""
    return _adapter(type(value)).dump_python(value, mode="json")


def encode(payload: Payload) -> str:
    """Return a payload as canonical JSON."""
    return canonical_json(to_json(payload))


def decode(kind: str, text: str) -> Payload | None:
    """Return the payload that a text holds, or None for a kind that is not known here.

    Raises:
        CorruptEventError: the text is not of its kind's shape.
    """
    if kind not in KINDS:
        return None
    try:
        decoded: Payload = _adapter(KINDS[kind]).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"stored event of kind {kind} is damaged at {where or 'its root'}: {first['msg']}"
        raise CorruptEventError(message) from error
    return decoded
