"""Debates as they are listed: in pages, by status, to their tenant."""

import base64
from contextlib import aclosing
from datetime import UTC
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec.structs import replace

from parley.client import Event, ParleyClient
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.formats import panel
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.debate_filter import DebateFilter
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.v1 import debate_pb2, orchestrator_pb2
from tests.support.orchestration import Backstage, Orchestrator, failure_of, make_debate, until
from tests.support.scripted_gateway import ScriptedGateway

_PLACE = "2026-01-01T00:00:00.000000+00:00/deb-20260101-000000-aaaaaaaa"


@pytest.fixture
def formats() -> Formats:
    """The shipped formats, and a second version of the panel."""
    return Formats([*all_formats().all(), replace(panel.V1, version=2)])


def _token(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode()


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
        lambda: _is_listed(orchestrator, failed, debate_pb2.DEBATE_STATUS_FAILED), "the list tells of it"
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


async def test_a_page_has_as_many_as_there_may_be_where_more_are_asked_for(
    orchestrator: Orchestrator,
) -> None:
    debate = await orchestrator.create()
    page = await orchestrator.stub.ListDebates(
        orchestrator_pb2.ListDebatesRequest(page_size=1_000_000), timeout=10
    )
    assert [each.id for each in page.debates] == [debate]


@pytest.fixture
async def four(orchestrator: Orchestrator) -> list[str]:
    """Debates, oldest first; the second one is of an older version."""
    formats = ("panel", "panel@1", "panel", "panel")
    return [await orchestrator.create(format=each) for each in formats]


async def test_debates_are_listed_by_format_and_age_in_either_order(
    orchestrator: Orchestrator, four: list[str]
) -> None:
    async with ParleyClient(orchestrator.server.address) as parley:

        async def list_indexes(**wanted: Any) -> list[int]:
            return [
                four.index(each.id) for each in [each async for each in parley.list(page_size=1, **wanted)]
            ]

        found = {each.id: each.create_time.ToDatetime(UTC) async for each in parley.list()}
        times = [found[each] for each in four]
        assert await list_indexes() == [3, 2, 1, 0]
        assert await list_indexes(oldest_first=True) == [0, 1, 2, 3]
        assert await list_indexes(format_name="panel", oldest_first=True) == [0, 1, 2, 3]
        assert await list_indexes(format_name="panel@1") == [1]
        assert await list_indexes(format_name="panel@2") == [3, 2, 0]
        assert await list_indexes(format_name="arena") == []
        for oldest_first in (False, True):
            order = [1, 2] if oldest_first else [2, 1]
            assert await list_indexes(since=times[1], before=times[3], oldest_first=oldest_first) == order
        assert await list_indexes(since=times[2], format_name="panel") == [3, 2]
        assert await list_indexes(before=times[1]) == [0]


@pytest.mark.parametrize(
    "other",
    [
        {"order_by": "create_time"},
        {"format": "panel"},
        {"statuses": [debate_pb2.DEBATE_STATUS_COMPLETED]},
        {"labels": {"team": "b"}},
        {"labels": {}},
        {"created_before": Timestamp(seconds=2**32)},
    ],
    ids=["order", "format", "status", "label", "no label", "time"],
)
async def test_a_token_holds_for_the_filter_and_the_order_it_was_given_for(
    orchestrator: Orchestrator, other: dict[str, Any]
) -> None:
    for _ in range(2):
        await orchestrator.create(labels={"team": "a"})
    asked: dict[str, Any] = {"labels": {"team": "a"}, "page_size": 1}
    page = await orchestrator.stub.ListDebates(orchestrator_pb2.ListDebatesRequest(**asked), timeout=10)
    again = {**asked, "page_token": page.next_page_token}
    failure = await failure_of(
        orchestrator.stub.ListDebates(orchestrator_pb2.ListDebatesRequest(**{**again, **other}), timeout=10)
    )
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in failure.violations] == ["page_token"]
    for same in ({"page_size": 2}, {"order_by": " create_time  desc "}):
        request = orchestrator_pb2.ListDebatesRequest(**{**again, **same})
        assert len((await orchestrator.stub.ListDebates(request, timeout=10)).debates) == 1


