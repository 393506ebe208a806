"""The other services that a debate meets, as plain as can be, by the script of a gateway."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import grpc

from parley.runtime.server import Service
from parley.v1 import (
    convergence_pb2,
    convergence_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    ratings_pb2,
    ratings_pb2_grpc,
)

if TYPE_CHECKING:  # it imports this module
    from tests.support.scripted_gateway import ScriptedGateway


def services_beside(script: "ScriptedGateway") -> list[Service]:
    """The services that do what a script says, but for the gateway."""

    def register_convergence(server: grpc.aio.Server) -> None:
        convergence_pb2_grpc.add_ConvergenceServiceServicer_to_server(_Convergence(script), server)

    def register_ratings(server: grpc.aio.Server) -> None:
        ratings_pb2_grpc.add_RatingsServiceServicer_to_server(_Ratings(script), server)  # type: ignore[abstract]

    def register_memory(server: grpc.aio.Server) -> None:
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(_Memory(script), server)  # type: ignore[abstract]

    return [
        Service("parley.v1.ConvergenceService", register_convergence),
        Service("parley.v1.RatingsService", register_ratings),
        Service("parley.v1.MemoryService", register_memory),
    ]


def unsure_until_settled(
    request: convergence_pb2.GroupPositionsRequest,
) -> convergence_pb2.GroupPositionsResponse:
    """What convergence says without an agreement model of different positions: nothing, until all are the same or all are not."""
    agents = sorted(each.agent_id for each in request.positions)
    found = convergence_pb2.GroupPositionsResponse(certain=bool(request.settled))
    is_one_group = bool(request.settled) and all(each.same for each in request.settled)
    for group in [agents] if is_one_group else [[each] for each in agents]:
        found.groups.add(agent_ids=group, representative_agent_id=group[0])
    if not found.certain:
        for one, other in combinations(agents, 2):
            found.unsure.add(agent_id=one, other_agent_id=other)
    return found


class _Convergence(convergence_pb2_grpc.ConvergenceServiceServicer):
    def __init__(self, script: "ScriptedGateway") -> None:
        self._script = script

    async def Embed(  # noqa: N802
        self,
        request_iterator: AsyncIterable[convergence_pb2.EmbedRequest],
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> AsyncIterator[convergence_pb2.EmbedResponse]:
        async for request in request_iterator:
            if self._script.embed is None:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no model")
            self._script.embedded += 1
            yield convergence_pb2.EmbedResponse(vector=self._script.embed(request.text), model="script")

    async def Assess(  # noqa: N802
        self,
        request: convergence_pb2.AssessRequest,
        context: "grpc.aio.ServicerContext[convergence_pb2.AssessRequest, Awaitable[convergence_pb2.AssessResponse]]",
    ) -> convergence_pb2.AssessResponse:
        if self._script.assess is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not implemented!")
        return self._script.assess(request)

    async def GroupPositions(  # noqa: N802
        self, request: convergence_pb2.GroupPositionsRequest, _context: object
    ) -> convergence_pb2.GroupPositionsResponse:
        if self._script.group_by is not None:
            return _with_contradictions(self._script.group_by(request))
        if self._script.group is not None:
            return _with_contradictions(self._script.group())
        ids = sorted(stand.agent_id for stand in request.positions)
        group = convergence_pb2.PositionGroup(
            agent_ids=ids, representative_agent_id=ids[0], position="all of one mind"
        )
        return convergence_pb2.GroupPositionsResponse(groups=[group], majority=True)

    async def ComparePositions(  # noqa: N802
        self, request: convergence_pb2.ComparePositionsRequest, _context: object
    ) -> convergence_pb2.ComparePositionsResponse:
        unknown = convergence_pb2.ComparedPair()
        return convergence_pb2.ComparePositionsResponse(pairs=[unknown] * len(request.pairs))

    async def FindSupport(  # noqa: N802
        self,
        request: convergence_pb2.FindSupportRequest,
        context: "grpc.aio.ServicerContext[convergence_pb2.FindSupportRequest, Awaitable[convergence_pb2.FindSupportResponse]]",
    ) -> convergence_pb2.FindSupportResponse:
        if self._script.support is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no local model")
        return self._script.support(request)


class _Ratings(ratings_pb2_grpc.RatingsServiceServicer):
    def __init__(self, script: "ScriptedGateway") -> None:
        self._script = script

    async def GetWeights(  # noqa: N802
        self,
        request: ratings_pb2.GetWeightsRequest,
        context: "grpc.aio.ServicerContext[ratings_pb2.GetWeightsRequest, Awaitable[ratings_pb2.GetWeightsResponse]]",
    ) -> ratings_pb2.GetWeightsResponse:
        if self._script.weights is None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the ratings are closed")
            raise AssertionError
        for hold in self._script.holds("weights"):
            hold.reached.set()
            await hold.released.wait()
        weights = [
            ratings_pb2.AgentWeight(
                agent_id=each,
                weight=self._script.weights.get(each, 1.0),
                rating=self._script.ratings.get(each),
                rule=ratings_pb2.WEIGHT_RULE_ACCURACY
                if each in self._script.weights
                else ratings_pb2.WEIGHT_RULE_ELO,
            )
            for each in request.agent_ids
        ]
        return ratings_pb2.GetWeightsResponse(weights=weights)

    async def SelectTeam(  # noqa: N802
        self,
        request: ratings_pb2.SelectTeamRequest,
        context: "grpc.aio.ServicerContext[ratings_pb2.SelectTeamRequest, Awaitable[ratings_pb2.SelectTeamResponse]]",
    ) -> ratings_pb2.SelectTeamResponse:
        team = self._script.team
        if team is None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the ratings are closed")
            raise AssertionError
        candidates = [
            ratings_pb2.Candidate(
                agent_id=each, chosen=each in team, score=0.5, reason=f"what is known of {each}"
            )
            for each in sorted(request.candidate_agent_ids, key=lambda each: each not in team)
        ]
        return ratings_pb2.SelectTeamResponse(candidates=candidates)

    async def RecordMatch(  # noqa: N802
        self, request: ratings_pb2.RecordMatchRequest, _context: object
    ) -> ratings_pb2.RecordMatchResponse:
        self._script.matches.append(request)
        return ratings_pb2.RecordMatchResponse()


class _Memory(memory_pb2_grpc.MemoryServiceServicer):
    def __init__(self, script: "ScriptedGateway") -> None:
        self._script = script

    async def Recall(  # noqa: N802
        self, _request: memory_pb2.RecallRequest, _context: object
    ) -> AsyncIterator[memory_pb2.RecallResponse]:
        for found in self._script.past:
            yield found

    async def ListPatterns(  # noqa: N802
        self, _request: memory_pb2.ListPatternsRequest, _context: object
    ) -> memory_pb2.ListPatternsResponse:
        return memory_pb2.ListPatternsResponse(patterns=self._script.patterns)

    async def RecordDebate(  # noqa: N802
        self, request: memory_pb2.RecordDebateRequest, _context: object
    ) -> memory_pb2.RecordDebateResponse:
        self._script.remembered.append(request)
        return memory_pb2.RecordDebateResponse()

    async def ForgetDebate(  # noqa: N802
        self, request: memory_pb2.ForgetDebateRequest, _context: object
    ) -> memory_pb2.ForgetDebateResponse:
        self._script.forgotten.append(request.debate_id)
        return memory_pb2.ForgetDebateResponse(existed=True)

    async def RateDebate(  # noqa: N802
        self, _request: memory_pb2.RateDebateRequest, _context: object
    ) -> memory_pb2.RateDebateResponse:
        return memory_pb2.RateDebateResponse()


def _with_contradictions(
    found: convergence_pb2.GroupPositionsResponse,
) -> convergence_pb2.GroupPositionsResponse:
    """Say that agents of different groups contradict each other, unless it is said how pairs relate."""
    if found.contradictions or found.unsure:
        return found
    for one, other in combinations(found.groups, 2):
        for pair in product(one.agent_ids, other.agent_ids):
            agent, another = sorted(pair)
            found.contradictions.add(agent_id=agent, other_agent_id=another, reason="another answer")
    return found
