"""Which agents there are, and how they have done, as clients of an orchestrator read it."""

from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from parley.client import ParleyClient, ParleyError
from parley.orchestrator.api.agents import AgentServicer
from parley.runtime.identity.identity import Identity, Role, set_identity
from parley.runtime.server import RunningServer
from parley.v1 import gateway_pb2, orchestrator_pb2, ratings_pb2, ratings_pb2_grpc
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN, ACCESS_ROLE_SERVICE
from parley.v1.agent_pb2 import Agent, OwnRole, PromptText
from parley.v1.gateway_pb2_grpc import GatewayServiceStub
from parley.v1.ratings_pb2_grpc import RatingsServiceStub
from tests.integration.orchestrator.around import Around
from tests.support.orchestration import WITHIN
from tests.support.real_services import ratings_at
from tests.support.scripted_gateway import ScriptedGateway

FIRST, SECOND = "deb-20260301-101112-aaaaaaaa", "deb-20260301-101113-bbbbbbbb"


def match(debate_id: str, ada: float, bo: float, **fields: Any) -> ratings_pb2.RecordMatchRequest:
    results = [
        ratings_pb2.MatchResult(agent_id="ada", score=ada),
        ratings_pb2.MatchResult(agent_id="bo", score=bo),
    ]
    return ratings_pb2.RecordMatchRequest(debate_id=debate_id, results=results, **fields)


class BusyGateway(ScriptedGateway):
    """Knows a configured route, one that an agent names, and one that somebody's debate has named; calls of theirs have failed."""

    async def ListRoutes(  # noqa: N802
        self, request: gateway_pb2.ListRoutesRequest, _context: object
    ) -> gateway_pb2.ListRoutesResponse:
        assert request.names == ["open/m1"], "what is published of their prices is asked for"
        routes = [
            gateway_pb2.RouteStatus(
                name=name,
                provider="open",
                model=model,
                breaker=gateway_pb2.BREAKER_STATE_OPEN,
                failures_in_a_row=3,
                input_price_micros=2,
                output_price_micros=8,
                last_failure="429 by http://models.internal: quota of acme",
                in_flight=4,
                queued=5,
                host="models.internal",
            )
            for name, model in (("fast", "m0"), ("open/m1", "m1"), ("open/of-acme", "of-acme"))
        ]
        return gateway_pb2.ListRoutesResponse(
            routes=routes,
            default_routes=["fast"],
            open_providers=["open"],
            found_servers=[gateway_pb2.FoundServer(provider="open", base_url="http://models.internal")],
        )


@pytest.fixture
def gateway() -> ScriptedGateway:
    found = BusyGateway()
    prompt = PromptText(text="Be brief.", source="roles/ada.md")
    own = OwnRole(sections={"system": "Be brief."}, source="roles/ada.md")
    ada = Agent(id="ada", role="ada", routes=["open/m1"], system_prompt=prompt, own_role=own)
    found.agents = (ada, Agent(id="judge", role="judge"))
    return found


@dataclass
class Agents(AgentServicer):
    """The RPCs about agents, without the rest of an orchestrator."""

    agents: GatewayServiceStub
    ratings: RatingsServiceStub


async def list_as(role: Role, gateway: RunningServer) -> orchestrator_pb2.ListAvailableAgentsResponse:
    """Return what a caller with a role is shown."""
    set_identity(Identity("acme", roles=frozenset({role})))
    async with grpc.aio.insecure_channel(gateway.address) as channel:
        servicer = Agents(GatewayServiceStub(channel), RatingsServiceStub(channel))  # type: ignore[abstract]
        return await servicer.ListAvailableAgents(orchestrator_pb2.ListAvailableAgentsRequest(), None)


async def test_agents_are_listed_with_their_routes_and_without_the_texts_of_prompts(
    client: ParleyClient,
) -> None:
    found = await client.list_agents()
    ada, judge = found.agents
    assert (ada.id, ada.role, [*ada.routes], judge.id) == ("ada", "ada", ["open/m1"], "judge")
    assert (ada.system_prompt.source, ada.own_role.source) == ("roles/ada.md", "roles/ada.md")
    assert "Be brief." not in str(found)
    assert ([*found.default_team], found.default_judge) == (["ada"], "judge")
    assert ([*found.default_routes], [*found.open_providers]) == (["fast"], ["open"])
    assert found.routes[1].breaker == gateway_pb2.BREAKER_STATE_OPEN
    assert (found.routes[1].input_price_micros, found.routes[1].output_price_micros) == (2, 8)
    assert found.routes[1].model == "m1"


async def test_a_client_sees_nothing_that_comes_from_calls_of_other_tenants(
    gateway_server: RunningServer,
) -> None:
    seen = await list_as(ACCESS_ROLE_ADMIN, gateway_server)
    assert [each.name for each in seen.routes] == ["fast", "open/m1"]
    for each in seen.routes:
        assert (each.last_failure, each.in_flight, each.queued) == ("", 0, 0)
        assert each.failures_in_a_row == 3
    assert "models.internal" not in str(seen)


