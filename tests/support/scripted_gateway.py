"""A gateway for tests, over real gRPC or without a socket: answers follow from step keys, and a ledger keeps all calls.

The other services that a debate meets stand beside it, as plain as can be.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast

import grpc

from parley.runtime.direct.channel import direct_channel, identify_service
from parley.runtime.direct.server import DirectServer
from parley.runtime.errors import ParleyError, failed_precondition, not_found, unavailable
from parley.runtime.identity.guard import OPEN, Guard
from parley.runtime.server import RunningServer, ServerSettings, Service, start_server
from parley.runtime.server_interceptors import CallInterceptor
from parley.v1 import (
    agent_pb2,
    convergence_pb2,
    gateway_pb2,
    gateway_pb2_grpc,
    memory_pb2,
    ratings_pb2,
)
from tests.support.grounding_answers import asks_for_grounds, grounds
from tests.support.grouping_answers import asks_for_groups, group_alike
from tests.support.scripted_answers import answer_text, criticism, judgement
from tests.support.scripted_faults import ScriptedFaults
from tests.support.scripted_services import services_beside


@dataclass(slots=True)
class StepRequest:
    """One Generate as the gateway saw it. `end`: open, answered, failed, or hung-up."""

    tenant: str
    debate: str
    step: str
    attempt: int
    agent: agent_pb2.Agent
    prompt: str
    parts: Sequence[gateway_pb2.PromptPart]
    schema: str
    timeout: float
    remaining: float | None
    end: str = "open"
    answer_start: str = ""
    max_output_tokens: int = 0
    affordable: int = 0
    shape: str = ""

    @property
    def call(self) -> tuple[str, int]:
        return self.step, self.attempt


class ScriptedGateway(ScriptedFaults, gateway_pb2_grpc.GatewayServiceServicer):
    """Answers at once unless its script says otherwise.

    Attributes:
        calls: The ledger, in the order in which calls came.
        cancelled: Steps and attempts that CancelCall named.
        unkept: Steps and attempts that each ForgetAnswers named; `forgets`: whether it lets itself be told.
        holds_answers: Whether it says that it stores an answer only if it is not told to forget it.
        text: Makes a plain answer's text of step and agent id.
        judge: Makes a structured answer of its schema, but for critiques and lists of requirements.
        grouping: Groups the positions that a call shows.
        grounds: Says what the answer rests on, by the schema that it is asked with.
        critic: Makes a critique of step and agent id; by default of one issue, which is what `text` says.
        alter: Makes another text of a call and its answer.
        requirements: What the judge finds required, each a text and whether it is hard.
        question_kind: The kind of question that it says it is.
        tool_calls: What each answer says was looked up for it, by agent id.
        usage: What an answer says it used, by step.
        stopped_usage: What a call had used that is stopped, by step; None: it cannot tell.
        keeps_stopped: Whether it says that the answer had come before the stop, and is kept.
        prices: What a million tokens read and written cost at its routes; None: it does not say.
        answering_route: The route by which it says that it answers.
        own_server: The host to which its provider `openai` leads, which takes any model; empty: it has none.
        demonstration: Whether its route only demonstrates what a debate is.
        deaf: Whether calls go on that CancelCall names.
        used: Output tokens of a step's answer and whether it was cut off, by step.
        deltas: Pieces that answers are streamed in before they are complete; 0 for none.
        past: Past debates that memory recalls, best first.
        patterns: Critique patterns that memory lists.
        remembered: What memory was asked to record.
        contexts: Tokens that routes are said to have; one that is not here: not known.
        assess: Makes what convergence says of a round; None: it cannot tell.
        group: Makes what it says of the first drafts, or of choices; None: they are all of one mind.
        group_by: Makes the same of the request, in place of `group`.
        weights: What ratings say that agents' votes weigh, 1 for one that is not here; None: they cannot tell.
        ratings: What they know of agents, where they can tell.
        team: Who is chosen where a team is; None: the ratings cannot tell.
        matches: What they were told, in the order in which it came.
        documents: The documents that it knows, by digest.
        missed: How many calls named a document that it did not know; `sent`: how many brought the texts of such documents.
    """

    def __init__(self, agents: Sequence[agent_pb2.Agent] = ()) -> None:
        super().__init__()
        self.agents = tuple(agents) or (
            *(agent_pb2.Agent(id=name, name=name.title(), role="architect") for name in ("ada", "bo", "cy")),
            agent_pb2.Agent(id="judge", name="Judge", role="judge"),
        )
        self.default_judge = "judge"
        self.calls: list[StepRequest] = []
        self.cancelled: list[tuple[str, int]] = []
        self.unkept: list[list[tuple[str, int]]] = []
        self.forgets = True
        self.holds_answers = False
        self.text: Callable[[str, str], str] = answer_text
        self.judge: Callable[[str], str] = judgement
        self.grouping: Callable[[StepRequest], str] = lambda asked: json.dumps(group_alike(asked.prompt))
        self.grounds: Callable[[str], str] = grounds
        self.critic: Callable[[str, str], str] = lambda step, agent: criticism(self.text(step, agent))
        self.alter: Callable[[StepRequest, str], str] = lambda _asked, text: text
        self.requirements: Sequence[tuple[str, bool]] = ()
        self.question_kind = "open"
        self.tool_calls: dict[str, Sequence[agent_pb2.ToolCall]] = {}
        self.used: dict[str, tuple[int, bool]] = {}
        self.deltas = 0
        self.deaf = False
        self.past: Sequence[memory_pb2.RecallResponse] = ()
        self.patterns: Sequence[memory_pb2.CritiquePattern] = ()
        self.remembered: list[memory_pb2.RecordDebateRequest] = []
        self.assess: Callable[[convergence_pb2.AssessRequest], convergence_pb2.AssessResponse] | None = None
        self.group: Callable[[], convergence_pb2.GroupPositionsResponse] | None = None
        self.support: (
            Callable[[convergence_pb2.FindSupportRequest], convergence_pb2.FindSupportResponse] | None
        ) = None
        self.embed: Callable[[str], Sequence[float]] | None = lambda _: [1.0]
        self.embedded = 0
        self.group_by: (
            Callable[[convergence_pb2.GroupPositionsRequest], convergence_pb2.GroupPositionsResponse] | None
        ) = None
        self.weights: dict[str, float] | None = {}
        self.ratings: dict[str, ratings_pb2.Rating] = {}
        self.default_routes: Sequence[str] = ("p/m",)
        self.team: Sequence[str] | None = None
        self.matches: list[ratings_pb2.RecordMatchRequest] = []
        self.forgotten: list[str] = []
        self.usage: Callable[[str], agent_pb2.Usage] = lambda _: agent_pb2.Usage(
            input_tokens=10, output_tokens=10, cost_micros=7, requests=1
        )
        self.stopped_usage: Callable[[str], agent_pb2.Usage] | None = None
        self.keeps_stopped = False
        self.unpriced = False
        self.prices: tuple[int, int] | None = None
        self.contexts: dict[str, int] = {"p/m": 32_768}
        self.answering_route = "p/m"
        self.own_server = ""
        self.demonstration = False
        self.metadata: list[dict[str, str]] = []
        self._stops: defaultdict[tuple[str, str, int], asyncio.Event] = defaultdict(asyncio.Event)
        self._came = asyncio.Event()
        self.documents: dict[str, str] = {}
        self.missed = self.sent = 0

    def steps(self, pattern: str = "*") -> list[str]:
        """The steps that were asked so far, in order, with repetitions."""
        return [asked.step for asked in self.calls if fnmatchcase(asked.step, pattern)]

    def asked(self, step: str) -> StepRequest:
        """The last call of a step."""
        return [asked for asked in self.calls if asked.step == step][-1]

    async def wait_for(self, pattern: str, count: int = 1, *, within: float = 30.0) -> None:
        """Wait until that many calls of matching steps have come."""
        try:
            async with asyncio.timeout(within):
                while len(self.steps(pattern)) < count:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            raise AssertionError(f"{pattern} was not asked {count} times: {self.steps()}") from None

    @asynccontextmanager
    async def served(self, guard: Guard = OPEN) -> AsyncIterator[RunningServer]:
        """Serve while the block runs, to whom `guard` lets in."""
        settings = ServerSettings(port=0, grace_seconds=0, guard=guard)
        async with start_server(self._services(), settings) as server:
            yield server

    @asynccontextmanager
    async def called_directly(self) -> AsyncIterator[grpc.aio.Channel]:
        """Yield a channel of an orchestrator in this process, which takes no socket."""
        server = DirectServer(CallInterceptor(OPEN, {}, {}).wrap)
        for each in self._services():
            each.register(cast("grpc.aio.Server", server))
        try:
            async with direct_channel(server, identify_service("orchestrator")) as channel:
                yield channel
        finally:
            await server.stop(None)

    def _services(self) -> list[Service]:
        return [Service("parley.v1.GatewayService", self._register), *services_beside(self)]

    def _register(self, server: grpc.aio.Server) -> None:
        gateway_pb2_grpc.add_GatewayServiceServicer_to_server(self, server)

    def _fill_in_documents(self, request: gateway_pb2.GenerateRequest) -> None:
        """Keep documents that come with their digests, and set the texts of those that come without. Refuse a call that names others."""
        self.sent += any(part.digest and part.text for part in request.prompt)
        for part in request.prompt:
            if part.digest and part.text:
                self.documents[part.digest] = part.text
            elif part.digest and part.digest not in self.documents:
                self.missed += 1
                raise failed_precondition("DOCUMENTS_MISSING", "a document is not known here")
            elif part.digest:
                part.text = self.documents[part.digest]

    async def Generate(  # noqa: N802
        self,
        request: gateway_pb2.GenerateRequest,
        context: "grpc.aio.ServicerContext[gateway_pb2.GenerateRequest, AsyncIterator[gateway_pb2.GenerateResponse]]",
    ) -> AsyncIterator[gateway_pb2.GenerateResponse]:
        call = request.call_id
        self._fill_in_documents(request)
        asked = StepRequest(
            tenant=call.tenant,
            debate=call.debate_id,
            step=call.step,
            attempt=call.step_attempt,
            agent=request.agent,
            prompt="\n\n".join(part.text for part in request.prompt),
            parts=request.prompt,
            schema=request.schema.json_schema,
            timeout=request.timeout.ToMilliseconds() / 1000,
            remaining=context.time_remaining(),
            answer_start=request.answer_start,
            max_output_tokens=request.max_output_tokens,
            affordable=request.affordable_output_tokens,
            shape=request.schema.name,
        )
        self.metadata.append({key: str(value) for key, value in context.invocation_metadata() or ()})
        self.calls.append(asked)
        self._came.set()
        try:
            text = self.alter(asked, self._says(asked))
            yield gateway_pb2.GenerateResponse(
                route_attempt=gateway_pb2.RouteAttemptStarted(number=1, route="p/m")
            )
            size = -(-len(text) // self.deltas) if self.deltas else 0
            for offset in range(0, len(text), size) if size else ():
                piece = gateway_pb2.TextDelta(
                    route_attempt=1, offset=offset, text=text[offset : offset + size]
                )
                yield gateway_pb2.GenerateResponse(delta=piece)
            stop = self._stops[asked.debate, asked.step, asked.attempt]
            await self.wait_for_release(asked.step, stop)
            self.raise_fault(asked.step, asked.attempt)
            asked.end = "answered"
            written, truncated = self.used.get(asked.step, (None, False))
            usage = self.usage(asked.step)
            if written is not None:
                usage.output_tokens = written
            completed = gateway_pb2.GenerateCompleted(
                text=text,
                route=self.answering_route,
                model="m",
                usage=usage,
                truncated=truncated,
                held=self.holds_answers,
            )
            completed.tool_calls.extend(self.tool_calls.get(asked.agent.id, ()))
            completed.latency.FromMilliseconds(5)
            yield gateway_pb2.GenerateResponse(completed=completed)
        except ParleyError:
            asked.end = "failed"
            raise
        except (asyncio.CancelledError, GeneratorExit):
            if asked.end == "open":
                asked.end = "hung-up"
            raise

    async def CancelCall(  # noqa: N802
        self, request: gateway_pb2.CancelCallRequest, _context: object
    ) -> gateway_pb2.CancelCallResponse:
        call = request.call_id
        self.cancelled.append((call.step, call.step_attempt))
        if not self.deaf:
            self._stops.pop((call.debate_id, call.step, call.step_attempt), asyncio.Event()).set()
        used = self.stopped_usage(call.step) if self.stopped_usage is not None else None
        return gateway_pb2.CancelCallResponse(
            was_running=not self.keeps_stopped,
            usage=used,
            run=f"{call.step}/{self.steps().count(call.step)}" if used else "",
            answered=self.keeps_stopped,
        )

    async def ForgetAnswers(  # noqa: N802
        self, request: gateway_pb2.ForgetAnswersRequest, _context: object
    ) -> gateway_pb2.ForgetAnswersResponse:
        self.unkept.append([(each.step, each.step_attempt) for each in request.call_ids])
        if not self.forgets:
            raise unavailable("STORE_UNAVAILABLE", "the store is away")
        return gateway_pb2.ForgetAnswersResponse()

    async def ListAgents(  # noqa: N802
        self, _request: gateway_pb2.ListAgentsRequest, _context: object
    ) -> gateway_pb2.ListAgentsResponse:
        team = [agent.id for agent in self.agents if agent.id != self.default_judge]
        return gateway_pb2.ListAgentsResponse(
            agents=self.agents, default_team=team, default_judge=self.default_judge
        )

    async def ListRoutes(  # noqa: N802
        self, request: gateway_pb2.ListRoutesRequest, _context: object
    ) -> gateway_pb2.ListRoutesResponse:
        route = gateway_pb2.RouteStatus(
            name="p/m",
            provider="p",
            model="m",
            priced=not self.unpriced,
            demonstration=self.demonstration,
            context_tokens=self.contexts.get("p/m", 0),
        )
        others = [
            gateway_pb2.RouteStatus(
                name=name, priced=not self.unpriced, context_tokens=self.contexts.get(name, 0)
            )
            for name in request.names
            if name != route.name
        ]
        if self.own_server:
            others.append(
                gateway_pb2.RouteStatus(name="openai/x", provider="openai", model="x", host=self.own_server)
            )
        if self.prices is not None:
            for each in (route, *others):
                each.input_price_micros, each.output_price_micros = self.prices
        return gateway_pb2.ListRoutesResponse(
            routes=[route, *others],
            default_routes=self.default_routes,
            open_providers=["open", *(["openai"] if self.own_server else [])],
        )

    async def GetAgent(  # noqa: N802
        self, request: gateway_pb2.GetAgentRequest, _context: object
    ) -> gateway_pb2.GetAgentResponse:
        found = {agent.id: agent for agent in self.agents}.get(request.agent_id)
        if found is None:
            raise not_found("agent", request.agent_id)
        return gateway_pb2.GetAgentResponse(agent=found)

    async def WatchRoutes(  # noqa: N802
        self, _request: gateway_pb2.WatchRoutesRequest, _context: object
    ) -> AsyncIterator[gateway_pb2.WatchRoutesResponse]:
        for route in (await self.ListRoutes(gateway_pb2.ListRoutesRequest(), None)).routes:
            yield gateway_pb2.WatchRoutesResponse(route=route)
        await asyncio.Event().wait()

    def _says(self, asked: StepRequest) -> str:
        if not asked.schema:
            return self.text(asked.step, asked.agent.id)
        properties = json.loads(asked.schema)["properties"]
        if "issues" in properties:
            return self.critic(asked.step, asked.agent.id)
        if "requirements" in properties:
            listed = [{"text": text, "hard": hard} for text, hard in self.requirements]
            return json.dumps({"requirements": listed, "kind": self.question_kind})
        if asks_for_grounds(json.loads(asked.schema)):
            return self.grounds(asked.schema)
        if asks_for_groups(json.loads(asked.schema)):
            return self.grouping(asked)
        return self.judge(asked.schema)


def scripted_judge(
    answer: Callable[[StepRequest, Mapping[str, Any]], Mapping[str, Any] | None],
) -> ScriptedGateway:
    """Return a gateway whose structured answers a script gives, of the call and the properties of its schema; None: as usual."""
    gateway = ScriptedGateway()

    def judge(schema: str) -> str:
        said = answer(gateway.calls[-1], json.loads(schema)["properties"])
        return judgement(schema) if said is None else json.dumps(said)

    gateway.judge = judge
    return gateway
