"""What clients of an orchestrator find in memory, forget there, and are answered while memory is away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from parley.client import ParleyClient, ParleyError
from parley.runtime.server import RunningServer
from parley.v1 import memory_pb2, memory_pb2_grpc
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP, Issue
from parley.v1.effect_pb2 import DECISION_RELATION_REVERSES, DecisionConfidence
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE
from tests.integration.orchestrator.around import Around, create, follow, get_closed
from tests.support.orchestration import WITHIN, Orchestrator
from tests.support.orchestration import until as until_holds
from tests.support.real_services import convergence_at, memory_at, ratings_at
from tests.support.waiting import until

KAFKA = "deb-20260301-101112-aaaaaaaa"
PRICES = "deb-20260302-101112-bbbbbbbb"
UNKNOWN = "deb-20260303-101112-cccccccc"


@dataclass
class Clients:
    """An orchestrator with its memory, and clients of two tenants."""

    around: Around
    orchestrator: Orchestrator
    own: ParleyClient
    other: ParleyClient

    async def record(self, request: memory_pb2.RecordDebateRequest) -> None:
        async with grpc.aio.insecure_channel(self.around.memory) as channel:
            await memory_pb2_grpc.MemoryServiceStub(channel).RecordDebate(request, timeout=WITHIN)


def record(
    debate_id: str = KAFKA, question: str = "Kafka or RabbitMQ for orders?", domain: str = ""
) -> memory_pb2.RecordDebateRequest:
    """A debate with all that it can leave."""
    debate = memory_pb2.PastDebate(
        debate_id=debate_id,
        question=question,
        conclusion="Use Kafka for orders.",
        domain=domain or "general",
        concluded_at=Timestamp(seconds=1_772_000_000),
        strength=VOTE_STRENGTH_MODERATE,
        confidence=DecisionConfidence(percent=83.5, votes=2, votes_cast=3),
    )
    debate.dissents.add(agent_id="cy", text="It is hard to run.")
    debate.evidence.add(text="Kafka keeps order in a partition.", source="docs/kafka.md")
    request = memory_pb2.RecordDebateRequest(debate=debate)
    request.stands.add(agent_id="ada", agent_name="Ada", text="Use Kafka.", for_decision=True)
    issue = Issue(number=1, text="No figures.", severity=7)
    request.issues.add(critic_agent_id="ada", target_agent_id="cy", issue=issue, status=ISSUE_STATUS_TAKEN_UP)
    return request


@pytest.fixture
async def clients(around: Around, gateway_server: RunningServer) -> AsyncIterator[Clients]:
    """Clients that call once, before services of which all are away until a test starts them."""
    async with AsyncExitStack() as stack:
        orchestrator = await stack.enter_async_context(around.orchestrating(gateway_server))
        address = orchestrator.server.address
        own, other = [
            await stack.enter_async_context(ParleyClient(address, tenant, patience=0))
            for tenant in ("default", "acme")
        ]
        yield Clients(around, orchestrator, own, other)


async def test_the_debates_that_are_most_like_a_text_are_found_best_first(clients: Clients) -> None:
    async with clients.around.all():
        await clients.record(record(PRICES, "Kafka prices in spring?", "sales"))
        await clients.record(record())
        found = [each async for each in clients.own.search_memory("Kafka or RabbitMQ for orders?")]
        assert [each.debate_id for each in found] == [KAFKA, PRICES]
        found[0].ClearField("relevance")
        assert found[0] == record().debate
        best = [each.debate_id async for each in clients.own.search_memory("Kafka for orders?", limit=1)]
        of_sales = [each.debate_id async for each in clients.own.search_memory("Kafka?", domain="sales")]
    assert (best, of_sales) == ([KAFKA], [PRICES])


async def test_all_that_is_remembered_of_a_debate_is_returned(clients: Clients) -> None:
    async with clients.around.all():
        await clients.record(record())
        found = await clients.own.get_memory(KAFKA)
    assert (found.debate, list(found.stands), list(found.issues)) == (
        record().debate,
        list(record().stands),
        list(record().issues),
    )
    assert found.may_forget  # nobody authenticates here, and so everybody may


async def test_what_is_forgotten_is_found_no_more_and_forgetting_it_again_changes_nothing(
    clients: Clients,
) -> None:
    async with clients.around.all():
        await clients.record(record())
        assert await clients.own.forget_memory(KAFKA)
        assert not await clients.own.forget_memory(KAFKA)
        assert not [each async for each in clients.own.search_memory("Kafka for orders?")]
        with pytest.raises(ParleyError) as refused:
            await clients.own.get_memory(KAFKA)
    assert (refused.value.code, refused.value.reason) == (
        grpc.StatusCode.NOT_FOUND,
        "REMEMBERED_DEBATE_NOT_FOUND",
    )


@pytest.mark.usefixtures("short_restarts")
async def test_a_debate_that_is_forgotten_between_its_answer_and_its_recording_is_not_remembered(
    clients: Clients,
) -> None:
    around = clients.around
    async with memory_at(around.memory, around.folder / "memory", around.convergence):
        debate = await create(clients.orchestrator)
        await follow(clients.orchestrator, debate, "concluded")
        assert not await clients.own.forget_memory(debate), "it cannot be recorded: convergence is away"
        async with (
            convergence_at(around.convergence),
            ratings_at(around.ratings, around.folder / "ratings"),
        ):
            await get_closed(clients.orchestrator, debate)
            with pytest.raises(ParleyError, match="not found"):
                await clients.own.get_memory(debate)


async def test_a_debate_that_a_person_found_good_is_recalled_more_readily_also_if_all_was_away_then(
    clients: Clients,
) -> None:
    question, around = "Kafka or RabbitMQ for orders?", clients.around

    async def find_score() -> float:
        (found,) = [each async for each in clients.own.search_memory(question)]
        return found.relevance.score

    async with around.all():
        debate = await create(clients.orchestrator, question=question)
        await get_closed(clients.orchestrator, debate)
        before = await find_score()
    assert not (await clients.own.submit_feedback(debate, 1)).rated
    async with around.all():

        async def is_raised() -> bool:
            try:
                return await find_score() > before + 0.002
            except ParleyError:  # memory is back, and its index is not
                return False

        await until_holds(is_raised, "recalled more readily")


async def test_another_tenant_finds_nothing_and_forgets_nothing(clients: Clients) -> None:
    async with clients.around.all():
        await clients.record(record())
        assert not [each async for each in clients.other.search_memory("Kafka for orders?")]
        with pytest.raises(ParleyError, match="not found"):
            await clients.other.get_memory(KAFKA)
        assert not await clients.other.forget_memory(KAFKA)
        assert (await clients.own.get_memory(KAFKA)).debate.debate_id == KAFKA


async def test_every_bad_field_of_a_search_is_named(clients: Clients) -> None:
    with pytest.raises(ParleyError) as refused:
        [each async for each in clients.own.search_memory(" ", limit=101, domain="d" * 65)]
    assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in refused.value.violations] == ["text", "limit", "domain"]


async def test_moments_are_listed_to_their_tenant_and_go_with_their_debate(clients: Clients) -> None:
    request = record()
    request.debate.related.add(debate_id=PRICES, decision="Wait.", relation=DECISION_RELATION_REVERSES)
    async with clients.around.all():
        await clients.record(request)
        (found,) = [each async for each in clients.own.list_moments()]
        assert (found.debate_id, found.earlier_debate_id, found.kind) == (
            KAFKA,
            PRICES,
            memory_pb2.MOMENT_KIND_REVERSAL,
        )
        assert not [each async for each in clients.other.list_moments()]
        flips = clients.own.list_moments(memory_pb2.MOMENT_KIND_UNANIMOUS_FLIP)
        assert not [each async for each in flips]
        await clients.own.forget_memory(KAFKA)
        assert not [each async for each in clients.own.list_moments()]


async def test_kinds_of_issue_are_listed_to_their_tenant_and_go_with_their_debate(clients: Clients) -> None:
    async with clients.around.all():
        await clients.record(record())
        (found,) = [each async for each in clients.own.list_patterns()]
        assert (list(found.examples), found.raised, found.taken_up) == (["No figures."], 1, 1)
        assert not [each async for each in clients.other.list_patterns()]
        assert not [each async for each in clients.own.list_patterns(domain="sales")]
        await clients.own.forget_memory(KAFKA)
        assert not [each async for each in clients.own.list_patterns()]


async def test_where_agents_stood_is_listed_to_their_tenant_and_goes_with_their_debate(
    clients: Clients,
) -> None:
    async with clients.around.all():
        await clients.record(record())
        (found,) = [each async for each in clients.own.list_positions("ada")]
        assert (found.debate_id, found.stand, found.for_decision) == (KAFKA, "Use Kafka.", True)
        assert not [each async for each in clients.own.list_positions("cy")]
        assert not [each async for each in clients.own.list_positions(only_flips=True)]
        assert not [each async for each in clients.other.list_positions()]
        await clients.own.forget_memory(KAFKA)
        assert not [each async for each in clients.own.list_positions()]


async def test_every_bad_field_of_a_list_of_kinds_is_named(clients: Clients) -> None:
    async with clients.around.all():
        with pytest.raises(ParleyError) as refused:
            [each async for each in clients.own.list_patterns(domain="d" * 65, page_size=-1)]
    assert {each.field for each in refused.value.violations} == {"domain", "page_size"}


async def test_an_id_that_is_none_is_refused(clients: Clients) -> None:
    for call in (clients.own.get_memory("deb-1"), clients.own.forget_memory("deb-1")):
        with pytest.raises(ParleyError) as refused:
            await call
        assert [each.field for each in refused.value.violations] == ["debate_id"]


async def test_without_memory_a_client_is_answered_when_to_ask_again(clients: Clients) -> None:
    async def search() -> None:
        [each async for each in clients.own.search_memory("Kafka?")]

    for call in (search(), clients.own.get_memory(KAFKA), clients.own.forget_memory(KAFKA)):
        with pytest.raises(ParleyError, match="the memory service is away") as refused:
            await call
        assert (refused.value.code, refused.value.reason, refused.value.retry_after) == (
            grpc.StatusCode.UNAVAILABLE,
            "MEMORY_UNAVAILABLE",
            1.0,
        )


async def test_a_service_that_lacks_a_call_counts_as_away(
    around: Around, gateway_server: RunningServer
) -> None:
    async with (
        convergence_at(around.convergence),  # in memory's place
        around.orchestrating(gateway_server, memory=around.convergence) as orchestrator,
        ParleyClient(orchestrator.server.address, patience=0) as parley,
    ):
        with pytest.raises(ParleyError) as refused:
            await parley.get_memory(KAFKA)
    assert refused.value.reason == "MEMORY_UNAVAILABLE"


async def test_a_debate_that_ends_can_be_found_and_once_it_is_deleted_nothing_holds_its_text(
    clients: Clients,
) -> None:
    secret = "Kafka or the secret zebra?"
    async with clients.around.all():
        debate = await create(clients.orchestrator, question=secret)
        await get_closed(clients.orchestrator, debate)
        assert [each.debate_id async for each in clients.own.search_memory(secret)] == [debate]
        assert (await clients.own.get_memory(debate)).debate.question == secret
        assert _times_kept(clients.around.folder, b"zebra") > 0
        assert await clients.own.delete(debate)
        assert not [each async for each in clients.own.search_memory(secret)]
        assert not await clients.around.remembered(secret)
        with pytest.raises(ParleyError, match="not found"):
            await clients.own.get_memory(debate)
        await asyncio.to_thread(until, lambda: not _times_kept(clients.around.folder, b"zebra"))


async def test_nothing_that_a_debate_left_stays_in_a_file_once_it_is_forgotten(clients: Clients) -> None:
    async with clients.around.all():
        request = record(question="Which zebra for orders?")
        for text in (request.debate.dissents[0], request.debate.evidence[0], request.stands[0]):
            text.text = f"Only a zebra: {text.text}"
        request.debate.conclusion = request.debate.evidence[0].source = "A zebra."
        request.issues[0].issue.text = request.issues[0].issue.suggestion = "The zebra is missing."
        request.issues[0].reason = "No zebra was asked for."
        await clients.record(record(PRICES, "Raise prices in spring?"))
        await clients.record(request)
        assert _times_kept(clients.around.folder, b"zebra") > 0
        assert await clients.own.forget_memory(KAFKA)
        await asyncio.to_thread(until, lambda: not _times_kept(clients.around.folder, b"zebra"))
        assert [each.debate_id async for each in clients.own.search_memory("Raise prices?")] == [PRICES]


def _times_kept(folder: Path, text: bytes) -> int:
    """How often the text stands in any file of any service."""
    return sum(each.read_bytes().count(text) for each in folder.rglob("*") if each.is_file())