async def test_who_may_ask_the_gateway_itself_sees_all_routes_and_why_they_fail(
    gateway_server: RunningServer,
) -> None:
    seen = await list_as(ACCESS_ROLE_SERVICE, gateway_server)
    assert [each.name for each in seen.routes] == ["fast", "open/m1", "open/of-acme"]
    assert {(each.in_flight, each.queued) for each in seen.routes} == {(4, 5)}
    assert all(each.last_failure for each in seen.routes)


async def test_without_a_gateway_a_client_is_answered_when_to_ask_again(
    gateway: ScriptedGateway, around: Around
) -> None:
    async with gateway.served() as stops:
        pass
    async with (
        around.orchestrating(stops) as orchestrator,
        ParleyClient(orchestrator.server.address, patience=0) as parley,
    ):
        with pytest.raises(ParleyError, match="the gateway service is away") as refused:
            await parley.list_agents()
    assert (refused.value.reason, refused.value.retry_after) == ("GATEWAY_UNAVAILABLE", 1.0)


async def record(around: Around, *requests: ratings_pb2.RecordMatchRequest) -> None:
    async with grpc.aio.insecure_channel(around.ratings) as channel:
        for each in requests:
            await ratings_pb2_grpc.RatingsServiceStub(channel).RecordMatch(each, timeout=WITHIN)


async def test_ratings_and_how_they_came_about_are_listed_page_by_page(
    around: Around, client: ParleyClient
) -> None:
    async with ratings_at(around.ratings, around.folder / "ratings"):
        await record(around, match(FIRST, 8, 5), match(SECOND, 5, 8, domain="code"))
        best = [each async for each in client.list_ratings(page_size=1)]
        in_code = [each async for each in client.list_ratings("code")]
        often = [each async for each in client.list_ratings(min_matches=3)]
        over_time = [each async for each in client.list_matches("ada", page_size=1)]
        of_code = [each async for each in client.list_matches(domain="code")]
    assert [(each.agent_id, each.matches, each.wins) for each in best] == [("bo", 2, 1), ("ada", 2, 1)]
    assert [(each.agent_id, each.wins) for each in in_code] == [("bo", 1), ("ada", 0)]
    assert not often
    assert [each.debate_id for each in over_time] == [SECOND, FIRST]
    last, first = (next(one for one in each.changes if one.agent_id == "ada") for each in over_time)
    assert first.before == 1500 < first.after == last.before > last.after
    assert [each.debate_id for each in of_code] == [SECOND]


async def test_what_an_agent_is_good_at_is_its_persona(around: Around, client: ParleyClient) -> None:
    phases = [ratings_pb2.PhaseResult(agent_id="ada", phase="critique", score=9)]
    async with ratings_at(around.ratings, around.folder / "ratings"):
        await record(around, match(FIRST, 8, 5, phases=phases))
        found = await client.get_persona("ada")
        unknown = await client.get_persona("cy")
    assert [(each.domain, each.phase, each.mean_score) for each in found] == [
        ("", "critique", 9),
        ("general", "critique", 9),
    ]
    assert not unknown


async def test_another_tenant_sees_none_of_it(around: Around, client: ParleyClient) -> None:
    async with ratings_at(around.ratings, around.folder / "ratings"):
        await record(around, match(FIRST, 8, 5))
        async with ParleyClient(client._target, "acme", patience=0) as other:
            assert not [each async for each in other.list_ratings()]
            assert not [each async for each in other.list_matches()]
            assert not await other.get_persona("ada")


async def test_every_bad_field_is_named(around: Around, client: ParleyClient) -> None:
    async with ratings_at(around.ratings, around.folder / "ratings"):
        with pytest.raises(ParleyError) as of_ratings:
            [each async for each in client.list_ratings("x" * 65, page_size=-1)]
        with pytest.raises(ParleyError) as of_matches:
            [each async for each in client.list_matches("A B", domain="x" * 65, page_size=-1)]
        with pytest.raises(ParleyError) as of_persona:
            await client.get_persona("A B")
    assert {each.field for each in of_ratings.value.violations} == {"domain", "page_size"}
    assert {each.field for each in of_matches.value.violations} == {"agent_id", "domain", "page_size"}
    assert {each.field for each in of_persona.value.violations} == {"agent_id"}


async def test_without_ratings_a_client_is_answered_when_to_ask_again(client: ParleyClient) -> None:
    with pytest.raises(ParleyError, match="the ratings service is away") as refused:
        await client.get_persona("ada")
    assert (refused.value.reason, refused.value.retry_after) == ("RATINGS_UNAVAILABLE", 1.0)
