"""Feedback: recorded with the debate at once, counted by the ratings once, whatever goes away meanwhile."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.engine.feedback_reporter import FeedbackReporter
from parley.orchestrator.log.feedback import FEEDBACK, Feedback, FeedbackStore
from parley.orchestrator.peers.services import Memory, Ratings
from parley.runtime.channel import channel
from parley.runtime.clock import SystemClock
from parley.runtime.server import RunningServer
from parley.storage.opening import open_store
from parley.v1 import ratings_pb2, ratings_pb2_grpc
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, DEBATE_STATUS_FAILED, DebateSpec
from parley.v1.evaluation_pb2 import EvaluationSettings
from parley.v1.orchestrator_pb2 import (
    CreateDebateRequest,
    GetReportRequest,
    SubmitFeedbackRequest,
    SubmitFeedbackResponse,
)
from tests.support.orchestration import Orchestrator, failure_of, orchestrating, until
from tests.support.real_services import free_address, ratings_at
from tests.support.scripted_answers import judgement
from tests.support.scripted_gateway import ScriptedGateway

ABSENT = "deb-20260101-000000-aaaaaaaa"


async def submit_feedback(
    orchestrator: Orchestrator, debate_id: str, value: int = 1, message: str = "", request_id: str = ""
) -> SubmitFeedbackResponse:
    request = SubmitFeedbackRequest(
        request_id=request_id or uuid.uuid4().hex, debate_id=debate_id, value=value, message=message
    )
    return await orchestrator.stub.SubmitFeedback(request, timeout=10)


async def complete_debate(orchestrator: Orchestrator) -> str:
    debate_id = await orchestrator.create()
    await orchestrator.status(debate_id, DEBATE_STATUS_COMPLETED)
    return debate_id


async def count_approvals(address: str) -> dict[str, tuple[int, int]]:
    async with channel(address) as opened:
        stub = ratings_pb2_grpc.RatingsServiceStub(opened)
        listed = await stub.ListRatings(ratings_pb2.ListRatingsRequest(), timeout=30)
    return {each.agent_id: (each.approvals, each.disapprovals) for each in listed.ratings}


@asynccontextmanager
async def start_orchestrator(
    folder: Path, gateway: RunningServer, ratings: str
) -> AsyncIterator[Orchestrator]:
    """Yield an orchestrator whose ratings are at an address."""
    async with orchestrating(folder / "debates", gateway, ratings=ratings) as orchestrator:
        yield orchestrator


async def test_a_word_is_shown_with_the_debate_and_counted_for_its_agents(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    address = free_address()
    async with (
        ratings_at(address, tmp_path),
        start_orchestrator(tmp_path, gateway_server, address) as orchestrator,
    ):
        debate_id = await complete_debate(orchestrator)
        response = await submit_feedback(orchestrator, debate_id, 1, " It *helped*.\n")
        feedback = response.feedback
        assert (feedback.value, feedback.message, feedback.number) == (1, "It *helped*.", 1)
        assert (list(feedback.agent_ids), feedback.rated, response.existed) == (
            ["ada", "bo", "cy"],
            True,
            False,
        )
        assert (await orchestrator.get(debate_id)).feedback == feedback
        assert await count_approvals(address) == dict.fromkeys(("ada", "bo", "cy"), (1, 0))
        report = await orchestrator.stub.GetReport(GetReportRequest(debate_id=debate_id), timeout=10)
        assert "## Feedback\n\nA person says yes to this debate (+1).\n\n> It *helped*.\n" in report.markdown


async def test_the_log_of_the_debate_stays_as_it_was(orchestrator: Orchestrator) -> None:
    debate_id = await complete_debate(orchestrator)
    await until(lambda: _is_closed(orchestrator, debate_id), "closed")
    before = await orchestrator.watch(debate_id)
    await submit_feedback(orchestrator, debate_id)
    after = await orchestrator.watch(debate_id)
    assert [each.event for each in after] == [each.event for each in before]
    assert after[-1].event.key == "closed"


async def _is_closed(orchestrator: Orchestrator, debate_id: str) -> bool:
    return (await orchestrator.watch(debate_id))[-1].event.key == "closed"


async def test_the_latest_word_takes_the_place_of_the_one_before(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    address = free_address()
    async with (
        ratings_at(address, tmp_path),
        start_orchestrator(tmp_path, gateway_server, address) as orchestrator,
    ):
        debate_id = await complete_debate(orchestrator)
        await submit_feedback(orchestrator, debate_id, 1, "good", "first")
        await submit_feedback(orchestrator, debate_id, -1, "no, bad", "second")
        again = await submit_feedback(orchestrator, debate_id, 1, "good", "first")
        assert (again.existed, again.feedback.number) == (True, 1)
        feedback = (await orchestrator.get(debate_id)).feedback
        assert (feedback.value, feedback.message, feedback.number) == (-1, "no, bad", 2)
        assert await count_approvals(address) == dict.fromkeys(("ada", "bo", "cy"), (0, 1))


async def test_a_request_id_stands_for_one_word(orchestrator: Orchestrator) -> None:
    debate_id = await complete_debate(orchestrator)
    await submit_feedback(orchestrator, debate_id, 1, "", "once")
    refused = await failure_of(submit_feedback(orchestrator, debate_id, -1, "", "once"))
    assert refused.reason == "REQUEST_ID_REUSED"


async def test_ratings_that_are_away_are_told_when_they_are_back(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    address = free_address()
    async with start_orchestrator(tmp_path, gateway_server, address) as orchestrator:
        async with ratings_at(address, tmp_path):
            debate_id = await complete_debate(orchestrator)
            await until(lambda: _is_closed(orchestrator, debate_id), "closed")
        response = await submit_feedback(orchestrator, debate_id)
        assert not response.feedback.rated
        async with ratings_at(address, tmp_path):
            await until(lambda: _is_rated(orchestrator, debate_id), "rated")
            assert (await count_approvals(address))["ada"] == (1, 0)


async def _is_rated(orchestrator: Orchestrator, debate_id: str) -> bool:
    return (await orchestrator.get(debate_id)).feedback.rated


async def test_ratings_that_record_and_do_not_say_so_count_once(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    address = free_address()
    async with (
        ratings_at(address, tmp_path) as ratings,
        start_orchestrator(tmp_path, gateway_server, address) as orchestrator,
    ):
        debate_id = await complete_debate(orchestrator)
        await until(lambda: _is_closed(orchestrator, debate_id), "closed")
        ratings.lost, ratings.asked = 2, 0
        assert not (await submit_feedback(orchestrator, debate_id)).feedback.rated
        await until(lambda: _is_rated(orchestrator, debate_id), "rated")
        assert ratings.asked == 3
        assert (await count_approvals(address))["ada"] == (1, 0)


async def test_an_orchestrator_that_crashed_before_it_told_the_ratings_tells_them_when_it_starts_again(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    address = free_address()
    async with ratings_at(address, tmp_path), start_orchestrator(tmp_path, gateway_server, address) as first:
        debate_id = await complete_debate(first)
        await until(lambda: _is_closed(first, debate_id), "closed")
    async with open_store(f"sqlite:///{tmp_path / 'debates'}", "orchestrator") as store:
        await store.documents.prepare(
            FEEDBACK
        )  # what a crash leaves: the word is durable, and nobody was told
        given_at = f"2026-01-01T00:00:00.000000+00:00/default/{debate_id}/crashed"
        word = Feedback("default", debate_id, "crashed", -1, "", given_at, ("ada", "bo", "cy"), "general")
        await FeedbackStore(store.documents).put(word)
    async with ratings_at(address, tmp_path), start_orchestrator(tmp_path, gateway_server, address) as second:
        await until(lambda: _is_rated(second, debate_id), "rated")
        assert (await count_approvals(address))["cy"] == (0, 1)
        again = await submit_feedback(second, debate_id, -1, "", "crashed")
        assert (again.existed, again.feedback.rated) == (True, True)
        assert (await count_approvals(address))["cy"] == (0, 1)


async def test_two_replicas_that_tell_of_the_same_word_count_it_once(tmp_path: Path) -> None:
    address = free_address()
    async with (
        ratings_at(address, tmp_path),
        open_store(f"sqlite:///{tmp_path}", "orchestrator") as store,
        channel(address) as opened,
    ):
        await store.documents.prepare(FEEDBACK)
        words = FeedbackStore(store.documents)
        given_at = f"2026-01-01T00:00:00.000000+00:00/default/{ABSENT}/r"
        word, _ = await words.put(Feedback("default", ABSENT, "r", 1, "", given_at, ("ada",), "general"))
        replicas = [FeedbackReporter(words, Ratings(opened), Memory(opened), SystemClock()) for _ in range(2)]
        told = await asyncio.gather(*(each.report_now_or_later(word) for each in replicas))
        assert [each.is_rated for each in told] == [True, True]
        assert await count_approvals(address) == {"ada": (1, 0)}


async def test_ratings_of_an_earlier_version_lose_nothing(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    debate_id = await complete_debate(orchestrator)  # the scripted ratings know no feedback
    response = await submit_feedback(orchestrator, debate_id, 1, "good")
    assert not response.feedback.rated
    assert (await orchestrator.get(debate_id)).feedback.message == "good"


async def test_only_a_completed_debate_takes_feedback(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.fail("round/1/propose/*")
    failed = await orchestrator.status(await orchestrator.create(), DEBATE_STATUS_FAILED)
    refused = await failure_of(submit_feedback(orchestrator, failed.id))
    assert refused.reason == "DEBATE_NOT_COMPLETED"
    assert refused.message == f"debate {failed.id} is failed; only a completed one takes feedback"
    assert (await failure_of(submit_feedback(orchestrator, ABSENT))).code.name == "NOT_FOUND"


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        pytest.param("value", {"value": 0}, id="no value"),
        pytest.param("value", {"value": 2}, id="value"),
        pytest.param("request_id", {"request_id": ""}, id="request"),
        pytest.param("debate_id", {"debate_id": "deb"}, id="debate"),
        pytest.param("message", {"message": "x" * 8193}, id="long"),
        pytest.param("message", {"message": "a\0b"}, id="nul"),
    ],
)
async def test_a_bad_field_is_named(field: str, bad: dict[str, Any], orchestrator: Orchestrator) -> None:
    request = SubmitFeedbackRequest(**{"request_id": "r", "debate_id": ABSENT, "value": 1, **bad})
    refused = await failure_of(orchestrator.stub.SubmitFeedback(request, timeout=10))
    assert [each.field for each in refused.violations] == [field]


async def test_feedback_on_an_evaluation_counts_for_nobody(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.judge = lambda schema: '{"security": 5}' if "compliance" in schema else judgement(schema)
    spec = DebateSpec(evaluation=EvaluationSettings(debate_id=await complete_debate(orchestrator)))
    request = CreateDebateRequest(request_id="e", spec=spec)
    evaluation = (await orchestrator.stub.CreateDebate(request, timeout=10)).debate_id
    await orchestrator.status(evaluation, DEBATE_STATUS_COMPLETED)
    feedback = (await submit_feedback(orchestrator, evaluation)).feedback
    assert (feedback.value, list(feedback.agent_ids), feedback.rated) == (1, [], False)
