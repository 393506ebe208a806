"""An orchestrator that plays a script over real gRPC: for tests of the client and of the command.

It serves from threads, so that a test may run a command with an event loop of its own in the main thread.
"""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from grpc_status import rpc_status

from parley.runtime.errors import ParleyError, not_found, to_status
from parley.v1 import orchestrator_pb2 as pb
from parley.v1 import orchestrator_pb2_grpc

__all__ = ["DEBATE_ID", "ScriptedDebate", "ScriptedOrchestrator", "scripted"]

DEBATE_ID = "deb-20260102-030405-abcdefgh"

Payload = dict[str, Any]
Script = Callable[["ScriptedDebate"], None]


class ScriptedDebate:
    """One debate: its events, its state, and the wishes that came in."""

    def __init__(self, spec: pb.DebateSpec) -> None:
        self.state = pb.Debate(id=DEBATE_ID, status=pb.DEBATE_STATUS_RUNNING, spec=spec, current_round=1)
        self.events: list[pb.Event] = []
        self.ended = False
        self.changed = threading.Condition()

    def add(self, kind: str, payload: Payload | None = None, *, key: str = "", attempt: int = 0) -> None:
        """Append an event."""
        with self.changed:
            event = pb.Event(
                sequence=len(self.events) + 1,
                kind=kind,
                key=key or f"{kind}/{len(self.events) + 1}",
                attempt=attempt,
                payload_json=json.dumps(payload or {}),
            )
            event.time.GetCurrentTime()
            self.events.append(event)
            self.state.last_sequence = event.sequence
            self.changed.notify_all()

    def step(self, agent: str, activity: str, text: str, *, target: str = "", round: int = 1) -> None:  # noqa: A002
        """A step that begins and succeeds."""
        work = {"activity": activity, "agent": agent, "round": round, "target": target}
        key = f"round/{round}/{activity}/{agent}" + (f"/of/{target}" if target else "")
        usage = {"input_tokens": 100, "output_tokens": 20, "cost_micros": 1500, "attempts": 1}
        self.add("step_started", {"work": work, "digest": "x"}, key=key, attempt=1)
        reply = {"text": text, "usage": usage, "latency_ms": 1200, "route": "r/m", "model": "m"}
        self.add("step_succeeded", {"work": work, "digest": "x", "reply": reply}, key=key, attempt=1)
        kind = pb.ContributionKind.Value(f"CONTRIBUTION_KIND_{activity.upper()}")
        said = self.state.contributions.add(
            key=key, agent_id=agent, kind=kind, round=round, target_agent_id=target, text=text
        )
        said.usage.input_tokens, said.usage.output_tokens = 100, 20
        said.latency.FromMilliseconds(1200)
        self.state.calls += 1
        self.state.usage.input_tokens += 100
        self.state.usage.output_tokens += 20

    def conclude(self, description: str = "Use a monolith.") -> None:
        """The answer is there, and the debate closes."""
        with self.changed:
            solution = self.state.solution
            solution.description, solution.confidence, solution.synthesized_by = description, 72, "judge"
            self.state.status = pb.DEBATE_STATUS_COMPLETED
        self.add("concluded", {"status": "completed", "solution": {"description": description}})
        self.close("closed")

    def fail(self, reason: str, message: str, agent: str = "", phase: str = "") -> None:
        """The debate stops on a failure."""
        with self.changed:
            failure = self.state.failure
            failure.reason, failure.message, failure.agent_id, failure.phase = reason, message, agent, phase
            self.state.status = pb.DEBATE_STATUS_FAILED
        self.close("debate_failed", {"reason": reason, "message": message, "agent": agent, "phase": phase})

    def close(self, kind: str, payload: Payload | None = None) -> None:
        """Append an event after which streams end."""
        with self.changed:
            self.ended = True
            self.add(kind, payload)


