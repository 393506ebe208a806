"""Debates read in parts: views, pages of contributions, the answer alone, the report as a stream."""

import base64

import grpc
import pytest

from parley.client import ParleyClient
from parley.v1 import debate_pb2
from parley.v1.debate_pb2 import Contribution, Debate, FailedContribution
from parley.v1.orchestrator_pb2 import (
    DEBATE_VIEW_SUMMARY,
    GetAnswerRequest,
    GetDebateRequest,
    GetReportRequest,
    ListContributionsRequest,
    ListContributionsResponse,
    StreamReportRequest,
)
from tests.support.orchestration import Orchestrator, failure_of
from tests.support.scripted_answers import answer_text
from tests.support.scripted_gateway import ScriptedGateway

_NOWHERE = "deb-20260101-000000-aaaaaaaa"


def _token(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode()


@pytest.fixture
async def debate(orchestrator: Orchestrator, gateway: ScriptedGateway) -> str:
    """One that is completed, and of which a critique failed."""
    gateway.fail("round/1/critique/ada/of/bo")
    made = await orchestrator.create(
        rounds=2, context=[debate_pb2.ContextDocument(path="a.md", text="Water is a liquid.")]
    )
    await orchestrator.watch(made)
    return made


async def _pages(orchestrator: Orchestrator, debate: str, **asked: int) -> list[ListContributionsResponse]:
    pages, token = [], ""
    while True:
        request = ListContributionsRequest(debate_id=debate, page_token=token, **asked)
        pages.append(await orchestrator.stub.ListContributions(request, timeout=10))
        token = pages[-1].next_page_token
        if not token:
            return pages


async def test_a_summary_is_the_debate_without_what_makes_it_large(
    orchestrator: Orchestrator, debate: str
) -> None:
    whole = await orchestrator.get(debate)
    request = GetDebateRequest(debate_id=debate, view=DEBATE_VIEW_SUMMARY)
    summary = (await orchestrator.stub.GetDebate(request, timeout=10)).debate
    expected = Debate()
    expected.CopyFrom(whole)
    for field in ("contributions", "failures", "outcome", "answer", "sources"):
        assert getattr(whole, field)
        expected.ClearField(field)
    assert whole.spec.context[0].text
    expected.spec.context[0].text = ""
    assert summary == expected


async def test_pages_hold_every_contribution_and_failure_once_in_the_order_of_the_log(
    orchestrator: Orchestrator, debate: str
) -> None:
    whole = await orchestrator.get(debate)
    for size in (1, 4, 0):
        pages = await _pages(orchestrator, debate, page_size=size)
        made = [each for page in pages for each in page.contributions]
        failed = [each for page in pages for each in page.failures]
        assert (made, failed) == (list(whole.contributions), list(whole.failures))
        assert [each.key for each in failed] == ["round/1/critique/ada/of/bo"]
        counts = [len(page.contributions) + len(page.failures) for page in pages]
        assert counts == _counts(len(made) + 1, size or 50)


def _counts(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


async def test_a_token_holds_for_the_debate_it_was_given_for(orchestrator: Orchestrator, debate: str) -> None:
    token = (await _pages(orchestrator, debate, page_size=1))[0].next_page_token
    other = await orchestrator.create()
    request = ListContributionsRequest(debate_id=other, page_token=token)
    failure = await failure_of(orchestrator.stub.ListContributions(request, timeout=10))
    assert [each.field for each in failure.violations] == ["page_token"]


async def test_a_page_ends_before_it_is_larger_than_asked_for_but_never_empty(
    orchestrator: Orchestrator, debate: str
) -> None:
    sizes = [each.ByteSize() for each in await _pages(orchestrator, debate, page_size=1)]
    most = max(sizes) * 2
    pages = await _pages(orchestrator, debate, page_bytes=most)
    assert 1 < len(pages) < len(sizes)
    assert all(page.ByteSize() <= most + len(page.next_page_token) + 4 for page in pages)
    assert len(await _pages(orchestrator, debate, page_bytes=1)) == len(sizes)


async def test_pages_of_two_mebibytes_are_made_where_nothing_is_said(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.text = lambda step, agent: f"{'x' * 250_000}\n{answer_text(step, agent)}"
    debate = await orchestrator.create()
    await orchestrator.watch(debate)
    pages = await _pages(orchestrator, debate)
    assert len(pages) > 2
    assert all(page.ByteSize() < 2**21 + 1000 for page in pages)


async def test_a_step_that_is_tried_again_between_pages_comes_once_more(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    steps = ["round/1/propose/bo", "round/1/propose/cy"]
    gateway.fail("round/1/propose/[bc]*")
    debate = await orchestrator.create()
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_FAILED)
    first = (await _pages(orchestrator, debate))[-1]
    assert sorted((each.key, each.attempt) for each in first.failures) == [(each, 1) for each in steps]
    last = ListContributionsRequest(debate_id=debate, page_size=1)
    before = await orchestrator.stub.ListContributions(last, timeout=10)
    gateway.mend()
    await orchestrator.intervene(debate, resume=debate_pb2.Resume())
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
    rest = ListContributionsRequest(debate_id=debate, page_token=before.next_page_token)
    after = await orchestrator.stub.ListContributions(rest, timeout=10)
    again = [(each.key, each.attempt) for each in after.contributions if each.key in steps]
    assert sorted(again) == [(each, 2) for each in steps]
    assert not after.failures


async def test_the_answer_and_the_report_are_those_of_the_whole(
    orchestrator: Orchestrator, debate: str
) -> None:
    whole = await orchestrator.get(debate)
    answer = await orchestrator.stub.GetAnswer(GetAnswerRequest(debate_id=debate), timeout=10)
    assert (answer.markdown, answer.outcome) == (whole.answer, whole.outcome)
    report = await orchestrator.stub.GetReport(GetReportRequest(debate_id=debate), timeout=10)
    stream = orchestrator.stub.StreamReport(StreamReportRequest(debate_id=debate), timeout=10)
    assert "".join([part.markdown async for part in stream]) == report.markdown
    async with ParleyClient(orchestrator.server.address) as parley:
        assert await parley.get_report(debate) == report.markdown
        made = [each async for each in parley.list_contributions(debate)]
    assert [each for each in made if isinstance(each, Contribution)] == list(whole.contributions)
    assert [each for each in made if isinstance(each, FailedContribution)] == list(whole.failures)


async def test_a_debate_without_an_answer_says_so(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("synthesis")
    debate = await orchestrator.create()
    await hold.reached.wait()
    refused = await failure_of(orchestrator.stub.GetAnswer(GetAnswerRequest(debate_id=debate), timeout=10))
    assert (refused.code, refused.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NO_ANSWER")
    assert "is running, and has come to no answer yet" in refused.message
    await orchestrator.intervene(debate, cancel=debate_pb2.Cancel())
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_CANCELLED)
    refused = await failure_of(orchestrator.stub.GetAnswer(GetAnswerRequest(debate_id=debate), timeout=10))
    assert "was cancelled, and came to no answer" in refused.message


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (ListContributionsRequest(debate_id="deb-1"), "debate_id"),
        (ListContributionsRequest(debate_id=_NOWHERE, page_size=-1), "page_size"),
        (ListContributionsRequest(debate_id=_NOWHERE, page_bytes=-1), "page_bytes"),
        *(
            (ListContributionsRequest(debate_id=_NOWHERE, page_token=token), "page_token")
            for token in ("?", "AAAA", _token("contributions/0"), _token(f"contributions/{9**30}"), "é" * 999)
        ),
    ],
    ids=str,
)
async def test_a_page_of_contributions_that_cannot_be_told_is_refused(
    orchestrator: Orchestrator, asked: ListContributionsRequest, field: str
) -> None:
    failure = await failure_of(orchestrator.stub.ListContributions(asked, timeout=10))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in failure.violations] == [field]


async def test_a_view_that_is_none_and_a_debate_that_is_not_there_are_refused(
    orchestrator: Orchestrator, debate: str
) -> None:
    odd = GetDebateRequest(debate_id=debate)
    odd.MergeFromString(b"\x10\x63")  # a view of a newer contract
    refused = await failure_of(orchestrator.stub.GetDebate(odd, timeout=10))
    assert [each.field for each in refused.violations] == ["view"]
    stub = orchestrator.stub
    stream = stub.StreamReport(StreamReportRequest(debate_id=_NOWHERE), timeout=10)
    for call in (
        stub.GetAnswer(GetAnswerRequest(debate_id=_NOWHERE), timeout=10),
        stub.ListContributions(ListContributionsRequest(debate_id=_NOWHERE), timeout=10),
        anext(aiter(stream)),
    ):
        assert (await failure_of(call)).reason == "DEBATE_NOT_FOUND"
