"""An orchestrator that plays a script over real gRPC: for tests of the client and of the command.

It serves from threads, so that a test may run a command with an event loop of its own in the main thread.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message import Message
from grpc_status import rpc_status

from parley.runtime.errors import ParleyError, failed_precondition, not_found, to_status
from parley.v1 import event_pb2, memory_pb2, orchestrator_pb2_grpc, panel_pb2, ratings_pb2
from parley.v1 import orchestrator_pb2 as pb
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_FAILED,
    DEBATE_STATUS_PAUSED,
    DEBATE_STATUS_RUNNING,
    AnswerDetails,
    Debate,
    DebateEstimate,
    DebateFailure,
    DebateSpec,
    Feedback,
    Outcome,
    Reply,
    Work,
)
from parley.v1.memory_pb2 import CritiquePattern, LedgerPosition, Moment
from parley.v1.ratings_pb2 import MatchRecord, Rating, Relationship
from tests.support.made_events import made_event

DEBATE_ID = "deb-20260102-030405-abcdefgh"

_DOING = {"proposal": "proposes", "critique": "criticizes", "refinement": "refines"}

Script = Callable[["ScriptedDebate"], None]


class ScriptedDebate:
    """One debate: its events, its state, and the interventions that came in."""

    def __init__(self, spec: DebateSpec) -> None:
        self.state = Debate(id=DEBATE_ID, status=DEBATE_STATUS_RUNNING, spec=spec, current_round=1)
        self.events: list[event_pb2.Event] = []
        self.deltas: list[pb.StepDelta] = []
        self.ended = False
        self.changed = threading.Condition()

    def add(self, payload: Message | None, *, key: str = "", attempt: int = 0) -> None:
        """Append an event; without a payload, one of a kind that nobody knows yet."""
        with self.changed:
            sequence = len(self.events) + 1
            event = made_event(payload, key or f"key/{sequence}", sequence, attempt)
            event.time.GetCurrentTime()
            self.events.append(event)
            self.state.last_sequence = sequence
            self.changed.notify_all()

    def stream(self, key: str, text: str) -> None:
        """Text of a step in flight, for those who asked for it."""
        with self.changed:
            self.deltas.append(pb.StepDelta(key=key, step_attempt=1, route_attempt=1, text=text))
            self.changed.notify_all()

    def step(self, agent: str, activity: str, text: str, *, round: int = 1) -> None:  # noqa: A002
        """A step that begins and succeeds."""
        work = Work(activity=activity, doing=_DOING.get(activity, ""), agent_id=agent, round=round)
        key = f"round/{round}/{activity}/{agent}"
        usage = Usage(input_tokens=100, output_tokens=20, cost_micros=1500, requests=1)
        self.add(event_pb2.StepStarted(work=work, digest="x"), key=key, attempt=1)
        reply = Reply(text=text, usage=usage, route="r/m", model="m")
        reply.latency.FromMilliseconds(1200)
        self.add(event_pb2.StepSucceeded(work=work, digest="x", reply=reply), key=key, attempt=1)
        self.state.contributions.add(key=key, work=work, reply=reply, attempt=1)
        self.state.calls += 1
        self.state.usage.input_tokens += 100
        self.state.usage.output_tokens += 20

    def conclude(self, description: str = "Use a monolith.", *, closes: bool = True, **scores: float) -> None:
        """The answer is there, and the debate closes, unless something is still to follow."""
        outcome = Outcome(
            description=description,
            details=AnswerDetails(confidence=72),
            panel=panel_pb2.PanelOutcome(synthesized_by="judge"),
        )
        for agent, score in scores.items():
            outcome.scores.add(agent_id=agent, score=score)
        with self.changed:
            self.state.outcome.CopyFrom(outcome)
            self.state.answer = f"{description}\n\nConfidence: 72 of 100\n"
            self.state.status = DEBATE_STATUS_COMPLETED
        self.add(event_pb2.Concluded(outcome=outcome))
        if closes:
            self.close(event_pb2.Closed())

    def fail(self, reason: str, message: str, agent: str = "", phase: str = "") -> None:
        """The debate stops on a failure."""
        failure = DebateFailure(reason=reason, message=message, agent_id=agent, phase=phase)
        with self.changed:
            self.state.failure.CopyFrom(failure)
            self.state.status = DEBATE_STATUS_FAILED
        self.close(event_pb2.DebateFailed(failure=failure))

    def close(self, payload: Message) -> None:
        """Append an event after which streams end."""
        with self.changed:
            self.ended = True
            self.add(payload)


@dataclass
class ScriptedOrchestrator:
    """Plays `script` for a debate that is made, and `after_resume` for one that is resumed."""

    script: Script = lambda debate: debate.conclude()
    after_resume: Script = lambda debate: debate.conclude()
    refusal: Callable[[pb.CreateDebateRequest], ParleyError | None] = lambda request: None
    intervention_refusal: Callable[[pb.InterveneRequest], ParleyError | None] = lambda request: None
    estimate: DebateEstimate | None = None
    report: str = "# Report\n"
    decision: pb.GetDecisionResponse | None = None
    address: str = ""
    older_ids: tuple[str, ...] = ()
    """Listed after the debate, and not to be had."""
    created: list[pb.CreateDebateRequest] = field(default_factory=list)
    interventions: list[pb.InterveneRequest] = field(default_factory=list)
    feedback: list[pb.SubmitFeedbackRequest] = field(default_factory=list)
    feedback_refusal: Callable[[pb.SubmitFeedbackRequest], ParleyError | None] = lambda request: None
    deleted: list[pb.DeleteDebateRequest] = field(default_factory=list)
    memories: dict[str, memory_pb2.GetRecordResponse] = field(default_factory=dict)
    """What is remembered, by the id of the debate; a search finds all of it."""
    memory_refusals: list[ParleyError] = field(default_factory=list)
    """What the next searches fail with, one after the other."""
    agents: pb.ListAvailableAgentsResponse = field(default_factory=pb.ListAvailableAgentsResponse)
    ratings: Sequence[Rating] = ()
    """In every domain."""
    matches: Sequence[MatchRecord] = ()
    """Of every agent and domain."""
    relationships: Sequence[Relationship] = ()
    """Of every agent, two on a page."""
    patterns: Sequence[CritiquePattern] = ()
    """What debates raise, two on a page."""
    moments: Sequence[Moment] = ()
    """What stands out in debates, two on a page."""
    positions: Sequence[LedgerPosition] = ()
    """Where agents stood, two on a page."""
    is_rated: bool = True
    """Whether the ratings have what is said at once."""
    watched_after: list[int] = field(default_factory=list)
    read_after: list[int] = field(default_factory=list)
    tenants: set[str] = field(default_factory=set)
    stream_breaks: list[int] = field(default_factory=list)
    """After how many messages each stream breaks, in turn; streams after that are whole."""
    debate: ScriptedDebate | None = None
    pausing: threading.Event | None = None
    """Before it is set, no pause is answered. None: it is at once."""

    def CreateDebate(self, request: pb.CreateDebateRequest, context: Any) -> pb.CreateDebateResponse:  # noqa: N802
        self.tenants.update(
            str(value) for key, value in context.invocation_metadata() if key == "parley-tenant"
        )
        self.created.append(request)
        refusal = self.refusal(request)
        if refusal is not None:
            refuse(context, refusal)
        self.debate = ScriptedDebate(request.spec)
        self.debate.add(event_pb2.DebateCreated(spec=request.spec, request_id=request.request_id))
        self.debate.add(event_pb2.Claimed(owner="scripted"))
        threading.Thread(target=self.script, args=(self.debate,), daemon=True).start()
        return pb.CreateDebateResponse(debate_id=DEBATE_ID)

    def EstimateDebate(self, request: pb.CreateDebateRequest, context: Any) -> pb.EstimateDebateResponse:  # noqa: N802
        return pb.EstimateDebateResponse(estimate=self.estimate)

    def GetDebate(self, request: pb.GetDebateRequest, context: Any) -> pb.GetDebateResponse:  # noqa: N802
        return pb.GetDebateResponse(debate=self._found(request.debate_id, context).state)

    def ListDebates(self, request: pb.ListDebatesRequest, context: Any) -> pb.ListDebatesResponse:  # noqa: N802
        page = int(request.page_token or 0)
        debates = [
            pb.DebateSummary(
                id=f"deb-{page}-{number}", status=DEBATE_STATUS_COMPLETED, question=f"Q{page}{number}"
            )
            for number in range(2)
        ]
        if page == 2 and self.debate is not None:
            labels = self.debate.state.spec.labels
            debates += [pb.DebateSummary(id=each, labels=labels) for each in (DEBATE_ID, *self.older_ids)]
        debates = [each for each in debates if each.format.startswith(request.format)]
        debates = [each for each in debates if request.labels.items() <= each.labels.items()]
        return pb.ListDebatesResponse(debates=debates, next_page_token=str(page + 1) if page < 2 else "")

    def WatchDebate(self, request: pb.WatchDebateRequest, context: Any) -> Iterator[pb.WatchDebateResponse]:  # noqa: N802
        debate = self._found(request.debate_id, context)
        after = request.after_sequence
        self.watched_after.append(after)
        breaks_after = self.stream_breaks.pop(0) if self.stream_breaks else None
        sent = told = 0
        while context.is_active():
            with debate.changed:
                new = debate.events[after:]
                text = debate.deltas[told:] if request.text_deltas else []
                if not (new or text or debate.ended):
                    debate.changed.wait(0.1)
                    continue
                finished = debate.ended and not new
            for event in new:
                if sent == breaks_after:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "broken by the script")
                yield pb.WatchDebateResponse(event=event)
                sent, after = sent + 1, event.sequence
            for delta in text:
                yield pb.WatchDebateResponse(delta=delta)
            told += len(text)
            if finished:
                return

    def Intervene(self, request: pb.InterveneRequest, context: Any) -> pb.InterveneResponse:  # noqa: N802
        debate = self._found(request.debate_id, context)
        self.interventions.append(request)
        refusal = self.intervention_refusal(request)
        if refusal is not None:
            refuse(context, refusal)
        intervention = request.intervention
        debate.add(event_pb2.Intervened(request_id=request.request_id, intervention=intervention))
        sequence = len(debate.events)
        if intervention.HasField("pause"):
            if self.pausing is not None:
                self.pausing.wait(5)
            debate.state.status = DEBATE_STATUS_PAUSED
            debate.add(event_pb2.Paused())
        elif intervention.HasField("resume"):
            debate.state.status = DEBATE_STATUS_RUNNING
            debate.ended = False
            debate.add(event_pb2.Resumed())
            threading.Thread(target=self.after_resume, args=(debate,), daemon=True).start()
        return pb.InterveneResponse(sequence=sequence)

    def SubmitFeedback(self, request: pb.SubmitFeedbackRequest, context: Any) -> pb.SubmitFeedbackResponse:  # noqa: N802
        self._found(request.debate_id, context)
        self.feedback.append(request)
        refusal = self.feedback_refusal(request)
        if refusal is not None:
            refuse(context, refusal)
        said = Feedback(
            value=request.value,
            message=request.message,
            number=1,
            agent_ids=["ada", "bo"],
            rated=self.is_rated,
        )
        return pb.SubmitFeedbackResponse(feedback=said)

    def ReadLog(self, request: pb.ReadLogRequest, context: Any) -> Iterator[pb.ReadLogResponse]:  # noqa: N802
        debate = self._found(request.debate_id, context)
        self.read_after.append(request.after_sequence)
        breaks_after = self.stream_breaks.pop(0) if self.stream_breaks else None
        stored = [event.SerializeToString() for event in debate.events[request.after_sequence :]]
        for sent, first in enumerate(range(0, len(stored), 2)):
            if sent == breaks_after:
                context.abort(grpc.StatusCode.UNAVAILABLE, "broken by the script")
            yield pb.ReadLogResponse(events=stored[first : first + 2])

    def GetAnswer(self, request: pb.GetAnswerRequest, context: Any) -> pb.GetAnswerResponse:  # noqa: N802
        state = self._found(request.debate_id, context).state
        return pb.GetAnswerResponse(markdown=state.answer, outcome=state.outcome)

    def ListContributions(  # noqa: N802
        self, request: pb.ListContributionsRequest, context: Any
    ) -> pb.ListContributionsResponse:
        state = self._found(request.debate_id, context).state
        return pb.ListContributionsResponse(contributions=state.contributions, failures=state.failures)

    def StreamReport(  # noqa: N802
        self, request: pb.StreamReportRequest, context: Any
    ) -> Iterator[pb.StreamReportResponse]:
        self._found(request.debate_id, context)
        for line in self.report.splitlines(keepends=True):
            yield pb.StreamReportResponse(markdown=line)

    def GetDecision(self, request: pb.GetDecisionRequest, context: Any) -> pb.GetDecisionResponse:  # noqa: N802
        self._found(request.debate_id, context)
        if self.decision is None:
            refuse(context, failed_precondition("NO_DECISION", "it is of another format"))
        assert self.decision is not None
        return self.decision

    def CreateKey(self, request: Any, context: Any) -> Any:  # noqa: N802
        refuse(context, failed_precondition("KEYS_NOT_USED", "nobody is asked for a key here"))

    ListKeys = RevokeKey = CreateKey

    def DeleteDebate(self, request: pb.DeleteDebateRequest, context: Any) -> pb.DeleteDebateResponse:  # noqa: N802
        self._found(request.debate_id, context)
        self.deleted.append(request)
        return pb.DeleteDebateResponse(finished=self.is_rated)

    def SearchMemory(  # noqa: N802
        self, request: pb.SearchMemoryRequest, context: Any
    ) -> Iterator[pb.SearchMemoryResponse]:
        if self.memory_refusals:
            refuse(context, self.memory_refusals.pop(0))
        found = [each.debate for each in self.memories.values()]
        found = [each for each in found if request.domain in {"", each.domain}]
        yield from (pb.SearchMemoryResponse(debate=each) for each in found[: request.limit])

    def GetMemory(self, request: memory_pb2.GetRecordRequest, context: Any) -> memory_pb2.GetRecordResponse:  # noqa: N802
        if request.debate_id not in self.memories:
            refuse(context, not_found("remembered debate", request.debate_id))
        return self.memories[request.debate_id]

    def ForgetMemory(  # noqa: N802
        self, request: memory_pb2.ForgetDebateRequest, context: Any
    ) -> memory_pb2.ForgetDebateResponse:
        return memory_pb2.ForgetDebateResponse(existed=self.memories.pop(request.debate_id, None) is not None)

    def ListMemoryPatterns(  # noqa: N802
        self, request: memory_pb2.ListPatternsRequest, context: Any
    ) -> memory_pb2.ListPatternsResponse:
        first = int(request.page_token or 0)
        end = first + 2
        return memory_pb2.ListPatternsResponse(
            patterns=self.patterns[first:end],
            next_page_token=str(end) if end < len(self.patterns) else "",
        )

    def ListMemoryPositions(  # noqa: N802
        self, request: memory_pb2.ListPositionsRequest, context: Any
    ) -> memory_pb2.ListPositionsResponse:
        found = [each for each in self.positions if request.agent_id in ("", each.agent_id)]
        found = [each for each in found if each.changes or not request.only_flips]
        first = int(request.page_token or 0)
        end = first + 2
        return memory_pb2.ListPositionsResponse(
            positions=found[first:end], next_page_token=str(end) if end < len(found) else ""
        )

    def ListMemoryMoments(  # noqa: N802
        self, request: memory_pb2.ListMomentsRequest, context: Any
    ) -> memory_pb2.ListMomentsResponse:
        found = [each for each in self.moments if request.kind in {0, each.kind}]
        first = int(request.page_token or 0)
        end = first + 2
        return memory_pb2.ListMomentsResponse(
            moments=found[first:end], next_page_token=str(end) if end < len(found) else ""
        )

    def ListAvailableAgents(  # noqa: N802
        self, request: pb.ListAvailableAgentsRequest, context: Any
    ) -> pb.ListAvailableAgentsResponse:
        return self.agents

    def ListAgentRatings(  # noqa: N802
        self, request: ratings_pb2.ListRatingsRequest, context: Any
    ) -> ratings_pb2.ListRatingsResponse:
        return ratings_pb2.ListRatingsResponse(ratings=self.ratings)

    def ListAgentMatches(  # noqa: N802
        self, request: ratings_pb2.ListMatchesRequest, context: Any
    ) -> ratings_pb2.ListMatchesResponse:
        return ratings_pb2.ListMatchesResponse(matches=self.matches)

    def ListAgentRelationships(  # noqa: N802
        self, request: ratings_pb2.ListRelationshipsRequest, context: Any
    ) -> ratings_pb2.ListRelationshipsResponse:
        first = int(request.page_token or 0)
        end = first + 2
        return ratings_pb2.ListRelationshipsResponse(
            relationships=self.relationships[first:end],
            next_page_token=str(end) if end < len(self.relationships) else "",
        )

    def _found(self, debate_id: str, context: Any) -> ScriptedDebate:
        if self.debate is None or debate_id != DEBATE_ID:
            refuse(context, not_found("debate", debate_id))
        assert self.debate is not None
        return self.debate


class _Servicer:
    """All RPCs of the contract: those of the script, and the generated ones, which answer UNIMPLEMENTED, for the others."""

    def __init__(self, orchestrator: ScriptedOrchestrator) -> None:
        generated: Any = orchestrator_pb2_grpc.OrchestratorServiceServicer
        self._orchestrator, self._unscripted = orchestrator, generated()

    def __getattr__(self, rpc: str) -> Any:
        return getattr(self._orchestrator, rpc, None) or getattr(self._unscripted, rpc)


def refuse(context: Any, error: ParleyError) -> None:
    """End a call with an error."""
    context.abort_with_status(rpc_status.to_status(to_status(error)))


@contextmanager
def scripted(
    orchestrator: ScriptedOrchestrator, *others: Callable[[grpc.Server], None]
) -> Iterator[ScriptedOrchestrator]:
    """Serve it on a free loopback port, and whatever else `others` add there."""
    server = grpc.server(ThreadPoolExecutor(max_workers=16))
    # The generated types know only asynchronous servicers; what they generate serves threads as well.
    register: Any = orchestrator_pb2_grpc.add_OrchestratorServiceServicer_to_server
    register(_Servicer(orchestrator), server)
    for add in others:
        add(server)
    orchestrator.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield orchestrator
    finally:
        server.stop(None).wait(5)