async def test_a_record_that_cannot_be_read_ends_no_list(stage: Backstage) -> None:
    async with stage.replica() as replica:
        debates = [await replica.create(make_debate(2, 1)) for _ in range(4)]
    await stage.store.documents.update(DEBATES, f"default/{debates[2]}", {"labels": [1]})
    index = DebateIndex(stage.store.documents)
    page = await index.list_page("default", DebateFilter(), limit=2)
    assert [each.debate for each in page] == [debates[3], debates[1]]
    rest = await index.list_page("default", DebateFilter(oldest_first=True), page[1].created, limit=2)
    assert [each.debate for each in rest] == [debates[3]]


async def test_debates_are_found_by_all_of_the_labels_that_are_asked_for(orchestrator: Orchestrator) -> None:
    payments, draft = {"team": "payments"}, {"stage": "a=b, größer"}
    debates = [
        await orchestrator.create(labels=labels) for labels in ({}, payments, {**payments, **draft}, draft)
    ]
    async with ParleyClient(orchestrator.server.address) as parley:

        async def list_indexes(**wanted: Any) -> list[int]:
            return [debates.index(each.id) async for each in parley.list(page_size=1, **wanted)]

        assert await list_indexes() == [3, 2, 1, 0]
        assert await list_indexes(labels=payments) == [2, 1]
        assert await list_indexes(labels=payments, oldest_first=True) == [1, 2]
        assert await list_indexes(labels={**payments, **draft}) == [2]
        assert await list_indexes(labels={"team": ""}) == await list_indexes(labels={"team": "pay"}) == []
        assert await list_indexes(labels=payments, format_name="arena") == []
        assert [dict(each.labels) async for each in parley.list(labels=draft)] == [
            draft,
            {**payments, **draft},
        ]
        assert (await parley.get(debates[2])).spec.labels == {**payments, **draft}
        async with aclosing(parley.read_log(debates[2])) as log:
            first = Event.FromString(await anext(log))
    assert first.debate_created.spec.labels == {**payments, **draft}


async def test_the_order_is_by_the_time_of_creation_either_way(orchestrator: Orchestrator) -> None:
    debates = [await orchestrator.create() for _ in range(2)]
    for order, found in ((" create_time  desc", [*reversed(debates)]), ("create_time", debates)):
        page = await orchestrator.stub.ListDebates(
            orchestrator_pb2.ListDebatesRequest(order_by=order), timeout=10
        )
        assert [each.id for each in page.debates] == found


async def _is_listed(orchestrator: Orchestrator, debate: str, status: Any) -> bool:
    listed = await orchestrator.stub.ListDebates(
        orchestrator_pb2.ListDebatesRequest(statuses=[status]), timeout=10
    )
    return debate in [each.id for each in listed.debates]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (orchestrator_pb2.ListDebatesRequest(page_size=-1), "page_size"),
        (orchestrator_pb2.ListDebatesRequest(page_token="?"), "page_token"),
        (orchestrator_pb2.ListDebatesRequest(page_token="AAAA"), "page_token"),
        (orchestrator_pb2.ListDebatesRequest(page_token=_token("2026-01-01/\0")), "page_token"),
        (orchestrator_pb2.ListDebatesRequest(page_token=f"{_token(_PLACE)}!"), "page_token"),
        (orchestrator_pb2.ListDebatesRequest(page_token=_token("contributions/1")), "page_token"),
        (orchestrator_pb2.ListDebatesRequest(order_by="question"), "order_by"),
        (orchestrator_pb2.ListDebatesRequest(order_by="create_time, id"), "order_by"),
        (orchestrator_pb2.ListDebatesRequest(labels={"Team": "x"}), "labels"),
        (orchestrator_pb2.ListDebatesRequest(labels={f"l{number}": "" for number in range(17)}), "labels"),
        (orchestrator_pb2.ListDebatesRequest(format="x" * 65), "format"),
        (orchestrator_pb2.ListDebatesRequest(created_from=Timestamp(seconds=2**50)), "created_from"),
        (orchestrator_pb2.ListDebatesRequest(statuses=[debate_pb2.DEBATE_STATUS_UNSPECIFIED]), "statuses[0]"),
    ],
    ids=[
        "negative",
        "no base64",
        "no token of ours",
        "a place with NUL",
        "more than a token",
        "of another list",
        "no order",
        "two orders",
        "no label",
        "too many labels",
        "no format",
        "no time",
        "no status",
    ],
)
async def test_a_page_that_cannot_be_told_is_refused(
    orchestrator: Orchestrator, request_: orchestrator_pb2.ListDebatesRequest, field: str
) -> None:
    failure = await failure_of(orchestrator.stub.ListDebates(request_, timeout=10))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in failure.violations] == [field]
