"""What memory lists of many debates: patterns of critique, moments, and where agents stood."""

from pathlib import Path

from parley.runtime.page_tokens import to_token
from parley.v1 import memory_pb2 as pb
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from tests.integration.memory.serving import (
    ACME,
    convergence,
    debate,
    run_memory,
    with_a_reversal,
    with_all_that_a_debate_leaves,
)
from tests.support.catching import catch_error


async def test_issues_of_debates_are_listed_as_patterns_until_these_are_forgotten(
    memory: MemoryServiceStub,
) -> None:
    await memory.RecordDebate(with_all_that_a_debate_leaves(debate("deb-1", domain="data")), metadata=ACME)
    (found,) = (await memory.ListPatterns(pb.ListPatternsRequest(text="Figures?"), metadata=ACME)).patterns
    assert (found.domain, list(found.examples), found.severity) == ("data", ["No figures."], 7)
    assert (found.raised, found.taken_up) == (1, 1)
    assert found.HasField("similarity_percent")
    for text, count in (("Figures?", 1), ("Bread and butter?", 0)):
        related = pb.ListPatternsRequest(text=text, only_related=True)
        assert len((await memory.ListPatterns(related, metadata=ACME)).patterns) == count
    assert not (await memory.ListPatterns(pb.ListPatternsRequest())).patterns, "another tenant sees none"
    await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id="deb-1"), metadata=ACME)
    assert not (await memory.ListPatterns(pb.ListPatternsRequest(), metadata=ACME)).patterns


async def test_moments_of_debates_are_listed_page_by_page_until_these_are_forgotten(
    memory: MemoryServiceStub,
) -> None:
    for name in ("deb-1", "deb-2", "deb-3"):
        await memory.RecordDebate(with_a_reversal(debate(name)), metadata=ACME)
    listed: list[pb.Moment] = []
    token = ""
    while token or not listed:
        request = pb.ListMomentsRequest(kind=pb.MOMENT_KIND_REVERSAL, page_size=2, page_token=token)
        page = await memory.ListMoments(request, metadata=ACME)
        listed, token = [*listed, *page.moments], page.next_page_token
    assert [each.debate_id for each in listed] == ["deb-3", "deb-2", "deb-1"]
    assert {each.earlier_debate_id for each in listed} == {"deb-0"}
    assert not (await memory.ListMoments(pb.ListMomentsRequest())).moments, "another tenant sees none"
    flips = pb.ListMomentsRequest(kind=pb.MOMENT_KIND_UNANIMOUS_FLIP)
    assert not (await memory.ListMoments(flips, metadata=ACME)).moments
    for name in ("deb-1", "deb-2", "deb-3"):
        await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id=name), metadata=ACME)
    assert not (await memory.ListMoments(pb.ListMomentsRequest(), metadata=ACME)).moments


async def test_a_bad_request_for_moments_names_every_bad_field(memory: MemoryServiceStub) -> None:
    forged = to_token((0, "2026\0"))
    for token in ("no", forged):
        request = pb.ListMomentsRequest(kind=99, page_size=-1, page_token=token)  # type: ignore[arg-type]
        error = await catch_error(memory.ListMoments(request))
        assert [each.field for each in error.violations] == ["kind", "page_size", "page_token"]


async def test_a_bad_request_for_patterns_names_every_bad_field(memory: MemoryServiceStub) -> None:
    request = pb.ListPatternsRequest(text="a" * 100_001, domain="a" * 65, page_size=-1, page_token="no")
    error = await catch_error(memory.ListPatterns(request))
    assert [each.field for each in error.violations] == ["text", "domain", "page_size", "page_token"]
    error = await catch_error(memory.ListPatterns(pb.ListPatternsRequest(text=" ", only_related=True)))
    assert [each.field for each in error.violations] == ["only_related"]


async def test_where_agents_stood_is_listed_until_the_debate_is_forgotten(memory: MemoryServiceStub) -> None:
    for number in (1, 2):
        await memory.RecordDebate(with_all_that_a_debate_leaves(debate(f"deb-{number}")), metadata=ACME)
    request = pb.ListPositionsRequest(agent_id="ada", page_size=1)
    page = await memory.ListPositions(request, metadata=ACME)
    request.page_token = page.next_page_token
    rest = await memory.ListPositions(request, metadata=ACME)
    assert [each.debate_id for each in (*page.positions, *rest.positions)] == ["deb-2", "deb-1"]
    (change,) = page.positions[0].changes
    assert (change.earlier_debate_id, change.outcome) == ("deb-1", pb.FLIP_OUTCOME_NO_FLIP)
    assert not rest.next_page_token
    flips = await memory.ListPositions(pb.ListPositionsRequest(only_flips=True), metadata=ACME)
    assert not flips.positions
    assert not (await memory.ListPositions(pb.ListPositionsRequest())).positions, "another tenant sees none"
    for number in (1, 2):
        await memory.ForgetDebate(pb.ForgetDebateRequest(debate_id=f"deb-{number}"), metadata=ACME)
    assert not (await memory.ListPositions(pb.ListPositionsRequest(), metadata=ACME)).positions


async def test_opposed_stands_are_a_flip_by_the_agreement_model_and_cannot_be_told_without_one(
    tmp_path: Path,
) -> None:
    for name, words, outcome in (
        ("with", ("kafka", "rabbitmq"), pb.FLIP_OUTCOME_FLIP),
        ("without", (), pb.FLIP_OUTCOME_UNKNOWN),
    ):
        async with convergence(words=words) as address, run_memory(tmp_path / name, address) as stub:
            for number, stand in enumerate(("Use Kafka.", "Use RabbitMQ."), start=1):
                request = debate(f"deb-{number}")
                request.debate.concluded_at.seconds += number
                request.stands.add(agent_id="ada", text=stand)
                await stub.RecordDebate(request)
            found = (await stub.ListPositions(pb.ListPositionsRequest())).positions
        assert [[change.outcome for change in each.changes] for each in found] == [[outcome], []]


async def test_a_bad_request_for_positions_names_every_bad_field(memory: MemoryServiceStub) -> None:
    request = pb.ListPositionsRequest(agent_id="a" * 16_385, page_size=-1, page_token="no")
    error = await catch_error(memory.ListPositions(request))
    assert [each.field for each in error.violations] == ["agent_id", "page_size", "page_token"]
