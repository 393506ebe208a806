"""RatingsService over gRPC: protobuf in and out, requests checked, nothing decided."""

import base64
import binascii
import json
import math
import re
from collections.abc import Awaitable, Iterable, Sequence
from datetime import datetime
from typing import Final, TypeVar

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from parley.ratings.elo import weight
from parley.ratings.matches import DebateReusedError, Matches
from parley.ratings.table import OVERALL, Match, Rating, Table
from parley.runtime.clock import Clock
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument, unavailable
from parley.runtime.tenancy import current_tenant
from parley.storage.ports import StorageError
from parley.v1 import ratings_pb2 as pb
from parley.v1 import ratings_pb2_grpc as pb_grpc

__all__ = ["RatingsServicer"]

_AGENT_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_DEBATE_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_MOST_AGENTS: Final = 100
_MOST_PAGE: Final = 200
_PAGE: Final = 50
_GENERAL: Final = "general"

T = TypeVar("T")


class RatingsServicer(pb_grpc.RatingsServiceServicer):
    """Answers the calls of RatingsService."""

    def __init__(self, matches: Matches, clock: Clock) -> None:
        self._matches = matches
        self._clock = clock

    async def GetWeights(self, request: pb.GetWeightsRequest, _context: object) -> pb.GetWeightsResponse:  # noqa: N802
        """Returns what each agent's vote weighs."""
        _refuse(
            *_agent_violations("agent_ids", request.agent_ids, least=1), *_domain_violations(request.domain)
        )
        table = await self._table()
        return pb.GetWeightsResponse(
            weights=[_weight(table, agent_id, request.domain) for agent_id in request.agent_ids]
        )

    async def RecordMatch(self, request: pb.RecordMatchRequest, _context: object) -> pb.RecordMatchResponse:  # noqa: N802
        """Records the outcome of a debate."""
        _refuse(*_match_violations(request))
        match = Match(
            debate_id=request.debate_id,
            domain=request.domain or _GENERAL,
            scores={each.agent_id: each.score for each in request.results},
            recorded_at=self._clock.now(),
        )
        try:
            existed, changes = await _stored(self._matches.record(current_tenant(), match))
        except DebateReusedError:
            raise ParleyError(
                grpc.StatusCode.ALREADY_EXISTS,
                "DEBATE_REUSED",
                f"another outcome is recorded for the debate {request.debate_id}",
                resource=("debate", request.debate_id),
            ) from None
        return pb.RecordMatchResponse(
            existed=existed,
            changes=[
                pb.RatingChange(agent_id=each.agent_id, before=each.before, after=each.after)
                for each in changes
            ],
        )

    async def ListRatings(self, request: pb.ListRatingsRequest, _context: object) -> pb.ListRatingsResponse:  # noqa: N802
        """Lists ratings, best first."""
        after = _read_token(request.page_token)
        if not 0 <= request.page_size <= _MOST_PAGE:
            described = f"is {request.page_size}, must be 1 to {_MOST_PAGE}, or 0 for the default"
            raise invalid_argument([FieldViolation("page_size", described)])
        _refuse(*_domain_violations(request.domain))
        ratings = (await self._table()).ratings(request.domain)
        if after is not None:
            ratings = [each for each in ratings if (-each.elo, each.agent_id) > after]
        size = request.page_size or _PAGE
        page = ratings[:size]
        return pb.ListRatingsResponse(
            ratings=[_rating(each) for each in page],
            next_page_token=_token(page[-1]) if len(ratings) > size else "",
        )

    async def _table(self) -> Table:
        return await _stored(self._matches.table(current_tenant()))


async def _stored(call: Awaitable[T]) -> T:
    try:
        return await call
    except StorageError as error:
        raise unavailable(
            "STORE_UNAVAILABLE", f"the store of the ratings failed: {error}", retry_after=1.0
        ) from error


def _weight(table: Table, agent_id: str, domain: str) -> pb.AgentWeight:
    rating = table.rating(agent_id, domain)
    if not rating.matches:
        rating = table.rating(agent_id, OVERALL)
    return pb.AgentWeight(agent_id=agent_id, weight=weight(rating.elo), rating=_rating(rating))


def _rating(rating: Rating) -> pb.Rating:
    return pb.Rating(
        agent_id=rating.agent_id,
        domain=rating.domain,
        elo=rating.elo,
        matches=rating.matches,
        wins=rating.wins,
        draws=rating.draws,
        losses=rating.losses,
        last_match_at=None if rating.last_match_at is None else _timestamp(rating.last_match_at),
    )


def _timestamp(moment: datetime) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(moment)
    return found


def _token(last: Rating) -> str:
    return base64.urlsafe_b64encode(json.dumps([last.elo, last.agent_id]).encode()).decode()


def _read_token(token: str) -> tuple[float, str] | None:
    """What is sorted at or before this was on an earlier page."""
    if not token:
        return None
    try:
        elo, agent_id = json.loads(base64.urlsafe_b64decode(token.encode()))
        return -float(elo), str(agent_id)
    except (ValueError, TypeError, binascii.Error):
        raise invalid_argument([FieldViolation("page_token", "is not a token of an earlier page")]) from None


def _refuse(*violations: FieldViolation) -> None:
    if violations:
        raise invalid_argument(violations)


def _match_violations(request: pb.RecordMatchRequest) -> Iterable[FieldViolation]:
    if not _DEBATE_ID.fullmatch(request.debate_id):
        yield FieldViolation("debate_id", "must be 1 to 128 characters of [A-Za-z0-9._-]")
    yield from _domain_violations(request.domain)
    yield from _agent_violations(
        "results", [each.agent_id for each in request.results], least=2, path=".agent_id"
    )
    for place, each in enumerate(request.results):
        if not (math.isfinite(each.score) and 0 <= each.score <= 10):
            yield FieldViolation(f"results[{place}].score", f"is {each.score:g}, must be 0 to 10")


def _agent_violations(
    field: str, agent_ids: Sequence[str], *, least: int, path: str = ""
) -> Iterable[FieldViolation]:
    if not least <= len(agent_ids) <= _MOST_AGENTS:
        yield FieldViolation(field, f"has {len(agent_ids)} agents, {least} to {_MOST_AGENTS} are allowed")
    seen: set[str] = set()
    for place, agent_id in enumerate(agent_ids):
        if not _AGENT_ID.fullmatch(agent_id):
            yield FieldViolation(f"{field}[{place}]{path}", "must match [a-z0-9][a-z0-9-]{0,31}")
        elif agent_id in seen:
            yield FieldViolation(f"{field}[{place}]{path}", f"{agent_id!r} is there twice")
        seen.add(agent_id)


def _domain_violations(domain: str) -> Iterable[FieldViolation]:
    if len(domain) > 64:
        yield FieldViolation("domain", f"has {len(domain)} characters, at most 64 are allowed")