@dataclass
class ScriptedOrchestrator:
    """Plays `script` for a debate that is made, and `after_resume` for one that is resumed."""

    script: Script = lambda debate: debate.conclude()
    after_resume: Script = lambda debate: debate.conclude()
    refusal: Callable[[pb.CreateDebateRequest], ParleyError | None] = lambda request: None
    wish_refusal: Callable[[pb.InterveneRequest], ParleyError | None] = lambda request: None
    report: str = "# Report\n"
    address: str = ""
    created: list[pb.CreateDebateRequest] = field(default_factory=list)
    wishes: list[pb.InterveneRequest] = field(default_factory=list)
    watched_after: list[int] = field(default_factory=list)
    tenants: set[str] = field(default_factory=set)
    stream_breaks: list[int] = field(default_factory=list)
    """After how many messages each stream breaks, in turn; streams after that are whole."""
    debate: ScriptedDebate | None = None

    def CreateDebate(self, request: pb.CreateDebateRequest, context: Any) -> pb.CreateDebateResponse:  # noqa: N802
        self.tenants.update(
            str(value) for key, value in context.invocation_metadata() if key == "parley-tenant"
        )
        self.created.append(request)
        refusal = self.refusal(request)
        if refusal is not None:
            _abort(context, refusal)
        self.debate = ScriptedDebate(request.spec)
        self.debate.add("debate_created", {"spec": {}, "request_id": request.request_id})
        self.debate.add("claimed", {"owner": "scripted"})
        threading.Thread(target=self.script, args=(self.debate,), daemon=True).start()
        return pb.CreateDebateResponse(debate_id=DEBATE_ID)

    def GetDebate(self, request: pb.GetDebateRequest, context: Any) -> pb.GetDebateResponse:  # noqa: N802
        return pb.GetDebateResponse(debate=self._found(request.debate_id, context).state)

    def ListDebates(self, request: pb.ListDebatesRequest, context: Any) -> pb.ListDebatesResponse:  # noqa: N802
        page = int(request.page_token or 0)
        debates = [
            pb.DebateSummary(
                id=f"deb-{page}-{number}", status=pb.DEBATE_STATUS_COMPLETED, question=f"Q{page}{number}"
            )
            for number in range(2)
        ]
        return pb.ListDebatesResponse(debates=debates, next_page_token=str(page + 1) if page < 2 else "")

    def WatchDebate(self, request: pb.WatchDebateRequest, context: Any) -> Iterator[pb.WatchDebateResponse]:  # noqa: N802
        debate = self._found(request.debate_id, context)
        after = request.after_sequence
        self.watched_after.append(after)
        breaks_after = self.stream_breaks.pop(0) if self.stream_breaks else None
        sent = 0
        while context.is_active():
            with debate.changed:
                new = debate.events[after:]
                if not (new or debate.ended):
                    debate.changed.wait(0.1)
                    continue
                finished = debate.ended and not new
            for event in new:
                if sent == breaks_after:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "broken by the script")
                yield pb.WatchDebateResponse(event=event)
                sent, after = sent + 1, event.sequence
            if finished:
                return

    def Intervene(self, request: pb.InterveneRequest, context: Any) -> pb.InterveneResponse:  # noqa: N802
        debate = self._found(request.debate_id, context)
        self.wishes.append(request)
        refusal = self.wish_refusal(request)
        if refusal is not None:
            _abort(context, refusal)
        wish = str(request.WhichOneof("wish"))
        debate.add("intervened", {"request_id": request.request_id, "wish": wish})
        sequence = len(debate.events)
        if wish == "pause":
            debate.state.status = pb.DEBATE_STATUS_PAUSED
            debate.add("paused")
        elif wish == "resume":
            debate.state.status = pb.DEBATE_STATUS_RUNNING
            debate.ended = False
            debate.add("resumed")
            threading.Thread(target=self.after_resume, args=(debate,), daemon=True).start()
        return pb.InterveneResponse(sequence=sequence)

    def GetReport(self, request: pb.GetReportRequest, context: Any) -> pb.GetReportResponse:  # noqa: N802
        self._found(request.debate_id, context)
        return pb.GetReportResponse(markdown=self.report)

    def _found(self, debate_id: str, context: Any) -> ScriptedDebate:
        if self.debate is None or debate_id != DEBATE_ID:
            _abort(context, not_found("debate", debate_id))
        assert self.debate is not None
        return self.debate


def _abort(context: Any, error: ParleyError) -> None:
    context.abort_with_status(rpc_status.to_status(to_status(error)))


@contextmanager
def scripted(orchestrator: ScriptedOrchestrator) -> Iterator[ScriptedOrchestrator]:
    """Serve it on a free loopback port."""
    server = grpc.server(ThreadPoolExecutor(max_workers=16))
    # The generated types know only asynchronous servicers; what they generate serves threads as well.
    register: Any = orchestrator_pb2_grpc.add_OrchestratorServiceServicer_to_server
    register(orchestrator, server)
    orchestrator.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield orchestrator
    finally:
        server.stop(None).wait(5)
