"""RatingsService over gRPC: checks requests and converts messages, without logic of its own."""

from collections.abc import Awaitable
from typing import Final, TypeVar

import grpc

from parley.ratings.conversion import (
    GENERAL,
    past_match_to_proto,
    rating_to_proto,
    to_match,
)
from parley.ratings.match import Correction, Feedback
from parley.ratings.matches import (
    CorrectionReusedError,
    DebateReusedError,
    FeedbackReusedError,
    Matches,
    NoMatchError,
)
from parley.ratings.requests import (
    check_agent,
    check_correction,
    check_feedback,
    check_match,
    check_match_list,
    check_rating_list,
    check_relationship_list,
    check_team,
    check_weights,
)
from parley.ratings.table import PastMatch, Table
from parley.ratings.team import EXPLORATION_SHARE, select_team
from parley.ratings.weights import WeightRule, weigh
from parley.runtime.clock import Clock
from parley.runtime.errors import ParleyError, not_found
from parley.runtime.identity.identity import current_tenant
from parley.runtime.page_tokens import read_token, to_token
from parley.runtime.validation import Violations
from parley.storage.service_errors import map_store_errors
from parley.v1 import ratings_pb2 as pb
from parley.v1 import ratings_pb2_grpc as pb_grpc

_RULES: Final = {pb.WEIGHT_RULE_ELO: WeightRule.ELO, pb.WEIGHT_RULE_ACCURACY: WeightRule.ACCURACY}
_RULES_TO_PROTO: Final = {rule: number for number, rule in _RULES.items()}

_STORE: Final = "the store of the ratings"

T = TypeVar("T")


