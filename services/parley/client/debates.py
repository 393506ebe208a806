"""The client of the orchestrator."""

import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import grpc

from parley.client.connection import Connection
from parley.client.events import DebateEvent
from parley.client.watching import Stream, TextPiece, follow
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc

__all__ = ["ParleyClient"]

_PAGE: Final = 200


class ParleyClient(Connection):
    """Debates of one tenant at an orchestrator; use it as `async with`.

    Every call may be repeated without harm, and is for up to `patience` seconds where the connection breaks or a
    replica stops. Failures are ParleyError.
    """

    def _opened(self, connected: grpc.aio.Channel) -> None:
        self._stub = orchestrator_pb2_grpc.OrchestratorServiceStub(connected)

    async def create_debate(self, spec: orchestrator_pb2.DebateSpec, request_id: str | None = None) -> str:
        """Starts a debate and returns its id; the same `request_id` with the same spec is the same debate."""
        request = orchestrator_pb2.CreateDebateRequest(request_id=request_id or _request_id(), spec=spec)
        return (await self._call(self._stub.CreateDebate, request)).debate_id

    async def get(self, debate_id: str) -> orchestrator_pb2.Debate:
        """The debate as it stands."""
        request = orchestrator_pb2.GetDebateRequest(debate_id=debate_id)
        return (await self._call(self._stub.GetDebate, request)).debate

    async def list(
        self, statuses: Sequence[orchestrator_pb2.DebateStatus.ValueType] = (), *, page_size: int = _PAGE
    ) -> AsyncIterator[orchestrator_pb2.DebateSummary]:
        """Yields debates, newest first, page by page as they are asked for; those in `statuses`, or all."""
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
    ) -> AsyncIterator[DebateEvent | TextPiece]:
        """Yields the events after a sequence, each once and in order, until the debate closes or fails.

        Broken streams are taken up again where they broke. With `text`, pieces of text of calls in flight come too.
        """

        def opened(last: int) -> Stream:
            request = orchestrator_pb2.WatchDebateRequest(
                debate_id=debate_id, after_sequence=last, text_deltas=text
            )
            return self._stub.WatchDebate(request, metadata=self._metadata)

        return follow(opened, after, self._patience)

    async def report(self, debate_id: str) -> str:
        """The debate's report as Markdown."""
        request = orchestrator_pb2.GetReportRequest(debate_id=debate_id)
        return (await self._call(self._stub.GetReport, request)).markdown

    async def cancel(self, debate_id: str, reason: str = "", *, request_id: str | None = None) -> int:
        """Ends the debate without an answer; returns the sequence of the event that records the wish.

        So do the others below. The same `request_id` again changes nothing.
        """
        return await self._intervene(debate_id, request_id, cancel=orchestrator_pb2.Cancel(reason=reason))

    async def pause(self, debate_id: str, *, stop_calls: bool = False, request_id: str | None = None) -> int:
        """Makes no new call until resumed; with `stop_calls`, calls in flight are stopped too."""
        return await self._intervene(
            debate_id, request_id, pause=orchestrator_pb2.Pause(stop_calls=stop_calls)
        )

    async def resume(self, debate_id: str, *, request_id: str | None = None) -> int:
        """Goes on after a pause or a failure."""
        return await self._intervene(debate_id, request_id, resume=orchestrator_pb2.Resume())

    async def end_rounds(self, debate_id: str, *, checkpoint: str = "", request_id: str | None = None) -> int:
        """Goes to the answer after the present round.

        This and the others that take a `checkpoint` end the one with that key; where it is not open, nothing is recorded,
        and they fail with CHECKPOINT_CLOSED. Without, they end whichever is open.
        """
        return await self._intervene(
            debate_id, request_id, checkpoint=checkpoint, end=orchestrator_pb2.EndRounds()
        )

    async def guide(
        self, debate_id: str, text: str, *, checkpoint: str = "", request_id: str | None = None
    ) -> int:
        """Tells the agents something from the next round on."""
        wish = orchestrator_pb2.Guide(text=text)
        return await self._intervene(debate_id, request_id, checkpoint=checkpoint, guide=wish)

    async def mute(self, debate_id: str, agent_id: str, *, request_id: str | None = None) -> int:
        """Leaves an agent out from the next round on."""
        return await self._intervene(debate_id, request_id, mute=orchestrator_pb2.Mute(agent_id=agent_id))

    async def go_on(self, debate_id: str, *, checkpoint: str = "", request_id: str | None = None) -> int:
        """Goes on from the open checkpoint; where none is open, it and the two below are refused with NO_CHECKPOINT."""
        wish = orchestrator_pb2.Continue()
        return await self._intervene(debate_id, request_id, checkpoint=checkpoint, continue_debate=wish)

    async def answer(
        self, debate_id: str, text: str, *, checkpoint: str = "", request_id: str | None = None
    ) -> int:
        """Answers the open checkpoint."""
        wish = orchestrator_pb2.Answer(text=text)
        return await self._intervene(debate_id, request_id, checkpoint=checkpoint, answer=wish)

    async def approve(
        self,
        debate_id: str,
        text: str = "",
        *,
        approved: bool = True,
        checkpoint: str = "",
        request_id: str | None = None,
    ) -> int:
        """Approves what the open checkpoint shows, or not."""
        wish = orchestrator_pb2.Approve(approved=approved, text=text)
        return await self._intervene(debate_id, request_id, checkpoint=checkpoint, approve=wish)

    async def _intervene(self, debate_id: str, request_id: str | None, **wish: Any) -> int:
        request = orchestrator_pb2.InterveneRequest(
            request_id=request_id or _request_id(), debate_id=debate_id, **wish
        )
        return (await self._call(self._stub.Intervene, request)).sequence


def _request_id() -> str:
    return uuid.uuid4().hex
