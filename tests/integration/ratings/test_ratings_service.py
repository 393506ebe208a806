"""The ratings service over real gRPC."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from parley.ratings.__main__ import build
from parley.ratings.settings import RatingsSettings
from parley.runtime.channel import channel
from parley.runtime.errors import ConfigurationError, ParleyError, from_rpc_error
from parley.runtime.server import serving
from parley.v1 import ratings_pb2 as pb
from parley.v1.ratings_pb2_grpc import RatingsServiceStub

ACME = (("parley-tenant", "acme"),)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[RatingsServiceStub]:
    async with (
        build(RatingsSettings(store=f"sqlite:///{folder}")) as service,
        serving([service]) as server,
        channel(server.address) as opened,
    ):
        yield RatingsServiceStub(opened)


@pytest.fixture
async def ratings(tmp_path: Path) -> AsyncIterator[RatingsServiceStub]:
    async with running(tmp_path) as stub:
        yield stub


def outcome(debate_id: str, domain: str = "", **scores: float) -> pb.RecordMatchRequest:
    results = [pb.MatchResult(agent_id=agent_id, score=score) for agent_id, score in scores.items()]
    return pb.RecordMatchRequest(debate_id=debate_id, domain=domain, results=results)


async def refused(call: object) -> ParleyError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call  # type: ignore[misc]
    return from_rpc_error(raised.value)


async def weights(stub: RatingsServiceStub, *agent_ids: str, domain: str = "") -> list[float]:
    response = await stub.GetWeights(pb.GetWeightsRequest(agent_ids=agent_ids, domain=domain))
    return [each.weight for each in response.weights]


async def test_agents_without_history_weigh_one(ratings: RatingsServiceStub) -> None:
    response = await ratings.GetWeights(pb.GetWeightsRequest(agent_ids=["bo", "ada"], domain="security"))
    assert [(each.agent_id, each.weight) for each in response.weights] == [("bo", 1.0), ("ada", 1.0)]
    assert response.weights[0].rating.elo == 1500


async def test_a_match_moves_weights_overall_and_in_its_domain(ratings: RatingsServiceStub) -> None:
    response = await ratings.RecordMatch(outcome("d1", "security", ada=9, bo=4))
    assert not response.existed
    assert [(each.agent_id, each.before, each.after) for each in response.changes] == [
        ("ada", 1500, 1516),
        ("bo", 1500, 1484),
    ]
    assert await weights(ratings, "ada", "bo", "cy", domain="security") == pytest.approx([1.032, 0.968, 1.0])
    # No match in this domain: the overall rating stands in.
    assert await weights(ratings, "ada", domain="data") == pytest.approx([1.032])


async def test_a_debate_counts_once(ratings: RatingsServiceStub) -> None:
    first = await ratings.RecordMatch(outcome("d1", ada=9, bo=4))
    again = await ratings.RecordMatch(outcome("d1", bo=4, ada=9))
    assert again.existed
    assert again.changes == first.changes
    error = await refused(ratings.RecordMatch(outcome("d1", ada=4, bo=9)))
    assert (error.code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "DEBATE_REUSED")
    assert await weights(ratings, "ada") == pytest.approx([1.032])


async def test_ratings_are_listed_best_first_page_by_page_and_outlive_the_process(tmp_path: Path) -> None:
    async with running(tmp_path) as stub:
        await stub.RecordMatch(outcome("d1", a0=0, a1=1, a2=2, a3=3, a4=0, a5=1, a6=2))
    async with running(tmp_path) as stub:
        whole = (await stub.ListRatings(pb.ListRatingsRequest())).ratings
        paged: list[pb.Rating] = []
        token = ""
        while True:
            page = await stub.ListRatings(pb.ListRatingsRequest(page_size=2, page_token=token))
            paged += page.ratings
            token = page.next_page_token
            if not token:
                break
    assert [each.agent_id for each in whole] == ["a3", "a2", "a6", "a1", "a5", "a0", "a4"]
    assert paged == list(whole)
    assert (whole[0].wins, whole[0].losses, whole[0].draws, whole[0].matches) == (6, 0, 0, 1)
    assert whole[0].HasField("last_match_at")


async def test_a_tenant_sees_only_its_own_ratings(ratings: RatingsServiceStub) -> None:
    await ratings.RecordMatch(outcome("d1", ada=9, bo=4), metadata=ACME)
    assert not (await ratings.ListRatings(pb.ListRatingsRequest())).ratings
    assert len((await ratings.ListRatings(pb.ListRatingsRequest(), metadata=ACME)).ratings) == 2


async def test_every_bad_field_is_listed_at_once(ratings: RatingsServiceStub) -> None:
    request = pb.RecordMatchRequest(
        domain="x" * 65,
        results=[pb.MatchResult(agent_id="Ada", score=11), pb.MatchResult(agent_id="bo", score=float("nan"))],
    )
    error = await refused(ratings.RecordMatch(request))
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in error.violations] == [
        "debate_id",
        "domain",
        "results[0].agent_id",
        "results[0].score",
        "results[1].score",
    ]
    assert (await refused(ratings.RecordMatch(outcome("d1", ada=9)))).violations[0].field == "results"
    assert (await refused(ratings.GetWeights(pb.GetWeightsRequest()))).violations[0].field == "agent_ids"
    for bad in (pb.ListRatingsRequest(page_token="nonsense"), pb.ListRatingsRequest(page_size=201)):
        assert (await refused(ratings.ListRatings(bad))).code is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_store_that_is_none_is_named_with_its_setting() -> None:
    with pytest.raises(ConfigurationError, match="PARLEY_STORE"):
        async with build(RatingsSettings(store="postgres://x")):
            pass
