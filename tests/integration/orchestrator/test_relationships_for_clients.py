"""How agents get along, as clients of an orchestrator read it."""

import grpc
import pytest

from parley.client import ParleyClient, ParleyError
from parley.v1 import ratings_pb2, ratings_pb2_grpc
from tests.integration.orchestrator.around import Around
from tests.support.orchestration import WITHIN
from tests.support.real_services import ratings_at

MATCH = ratings_pb2.RecordMatchRequest(
    debate_id="deb-20260301-101112-aaaaaaaa",
    results=[
        ratings_pb2.MatchResult(agent_id=each, score=score)
        for each, score in (("ada", 8), ("bo", 5), ("cy", 8))
    ],
    encounters=[ratings_pb2.Encounter(agent_id="ada", other_agent_id="bo", agreements=3, disagreements=1)],
)


async def test_how_an_agent_gets_along_with_others_is_listed_page_by_page(
    around: Around, client: ParleyClient
) -> None:
    async with ratings_at(around.ratings, around.folder / "ratings"):
        async with grpc.aio.insecure_channel(around.ratings) as channel:
            await ratings_pb2_grpc.RatingsServiceStub(channel).RecordMatch(MATCH, timeout=WITHIN)
        found = [each async for each in client.list_relationships("ada", page_size=1)]
        async with ParleyClient(client._target, "acme") as other:
            assert not [each async for each in other.list_relationships("ada")]
    assert [(each.other_agent_id, each.wins, each.draws, each.agreements) for each in found] == [
        ("bo", 1, 0, 3),
        ("cy", 0, 1, 0),
    ]


async def test_every_bad_field_is_named(around: Around, client: ParleyClient) -> None:
    async with ratings_at(around.ratings, around.folder / "ratings"):
        with pytest.raises(ParleyError) as refused:
            [each async for each in client.list_relationships("A B", page_size=-1)]
    assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
    assert {each.field for each in refused.value.violations} == {"agent_id", "page_size"}


async def test_without_ratings_a_client_is_answered_when_to_ask_again(client: ParleyClient) -> None:
    with pytest.raises(ParleyError, match="the ratings service is away") as refused:
        [each async for each in client.list_relationships("ada")]
    assert (refused.value.reason, refused.value.retry_after) == ("RATINGS_UNAVAILABLE", 1.0)
