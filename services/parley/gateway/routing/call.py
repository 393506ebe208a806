"""A call as it is asked, and as it goes."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from parley.gateway.prompt.fitting import with_text
from parley.gateway.prompt.structured_answers import AnswerShape
from parley.gateway.prompt.tools import DEFAULT_CALL_LIMIT, TOOL_NAMES
from parley.gateway.routing.route import Route
from parley.gateway.tracing import TraceLabels
from parley.runtime.held_texts import HeldText
from parley.runtime.labels import labels
from parley.v1.gateway_pb2 import GenerateRequest, PromptPart


class Timeouts(Struct, frozen=True):
    """How long a route attempt may take: seconds at most, and shares of what is left of the call's time.

    `first_pause_seconds` is the longest first pause before the routes are gone round again. `hedge_seconds` is how long
    a call stays silent before its next route is asked too; None: never. `call_seconds` is the time of a call that
    names none.
    """

    route_attempt_seconds: float = 60.0
    first_pause_seconds: float = 0.5
    share_before_another_route: float = 0.5
    share_alone: float = 0.75
    hedge_seconds: float | None = None
    call_seconds: float = 90.0

    @property
    def full_attempt_seconds(self) -> float:
        """What the first of several routes gets of a call with the usual time, less a tenth, since calls come to their routes a little late."""
        return 0.9 * min(self.route_attempt_seconds, self.call_seconds * self.share_before_another_route)


class Call(Struct, frozen=True):
    """A checked question of an agent.

    Attributes:
        request: The request, without the texts of its documents.
        shape: The shape that its schema stands for.
        documents: The texts of its documents, by path.
        size: Characters of the prompt; bytes of the documents.
    """

    request: GenerateRequest
    shape: AnswerShape | None = None
    documents: Mapping[str, HeldText] = field(default_factory=dict)
    size: int = 0

    def create_prompt(self, left_out: Container[str] = ()) -> Sequence[PromptPart]:
        """Return the parts of the prompt, in order, with the texts of its documents but those of some paths. Do not keep it."""
        return tuple(
            with_text(part, self.documents[part.document].text)
            if part.document in self.documents and part.document not in left_out
            else part
            for part in self.request.prompt
        )

    def count(self, counter: Callable[[str], int]) -> int:
        """Return the sum of what `counter` returns for each text of the prompt."""
        return sum(
            self.documents[part.document].count(counter)
            if part.document in self.documents
            else counter(part.text)
            for part in self.request.prompt
        )

    @property
    def temperature(self) -> float | None:
        """The agent's temperature, None if it names none."""
        agent = self.request.agent
        return agent.temperature if agent.HasField("temperature") else None

    @property
    def seconds(self) -> float | None:
        """The time for the whole call, None if the caller names none."""
        timeout = self.request.timeout
        return timeout.seconds + timeout.nanos / 1e9 if self.request.HasField("timeout") else None

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the agent may use."""
        return tuple(TOOL_NAMES[each] for each in self.request.agent.tools)

    @property
    def tool_call_limit(self) -> int:
        """How many tool calls the agent may make for this answer."""
        return self.request.agent.tool_call_limit or DEFAULT_CALL_LIMIT

    @property
    def labels(self) -> TraceLabels:
        """The agent and the debate, for spans."""
        agent, debate = self.request.agent, self.request.call_id.debate_id
        return TraceLabels(agent.name or agent.id, debate or labels().get("debate", ""))

    def output_tokens_at(self, route: Route) -> int:
        """Return the upper bound on tokens of an answer of a route; 0: the endpoint's own."""
        wanted = self.request.max_output_tokens or route.max_output_tokens
        affordable = self.request.affordable_output_tokens
        return min(wanted or affordable, affordable or wanted)


class Progress(Protocol):
    """Gets the progress of a call."""

    def start_route_attempt(self, route: str) -> None:
        """Note that a route attempt starts; text of earlier ones is void."""
        ...

    def mark_alive(self) -> None:
        """Note that the model is at work in the present route attempt: it writes, thinks or asks for a tool."""
        ...

    def add_text(self, piece: str) -> None:
        """Add text of the present route attempt."""
        ...
