"""The client of the orchestrator."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

from parley.client.audit import AuditClient
from parley.client.connection import create_request_id
from parley.client.hooks import HookClient
from parley.client.large_debate import TOO_LARGE, fill_answer, fill_contributions, fill_documents
from parley.client.receipts import ReceiptClient
from parley.client.times import to_timestamp
from parley.runtime.errors import ParleyError
from parley.runtime.watching import LogStream, TextPiece, WatchStream, read_stored_events, watch_events
from parley.v1 import (
    access_pb2,
    debate_pb2,
    event_pb2,
    key_pb2,
    memory_pb2,
    orchestrator_pb2,
    ratings_pb2,
)

_PAGE: Final = 200
_PAGE_BYTES: Final = 12 * 1024 * 1024
"""The size of a page of contributions: the server reads the whole log for each page, so large pages cost it least."""


class ParleyClient(AuditClient, HookClient, ReceiptClient):
    """Debates of one tenant at an orchestrator; use it as `async with`.

    Every call may be repeated safely, and is retried for up to `patience` seconds if the connection breaks or a
    replica stops. Failures are ParleyError.
    """

    async def create_debate(self, spec: debate_pb2.DebateSpec, request_id: str | None = None) -> str:
        """Start a debate and return its id; the same `request_id` with the same spec is the same debate."""
        request = orchestrator_pb2.CreateDebateRequest(
            request_id=request_id or create_request_id(), spec=spec
        )
        return (await self._call(self._stub.CreateDebate, request)).debate_id

    async def estimate_debate(self, spec: debate_pb2.DebateSpec) -> debate_pb2.DebateEstimate | None:
        """Return what a debate is expected to take, and start none; None if its format cannot say."""
        request = orchestrator_pb2.CreateDebateRequest(spec=spec)
        response = await self._call(self._stub.EstimateDebate, request)
        return response.estimate if response.HasField("estimate") else None

    async def get(self, debate_id: str) -> debate_pb2.Debate:
        """Return the whole debate; one that is too large for a message is fetched in parts."""
        try:
            return await self._get_view(debate_id, orchestrator_pb2.DEBATE_VIEW_FULL)
        except ParleyError as error:
            if error.reason != TOO_LARGE:
                raise
        debate = await self.get_summary(debate_id)
        await fill_contributions(debate, self._read_contribution_pages(debate_id))
        if debate.status == debate_pb2.DEBATE_STATUS_COMPLETED:
            fill_answer(debate, await self.get_answer(debate_id))
        if debate.spec.context:
            async with aclosing(self.read_log(debate_id)) as stored:
                fill_documents(debate, await anext(stored))
        return debate

    async def get_summary(self, debate_id: str) -> debate_pb2.Debate:
        """Return the debate without its large parts: contributions, outcome, answer, texts of documents."""
        return await self._get_view(debate_id, orchestrator_pb2.DEBATE_VIEW_SUMMARY)

    async def get_answer(self, debate_id: str) -> orchestrator_pb2.GetAnswerResponse:
        """Return the answer of a completed debate, as Markdown and as data."""
        request = orchestrator_pb2.GetAnswerRequest(debate_id=debate_id)
        return await self._call(self._stub.GetAnswer, request)

    async def list_contributions(
        self, debate_id: str
    ) -> AsyncGenerator[debate_pb2.Contribution | debate_pb2.FailedContribution, None]:
        """Yield contributions, and after those of each page its failures; pages are fetched as they are needed.

        While a debate runs, a retried step may come again: the larger `attempt` counts.
        """
        async for page in self._read_contribution_pages(debate_id):
            for made in page.contributions:
                yield made
            for failed in page.failures:
                yield failed

    def list(
        self,
        statuses: Sequence[debate_pb2.DebateStatus.ValueType] = (),
        *,
        page_size: int = _PAGE,
        format_name: str = "",
        since: datetime | None = None,
        before: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        oldest_first: bool = False,
    ) -> AsyncGenerator[orchestrator_pb2.DebateSummary, None]:
        """Yield debates, newest first unless `oldest_first`; pages are fetched as they are needed.

        Those in `statuses`, of a format (`panel`, `panel@1`), accepted `since` a time or later and `before` another, with all
        of these `labels`; or all. Times without a zone are UTC.
        """
        request = orchestrator_pb2.ListDebatesRequest(
            page_size=page_size,
            statuses=tuple(statuses),
            format=format_name,
            created_from=to_timestamp(since),
            created_before=to_timestamp(before),
            labels=labels,
            order_by="create_time" if oldest_first else "",
        )
        return self._list(self._stub.ListDebates, request, lambda page: page.debates)

    def watch(
        self, debate_id: str, after: int = 0, *, text: bool = False
    ) -> AsyncGenerator[event_pb2.Event | TextPiece, None]:
        """Yield the events after a sequence, each once and in order, until the debate closes or fails.

        Broken streams are continued. With `text`, pieces of text of calls in flight come too.
        """

        def open_stream(last: int) -> WatchStream:
            request = orchestrator_pb2.WatchDebateRequest(
                debate_id=debate_id, after_sequence=last, text_deltas=text, batches=True
            )
            return self._stub.WatchDebate(request, metadata=self._metadata)

        return watch_events(open_stream, after, self._patience)

    def read_log(self, debate_id: str, after: int = 0) -> AsyncGenerator[bytes, None]:
        """Yield the stored bytes of the events after a sequence, in order, up to the last one recorded by then.

        Each is a serialized `Event`, unchanged, so that the log can be verified by its hashes.
        """

        def open_stream(last: int) -> LogStream:
            request = orchestrator_pb2.ReadLogRequest(debate_id=debate_id, after_sequence=last)
            return self._stub.ReadLog(request, metadata=self._metadata)

        return read_stored_events(open_stream, after, self._patience)

    async def get_report(self, debate_id: str) -> str:
        """Return the debate's report as Markdown, however long it is."""
        request = orchestrator_pb2.StreamReportRequest(debate_id=debate_id)

        async def read(request: orchestrator_pb2.StreamReportRequest, **call: Any) -> str:
            return "".join([part.markdown async for part in self._stub.StreamReport(request, **call)])

        return await self._call(read, request)

    async def get_decision(self, debate_id: str) -> orchestrator_pb2.GetDecisionResponse:
        """Return the decision document of a completed moderated debate, with a name for its file."""
        request = orchestrator_pb2.GetDecisionRequest(debate_id=debate_id)
        return await self._call(self._stub.GetDecision, request)

    async def get_analysis(self, debate_id: str) -> orchestrator_pb2.GetAnalysisResponse:
        """Return what the answer of a completed debate rests on, where its agents disagree, and what changed minds."""
        request = orchestrator_pb2.GetAnalysisRequest(debate_id=debate_id)
        return await self._call(self._stub.GetAnalysis, request)

    async def submit_feedback(
        self, debate_id: str, value: int, message: str = "", *, request_id: str | None = None
    ) -> debate_pb2.Feedback:
        """Record whether a completed debate was good (1) or not (-1); return the recorded feedback.

        The latest feedback counts. The same `request_id` again changes nothing.
        """
        request = orchestrator_pb2.SubmitFeedbackRequest(
            request_id=request_id or create_request_id(), debate_id=debate_id, value=value, message=message
        )
        return (await self._call(self._stub.SubmitFeedback, request)).feedback

    async def delete(self, debate_id: str, *, ratings: bool = False) -> bool:
        """Delete a debate that does not run, for good; with `ratings`, its match too.

        Return whether everything is removed already; otherwise the rest follows without another call.
        """
        request = orchestrator_pb2.DeleteDebateRequest(debate_id=debate_id, ratings=ratings)
        return (await self._call(self._stub.DeleteDebate, request)).finished

    async def search_memory(
        self, text: str, *, limit: int = 0, domain: str = ""
    ) -> AsyncGenerator[memory_pb2.PastDebate, None]:
        """Yield the past debates that are most like a text in meaning, best first.

        At most `limit` (1 to 100; 0: 10), and only those of `domain` if it is given. All of them are fetched at the first one.
        """
        request = orchestrator_pb2.SearchMemoryRequest(text=text, limit=limit, domain=domain)

        async def search(
            request: orchestrator_pb2.SearchMemoryRequest, **call: Any
        ) -> Sequence[memory_pb2.PastDebate]:
            return [found.debate async for found in self._stub.SearchMemory(request, **call)]

        for debate in await self._call(search, request):
            yield debate

    async def get_memory(self, debate_id: str) -> memory_pb2.GetRecordResponse:
        """Return all that is remembered of a debate."""
        request = memory_pb2.GetRecordRequest(debate_id=debate_id)
        return await self._call(self._stub.GetMemory, request)

    async def forget_memory(self, debate_id: str) -> bool:
        """Forget a debate for good; the debate itself stays. Return whether it was remembered."""
        request = memory_pb2.ForgetDebateRequest(debate_id=debate_id)
        return (await self._call(self._stub.ForgetMemory, request)).existed

    def list_patterns(
        self,
        text: str = "",
        *,
        domain: str = "",
        only_successful: bool = False,
        page_size: int = _PAGE,
    ) -> AsyncGenerator[memory_pb2.CritiquePattern, None]:
        """Yield kinds of issue that debates raise: those most like a text, or those that were raised most often.

        Only those of `domain` if it is given, and with `only_successful` those that were taken up at least every second time.
        """
        request = memory_pb2.ListPatternsRequest(
            text=text, domain=domain, only_successful=only_successful, page_size=page_size
        )
        return self._list(self._stub.ListMemoryPatterns, request, lambda page: page.patterns)

    def list_positions(
        self, agent_id: str = "", *, only_flips: bool = False, page_size: int = _PAGE
    ) -> AsyncGenerator[memory_pb2.LedgerPosition, None]:
        """Yield where agents stood in the end of debates, the latest first, of one agent if it is named.

        With `only_flips` only those stands that are opposed to an earlier one of the same agent on the same matter.
        """
        request = memory_pb2.ListPositionsRequest(
            agent_id=agent_id, only_flips=only_flips, page_size=page_size
        )
        return self._list(self._stub.ListMemoryPositions, request, lambda page: page.positions)

    def list_moments(
        self,
        kind: memory_pb2.MomentKind.ValueType = memory_pb2.MOMENT_KIND_UNSPECIFIED,
        *,
        page_size: int = _PAGE,
    ) -> AsyncGenerator[memory_pb2.Moment, None]:
        """Yield what stands out in debates, those of the latest debate first; only moments of `kind` if it is given."""
        request = memory_pb2.ListMomentsRequest(kind=kind, page_size=page_size)
        return self._list(self._stub.ListMemoryMoments, request, lambda page: page.moments)

    async def list_agents(self) -> orchestrator_pb2.ListAvailableAgentsResponse:
        """Return the configured agents, and the routes to their models with the state of their breakers."""
        request = orchestrator_pb2.ListAvailableAgentsRequest()
        return await self._call(self._stub.ListAvailableAgents, request)

    def list_ratings(
        self, domain: str = "", *, min_matches: int = 0, page_size: int = _PAGE
    ) -> AsyncGenerator[ratings_pb2.Rating, None]:
        """Yield ratings in a domain, or overall, best first, of agents with at least `min_matches`."""
        request = ratings_pb2.ListRatingsRequest(domain=domain, min_matches=min_matches, page_size=page_size)
        return self._list(self._stub.ListAgentRatings, request, lambda page: page.ratings)

    def list_matches(
        self, agent_id: str = "", *, domain: str = "", page_size: int = _PAGE
    ) -> AsyncGenerator[ratings_pb2.MatchRecord, None]:
        """Yield rated debates, the last recorded first, with what each did to ratings: of one agent, its rating over time."""
        request = ratings_pb2.ListMatchesRequest(agent_id=agent_id, domain=domain, page_size=page_size)
        return self._list(self._stub.ListAgentMatches, request, lambda page: page.matches)

    async def get_persona(self, agent_id: str) -> Sequence[ratings_pb2.Strength]:
        """Return what an agent is good at, by domain and phase."""
        request = ratings_pb2.GetPersonaRequest(agent_id=agent_id)
        return (await self._call(self._stub.GetAgentPersona, request)).strengths

    def list_relationships(
        self, agent_id: str, *, page_size: int = _PAGE
    ) -> AsyncGenerator[ratings_pb2.Relationship, None]:
        """Yield how an agent gets along with others, those first with whom it has debated most."""
        request = ratings_pb2.ListRelationshipsRequest(agent_id=agent_id, page_size=page_size)
        return self._list(self._stub.ListAgentRelationships, request, lambda page: page.relationships)

    async def cancel(self, debate_id: str, reason: str = "", *, request_id: str | None = None) -> int:
        """End the debate without an answer; return the sequence of the event that records the intervention.

        The other interventions do the same. The same `request_id` again changes nothing.
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
        """Go to the answer after the current round.

        Methods with a `checkpoint` close the one with that key; if it is not open, nothing is recorded,
        and they fail with CHECKPOINT_CLOSED. Without it, they close the open checkpoint if they can close its kind.
        """
        intervention = debate_pb2.Intervention(end=debate_pb2.EndRounds(), checkpoint=checkpoint)
        return await self._intervene(debate_id, request_id, intervention)

    async def guide(
        self, debate_id: str, text: str, *, checkpoint: str = "", request_id: str | None = None
    ) -> int:
        """Give the agents guidance from the next round on."""
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

    async def continue_debate(
        self, debate_id: str, *, checkpoint: str = "", request_id: str | None = None
    ) -> int:
        """Continue from the open checkpoint, unless it asks for approval.

        If no checkpoint is open that they can close, this and the two below fail with NO_CHECKPOINT.
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

    async def create_key(
        self,
        name: str,
        roles: Sequence[access_pb2.AccessRole.ValueType],
        *,
        expires: datetime | None = None,
        budget: key_pb2.KeyBudget | None = None,
        request_id: str | None = None,
    ) -> key_pb2.CreateKeyResponse:
        """Create an API key of the tenant; `name` says who has it. Return it with its text, which is shown only once.

        It does not work from `expires` on (a time with a zone); None: it does not expire. Its debates may use `budget`;
        None: what the tenant may.

        Another call with the same `request_id` fails with KEY_EXISTS.
        """
        request = key_pb2.CreateKeyRequest(
            request_id=request_id or create_request_id(), name=name, roles=roles, budget=budget
        )
        if expires is not None:
            request.expire_time.FromDatetime(expires)
        return await self._call(self._stub.CreateKey, request)

    def list_keys(self, *, page_size: int = _PAGE) -> AsyncGenerator[key_pb2.ApiKey, None]:
        """Yield the API keys of the tenant, oldest first, revoked ones included."""
        request = key_pb2.ListKeysRequest(page_size=page_size)
        return self._list(self._stub.ListKeys, request, lambda page: page.keys)

    async def revoke_key(self, key_id: str) -> key_pb2.ApiKey:
        """Revoke an API key of the tenant for good, and return it without its text."""
        request = key_pb2.RevokeKeyRequest(key_id=key_id)
        return (await self._call(self._stub.RevokeKey, request)).key

    async def _get_view(
        self, debate_id: str, view: orchestrator_pb2.DebateView.ValueType
    ) -> debate_pb2.Debate:
        request = orchestrator_pb2.GetDebateRequest(debate_id=debate_id, view=view)
        return (await self._call(self._stub.GetDebate, request)).debate

    async def _read_contribution_pages(
        self, debate_id: str
    ) -> AsyncGenerator[orchestrator_pb2.ListContributionsResponse, None]:
        token = ""
        while True:
            request = orchestrator_pb2.ListContributionsRequest(
                debate_id=debate_id, page_size=_PAGE, page_token=token, page_bytes=_PAGE_BYTES
            )
            page = await self._call(self._stub.ListContributions, request)
            yield page
            token = page.next_page_token
            if not token:
                return

    async def _intervene(
        self, debate_id: str, request_id: str | None, intervention: debate_pb2.Intervention
    ) -> int:
        request = orchestrator_pb2.InterveneRequest(
            request_id=request_id or create_request_id(), debate_id=debate_id, intervention=intervention
        )
        return (await self._call(self._stub.Intervene, request)).sequence
