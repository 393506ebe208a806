"""Debates as they are listed: in pages, by status, to their tenant."""

from typing import Any

import grpc
import pytest

from parley.v1 import debate_pb2, orchestrator_pb2
from tests.support.orchestration import Orchestrator, failure_of, until
from tests.support.scripted_gateway import ScriptedGateway


async def test_debates_are_listed_newest_first_in_pages_and_by_status(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    done = [await orchestrator.create() for _ in range(5)]
    for debate in done:
        await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
    gateway.fail("*")
    failed = await orchestrator.create()
    await orchestrator.watch(failed)
    await until(
        lambda: _listed(orchestrator, failed, debate_pb2.DEBATE_STATUS_FAILED), "the list tells of it"
    )
    found: list[str] = []
    token = ""
    while True:
        request = orchestrator_pb2.ListDebatesRequest(page_size=2, page_token=token)
        page = await orchestrator.stub.ListDebates(request, timeout=10)
        found.extend(each.id for each in page.debates)
        token = page.next_page_token
        if not token:
            break
        assert len(page.debates) == 2
    assert found == [failed, *reversed(done)]
    request = orchestrator_pb2.ListDebatesRequest(statuses=[debate_pb2.DEBATE_STATUS_COMPLETED])
    listed = (await orchestrator.stub.ListDebates(request, timeout=10)).debates
    assert [each.id for each in listed] == list(reversed(done))
    assert (listed[0].question, listed[0].format) == ("Is water wet?", "panel@2")


async def _listed(orchestrator: Orchestrator, debate: str, status: Any) -> bool:
    listed = await orchestrator.stub.ListDebates(
        orchestrator_pb2.ListDebatesRequest(statuses=[status]), timeout=10
    )
    return debate in [each.id for each in listed.debates]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (orchestrator_pb2.ListDebatesRequest(page_size=201), "page_size"),
        (orchestrator_pb2.ListDebatesRequest(page_size=-1), "page_size"),
        (orchestrator_pb2.ListDebatesRequest(page_token="?"), "page_token"),
        (orchestrator_pb2.ListDebatesRequest(page_token="AAAA"), "page_token"),
        (orchestrator_pb2.ListDebatesRequest(statuses=[debate_pb2.DEBATE_STATUS_UNSPECIFIED]), "statuses[0]"),
    ],
    ids=["too large", "negative", "no base64", "no token of ours", "no status"],
)
async def test_a_page_that_cannot_be_told_is_refused(
    orchestrator: Orchestrator, request_: orchestrator_pb2.ListDebatesRequest, field: str
) -> None:
    failure = await failure_of(orchestrator.stub.ListDebates(request_, timeout=10))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in failure.violations] == [field]