class RatingsServicer(pb_grpc.RatingsServiceServicer):
    """The calls of RatingsService."""

    def __init__(self, matches: Matches, clock: Clock, rule: WeightRule = WeightRule.ACCURACY) -> None:
        """Serve the ratings of `matches`; `rule` is the weight rule if a request names none."""
        self._matches = matches
        self._clock = clock
        self._rule = rule

    async def GetWeights(self, request: pb.GetWeightsRequest, _context: object) -> pb.GetWeightsResponse:  # noqa: N802
        """Return the weight of each agent's vote."""
        violations = Violations()
        check_weights(violations, request)
        violations.refuse()
        table, rule = await self._read_table(), _RULES.get(request.rule, self._rule)
        return pb.GetWeightsResponse(
            weights=[_weight(table, agent_id, request.domain, rule) for agent_id in request.agent_ids]
        )

    async def RecordMatch(self, request: pb.RecordMatchRequest, _context: object) -> pb.RecordMatchResponse:  # noqa: N802
        """Record the outcome of a debate."""
        violations = Violations()
        check_match(violations, request)
        violations.refuse()
        match = to_match(request, request.domain, self._clock.now())
        try:
            existed, changes = await _call_store(self._matches.record(current_tenant(), match))
        except DebateReusedError:
            message = f"debate {request.debate_id} already has another recorded outcome"
            raise _conflict("DEBATE_REUSED", message, request.debate_id) from None
        return pb.RecordMatchResponse(existed=existed, changes=changes)

    async def CorrectMatch(  # noqa: N802
        self, request: pb.CorrectMatchRequest, _context: object
    ) -> pb.CorrectMatchResponse:
        """Replace a recorded outcome, or remove the match."""
        violations = Violations()
        check_correction(violations, request)
        violations.refuse()
        now = self._clock.now()
        match = None if request.void else to_match(request, GENERAL, now)
        correction = Correction(request.debate_id, request.number, match, request.reason, now)
        try:
            existed, changes = await _call_store(self._matches.correct(current_tenant(), correction))
        except NoMatchError:
            raise not_found("debate", request.debate_id) from None
        except CorrectionReusedError:
            message = (
                f"another correction is recorded as number {request.number} of the debate {request.debate_id}"
            )
            raise _conflict("CORRECTION_REUSED", message, request.debate_id) from None
        return pb.CorrectMatchResponse(existed=existed, changes=changes)

    async def RecordFeedback(  # noqa: N802
        self, request: pb.RecordFeedbackRequest, _context: object
    ) -> pb.RecordFeedbackResponse:
        """Record what a person said of a debate."""
        violations = Violations()
        check_feedback(violations, request)
        violations.refuse()
        feedback = Feedback(
            debate_id=request.debate_id,
            number=request.number,
            value=request.value,
            domain=request.domain or GENERAL,
            agent_ids=tuple(sorted(request.agent_ids)),
            recorded_at=self._clock.now(),
        )
        try:
            existed = await _call_store(self._matches.record_feedback(current_tenant(), feedback))
        except FeedbackReusedError:
            message = f"number {request.number} of debate {request.debate_id} already has other feedback"
            raise _conflict("FEEDBACK_REUSED", message, request.debate_id) from None
        return pb.RecordFeedbackResponse(existed=existed)

    async def ListRatings(self, request: pb.ListRatingsRequest, _context: object) -> pb.ListRatingsResponse:  # noqa: N802
        """List ratings, best first."""
        violations = Violations()
        after = read_token(violations, request.page_token)
        size = check_rating_list(violations, request)
        violations.refuse()
        table = await self._read_table()
        page, more = table.page(request.domain, after, size, request.min_matches)
        return pb.ListRatingsResponse(
            ratings=[rating_to_proto(each) for each in page],
            next_page_token=to_token((page[-1].elo, page[-1].agent_id)) if more else "",
        )

    async def ListMatches(self, request: pb.ListMatchesRequest, _context: object) -> pb.ListMatchesResponse:  # noqa: N802
        """List matches, the last recorded first."""
        violations = Violations()
        after = read_token(violations, request.page_token)
        size = check_match_list(violations, request)
        violations.refuse()
        page: list[tuple[int, PastMatch]] = []
        with map_store_errors(_STORE):
            async for place, past in self._matches.read_past_matches(
                current_tenant(), None if after is None else int(after[0])
            ):
                if _passes_filter(past, request):
                    page.append((place, past))
                if len(page) > size:
                    break
        return pb.ListMatchesResponse(
            matches=[past_match_to_proto(each) for _, each in page[:size]],
            next_page_token=to_token((page[size - 1][0], "")) if len(page) > size else "",
        )

    async def SelectTeam(self, request: pb.SelectTeamRequest, _context: object) -> pb.SelectTeamResponse:  # noqa: N802
        """Choose a team."""
        violations = Violations()
        check_team(violations, request)
        violations.refuse()
        share = request.exploration_share if request.HasField("exploration_share") else EXPLORATION_SHARE
        candidates = select_team(
            await self._read_table(),
            request.debate_id,
            request.candidate_agent_ids,
            request.size,
            request.domain or GENERAL,
            share,
        )
        return pb.SelectTeamResponse(candidates=candidates)

    async def GetPersona(self, request: pb.GetPersonaRequest, _context: object) -> pb.GetPersonaResponse:  # noqa: N802
        """Return an agent's strengths."""
        violations = Violations()
        check_agent(violations, request.agent_id)
        violations.refuse()
        strengths = (await self._read_table()).profiles.strengths(request.agent_id)
        return pb.GetPersonaResponse(agent_id=request.agent_id, strengths=strengths)

    async def ListRelationships(  # noqa: N802
        self, request: pb.ListRelationshipsRequest, _context: object
    ) -> pb.ListRelationshipsResponse:
        """List an agent's relationships."""
        violations = Violations()
        after = read_token(violations, request.page_token)
        size = check_relationship_list(violations, request)
        violations.refuse()
        relationships = (await self._read_table()).profiles.relationships(request.agent_id)
        page = [each for each in relationships if after is None or _sort_key(each) > (-after[0], after[1])]
        return pb.ListRelationshipsResponse(
            relationships=page[:size],
            next_page_token=(
                to_token((page[size - 1].debates, page[size - 1].other_agent_id)) if len(page) > size else ""
            ),
        )

    async def _read_table(self) -> Table:
        return await _call_store(self._matches.read_table(current_tenant()))


async def _call_store(call: Awaitable[T]) -> T:
    with map_store_errors(_STORE):
        return await call


def _conflict(reason: str, message: str, debate_id: str) -> ParleyError:
    return ParleyError(grpc.StatusCode.ALREADY_EXISTS, reason, message, resource=("debate", debate_id))


def _weight(table: Table, agent_id: str, domain: str, rule: WeightRule) -> pb.AgentWeight:
    rating, record = table.rating_for_vote(agent_id, domain), table.record_for_vote(agent_id, domain)
    weight, used = weigh(rating.elo, record, rule)
    return pb.AgentWeight(
        agent_id=agent_id, weight=weight, rating=rating_to_proto(rating), rule=_RULES_TO_PROTO[used]
    )


def _passes_filter(past: PastMatch, request: pb.ListMatchesRequest) -> bool:
    match = past.match or past.recorded
    return (not request.agent_id or request.agent_id in match.scores) and (
        not request.domain or request.domain == match.domain
    )


def _sort_key(relationship: pb.Relationship) -> tuple[float, str]:
    return -relationship.debates, relationship.other_agent_id
