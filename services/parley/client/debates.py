"""The client of the orchestrator."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import grpc

from parley.client.connection import Connection
from parley.client.watching import LogStream, Stream, TextPiece, follow, stored_events
from parley.v1 import debate_pb2, event_pb2, orchestrator_pb2, orchestrator_pb2_grpc

__all__ = ["ParleyClient"]

_PAGE: Final = 200


class ParleyClient(Connection):
    """Debates of one tenant at an orchestrator; use it as `async with`.

    Every call may be repeated without harm, and is for up to `patience` seconds where the connection breaks or a
    replica stops. Failures are ParleyError.
    """

    def _opened(self, connected: grpc.aio.Channel) -> None:
        self._stub = orchestrator_pb2_grpc.OrchestratorServiceStub(connected)

    async def create_debate(self, spec: debate_pb2.DebateSpec, request_id: str | None = None) -> str:
        """Start a debate and return its id; the same `request_id` with the same spec is the same debate."""
        request = orchestrator_pb2.CreateDebateRequest(request_id=request_id or _request_id(), spec=spec)
        return (await self._call(self._stub.CreateDebate, request)).debate_id

    async def get(self, debate_id: str) -> debate_pb2.Debate:
        """Return the debate as it stands."""
        request = orchestrator_pb2.GetDebateRequest(debate_id=debate_id)
        return (await self._call(self._stub.GetDebate, request)).debate

    async def list(
        self, statuses: Sequence[debate_pb2.DebateStatus.ValueType] = (), *, page_size: int = _PAGE
    ) -> AsyncIterator[orchestrator_pb2.DebateSummary]:
        """Yield debates, newest first, page by page as they are asked for; those in `statuses`, or all."""
        token = ""
        while True:
            request = orchestrator_pb2.ListDebatesRequest(
                page_size=page_size, page_token=token, statuses=tuple(statuses)
            )
            page = await self._call(self._stub.ListDebates, request)
            for debate in page.debates:
                yield debate
            token = page.next_page_token
            if not token:
                return

    def watch(
        self, debate_id: str, after: int = 0, *, text: bool = False
    ) -> AsyncIterator[event_pb2.Event | TextPiece]:
        """Yield the events after a sequence, each once and in order, until the debate closes or fails.

        Broken streams are taken up again where they broke. With `text`, pieces of text of calls in flight come too.
        """

        def opened(last: int) -> Stream:
            request = orchestrator_pb2.WatchDebateRequest(
                debate_id=debate_id, after_sequence=last, text_deltas=text
            )
            return self._stub.WatchDebate(request, metadata=self._metadata)

        return follow(opened, after, self._patience)

    def read_log(self, debate_id: str, after: int = 0) -> AsyncIterator[bytes]:
        """Yield the stored bytes of the events after a sequence, in order, up to the last one recorded by then.

        Each is a serialized `Event`, unchanged: whoever has these bytes can check the log by their hashes.
        """

        def opened(last: int) -> LogStream:
            request = orchestrator_pb2.ReadLogRequest(debate_id=debate_id, after_sequence=last)
            return self._stub.ReadLog(request, metadata=self._metadata)

        return stored_events(opened, after, self._patience)

    async def report(self, debate_id: str) -> str:
        """Return the debate's report as Markdown."""
        request = orchestrator_pb2.GetReportRequest(debate_id=debate_id)
        return (await self._call(self._stub.GetReport, request)).markdown

    async def decision(self, debate_id: str) -> orchestrator_pb2.GetDecisionResponse:
        """Return the decision document of a completed moderated debate, with a name for its file."""
        request = orchestrator_pb2.GetDecisionRequest(debate_id=debate_id)
        return await self._call(self._stub.GetDecision, request)

    async def submit_feedback(
        self, debate_id: str, value: int, message: str = "", *, request_id: str | None = None
    ) -> debate_pb2.Feedback:
        """Say of a completed debate that it was good (1) or not (-1); return what is recorded.

        The latest word counts. The same `request_id` again changes nothing.
        """
        request = orchestrator_pb2.SubmitFeedbackRequest(
            request_id=request_id or _request_id(), debate_id=debate_id, value=value, message=message
        )
        return (await self._call(self._stub.SubmitFeedback, request)).feedback

    async def delete(self, debate_id: str, *, ratings: bool = False) -> bool:
        """Delete a debate that does not run, for good; with `ratings`, its match too.

        Return whether everything is removed already; else the rest follows by itself.
        """
        request = orchestrator_pb2.DeleteDebateRequest(debate_id=debate_id, ratings=ratings)
        return (await self._call(self._stub.DeleteDebate, request)).finished

    async def cancel(self, debate_id: str, reason: str = "", *, request_id: str | None = None) -> int:
        """End the debate without an answer; return the sequence of the event that records the intervention.

        So do the others below. The same `request_id` again changes nothing.
        """
        cancel = debate_pb2.Cancel(reason=reason)
        return await self._intervene(debate_id, request_id, debate_pb2.Intervention(cancel=cancel))

    async def pause(self, debate_id: str, *, stop_calls: bool = False, request_id: str | None = None) -> int:
        """Make no new call until resumed; with `stop_calls`, calls in flight are stopped too."""
        pause = debate_pb2.Pause(stop_calls=stop_calls)
        return await self._intervene(debate_id, request_id, debate_pb2.Intervention(pause=pause))

    async def resume(self, debate_id: str, *, request_id: str | None = None) -> int:
        """Go on after a pause or a failure."""
        intervention = debate_pb2.Intervention(resume=debate_pb2.Resume())
        return await self._intervene(debate_id, request_id, intervention)

    async def end_rounds(self, debate_id: str, *, checkpoint: str = "", request_id: str | None = None) -> int:
        """Go to the answer after the present round.

        This and the others that take a `checkpoint` end the one with that key; where it is not open, nothing is recorded,
        and they fail with CHECKPOINT_CLOSED. Without, they end whichever is open, if it is of a kind that they end.
        """
        intervention = debate_pb2.Intervention(end=debate_pb2.EndRounds(), checkpoint=checkpoint)
        return await self._intervene(debate_id, request_id, intervention)

    async def guide(
        self, debate_id: str, text: str, *, checkpoint: str = "", request_id: str | None = None
    ) -> int:
        """Tell the agents something from the next round on."""
        intervention = debate_pb2.Intervention(guide=debate_pb2.Guide(text=text), checkpoint=checkpoint)
        return await self._intervene(debate_id, request_id, intervention)

    async def mute(self, debate_id: str, agent_id: str, *, request_id: str | None = None) -> int:
        """Leave an agent out from the next round on."""
        mute = debate_pb2.Mute(agent_id=agent_id)
        return await self._intervene(debate_id, request_id, debate_pb2.Intervention(mute=mute))

    async def unmute(self, debate_id: str, agent_id: str, *, request_id: str | None = None) -> int:
        """Let an agent that was muted take part again, from the next round on."""
        unmute = debate_pb2.Unmute(agent_id=agent_id)
        return await self._intervene(debate_id, request_id, debate_pb2.Intervention(unmute=unmute))

    async def go_on(self, debate_id: str, *, checkpoint: str = "", request_id: str | None = None) -> int:
        """Go on from the open checkpoint, unless it asks for approval.

        Where none is open that they end, this and the two below are refused with NO_CHECKPOINT.
        """
        intervention = debate_pb2.Intervention(continue_debate=debate_pb2.Continue(), checkpoint=checkpoint)
        return await self._intervene(debate_id, request_id, intervention)

    async def answer(
        self,
        debate_id: str,
        text: str = "",
        *,
        answers: Mapping[str, str] | None = None,
        enough: bool = False,
        checkpoint: str = "",
        request_id: str | None = None,
    ) -> int:
        """Answer the questions of the open checkpoint: as a whole, one by one by their ids, or both.

        With `enough`, nothing more is asked before the debate begins.
        """
        answer = debate_pb2.Answer(text=text, enough=enough)
        for question, said in (answers or {}).items():
            answer.answers.add(question_id=question, text=said)
        intervention = debate_pb2.Intervention(answer=answer, checkpoint=checkpoint)
        return await self._intervene(debate_id, request_id, intervention)

    async def approve(
        self,
        debate_id: str,
        text: str = "",
        *,
        approved: bool = True,
        checkpoint: str = "",
        request_id: str | None = None,
    ) -> int:
        """Approve what the open checkpoint shows, or not."""
        approve = debate_pb2.Approve(approved=approved, text=text)
        intervention = debate_pb2.Intervention(approve=approve, checkpoint=checkpoint)
        return await self._intervene(debate_id, request_id, intervention)

    async def _intervene(
        self, debate_id: str, request_id: str | None, intervention: debate_pb2.Intervention
    ) -> int:
        request = orchestrator_pb2.InterveneRequest(
            request_id=request_id or _request_id(), debate_id=debate_id, intervention=intervention
        )
        return (await self._call(self._stub.Intervene, request)).sequence


def _request_id() -> str:
    return uuid.uuid4().hex
