"""A process is killed at each write and call of what follows an answer, and of feedback on it; each effect is there exactly once."""

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final
from urllib.parse import urlsplit

import grpc
import pytest
from google.protobuf.message import Message
from pymongo import MongoClient

from parley.client import DebateSpec, ParleyClient, ParleyError, RatingsClient
from parley.memory.approvals import APPROVALS
from parley.memory.debate import DEBATES
from parley.memory.known_patterns import CONTRIBUTIONS, PATTERNS
from parley.memory.tiers import TIERS
from parley.memory.tombstones import TOMBSTONES
from parley.memory.traces import TRACES
from parley.orchestrator.engine.documents import Documents
from parley.orchestrator.phases.record import match_of
from parley.orchestrator.phases.remember import create_record
from parley.runtime.agent_names import Names
from parley.runtime.channel import channel
from parley.runtime.held_texts import hold_text
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.event_pb2 import Event
from parley.v1.memory_pb2 import PastDebate, RateDebateRequest, RecallRequest
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from parley.v1.ratings_pb2 import RecordFeedbackRequest
from parley.v1.ratings_pb2_grpc import RatingsServiceStub
from tests.chaos.crashing import check_all, name_both_points
from tests.chaos.driver import Clients, call_until_answered, spec
from tests.chaos.harness import System
from tests.support.orchestration import until

_TENANT: Final = "default"
_KEPT_IN: Final = (DEBATES, TRACES, TIERS, CONTRIBUTIONS, PATTERNS, TOMBSTONES, APPROVALS)
_FORMAT: Final = ArenaSettings(revision_rounds=1, max_extended_rounds=0)
_JUDGEMENT = {
    "ranking": [
        {"agent": letter, "reason": "It lasts.", "score": score}
        for letter, score in (("A", 8), ("B", 6), ("C", 3))
    ],
    "sufficient": True,
    "missing": "",
    "position": 1,
    "position_confidence": 0.8,
    "position_reason": "It lasts.",
}
_CRITIQUE = {
    "issues": [
        {"issue": "Nothing says what it costs.", "severity": 7, "suggestion": "Name the cost."},
        {"issue": "There is no way back.", "severity": 4, "suggestion": "Add a rollback."},
    ],
    "agrees": False,
    "remarks": "",
}
_RULES: Final = (
    {"match": {"prompt": "Rank all of them"}, "answer": _JUDGEMENT},
    {"match": {"prompt": "Name each issue by itself"}, "answer": _CRITIQUE},
)
"""So that every agent is scored, and two kinds of issue are raised."""
_STEPS = ("ratings", "memory", "grounding")
_OF_THE_OWNER = [
    "call.memory:1",
    "call.ratings:1",
    *(
        f"append.{kind}.{AFTER_THE_ANSWER}{step}:1"
        for step in _STEPS
        for kind in ("step_started", "step_succeeded")
    ),
    "append.answer_analysed:1",
    "append.closed:1",
]
_OF_MEMORY = [
    "insert.debates:1",
    "insert.traces:1",
    "insert.tiers:1",
    "vectors.upsert:1",
    "insert.pattern_contributions:1",
    "insert.patterns:1",
    "insert.patterns:2",
    "update.debates.unfinished:1",
]
_POINTS = [
    *(("memory", crash) for point in _OF_MEMORY for crash in name_both_points(point)),
    *(("orchestrator-1", crash) for point in _OF_THE_OWNER for crash in name_both_points(point)),
    *(("ratings", crash) for crash in name_both_points("append:1")),
]
_OF_FEEDBACK = [
    *(
        ("orchestrator-1", crash)
        for point in (
            "insert.feedback:1",
            "call.feedback:1",
            "update.feedback.is_rated:1",
            "call.rate:1",
            "update.feedback.is_reported:1",
        )
        for crash in name_both_points(point)
    ),
    *(("ratings", crash) for crash in name_both_points("append:1")),
    *(("memory", crash) for crash in name_both_points("insert.approvals:1")),
]
_OF_FORGETTING = [
    "insert.tombstones:1",
    "update.debates.unfinished:1",
    "delete.traces:1",
    "delete.tiers:1",
    "vectors.delete:1",
    "delete.patterns:1",
    "delete.pattern_contributions:1",
    "delete.debates:1",
]
_FORGETTING = [crash for point in _OF_FORGETTING for crash in name_both_points(point)]


@pytest.fixture(autouse=True)
def judged(system: System) -> Iterator[None]:
    with system.rules(*_RULES):
        yield


@dataclass(frozen=True)
class Case:
    """A debate whose agents and domain no other has, so that all that is kept of them is its own."""

    debate: str
    specification: DebateSpec

    @property
    def agents(self) -> list[str]:
        return [each.agent.id for each in self.specification.agents]

    @property
    def domain(self) -> str:
        return self.specification.domain


async def create_case(clients: Clients, at: str | None = None) -> Case:
    own = uuid.uuid4().hex[:6]
    mark = f"case-after-{own}."
    specification = spec(mark, settings=_FORMAT, agents=3, domain=f"own-{own}", analysis=True)
    for each in (*specification.agents, specification.judge):
        each.agent.id = f"{each.agent.id}-{own}"
    return Case(await clients.create(specification, mark, at=at), specification)


async def read_events(clients: Clients, debate: str) -> list[Event]:
    return [each async for each in clients.client.watch(debate) if isinstance(each, Event)]


async def record_anew(system: System, case: Case, events: Sequence[Event], tenant: str, *values: int) -> None:
    """Do to another tenant what its log says that the debate, and then this feedback on it, must have done: each once, without a kill."""
    (concluded,) = [each for each in events if each.HasField("concluded")]
    outcome = concluded.concluded.outcome
    replies = [
        each.step_succeeded
        for each in events[: events.index(concluded)]
        if each.HasField("step_succeeded") and each.step_succeeded.HasField("reply")
    ]
    names = Names([each.agent for each in case.specification.agents], case.specification.judge.agent)
    at = concluded.time.ToDatetime(UTC)
    sources = Documents((each.path, hold_text(each.text)) for each in case.specification.context).sources
    past = create_record(case.debate, case.specification, outcome, replies, names, sources, at)
    metadata = (("parley-tenant", tenant),)
    async with channel(system.target("memory")) as opened:
        memory = MemoryServiceStub(opened)
        await memory.RecordDebate(past, metadata=metadata)
        for number, value in enumerate(values, start=1):
            rating = RateDebateRequest(debate_id=case.debate, number=number, value=value)
            await memory.RateDebate(rating, metadata=metadata)
    async with channel(system.target("ratings")) as opened:
        ratings = RatingsServiceStub(opened)
        await ratings.RecordMatch(match_of(case.debate, case.domain, outcome, replies), metadata=metadata)
        for number, value in enumerate(values, start=1):
            feedback = RecordFeedbackRequest(
                debate_id=case.debate, number=number, value=value, domain=case.domain, agent_ids=case.agents
            )
            await ratings.RecordFeedback(feedback, metadata=metadata)


async def list_kept(system: System, case: Case, tenant: str) -> dict[str, list[Message]]:
    """As `read_kept`, once the services that were started again are reached."""
    return await call_until_answered(lambda: read_kept(system, case, tenant))


async def read_kept(system: System, case: Case, tenant: str) -> dict[str, list[Message]]:
    """What is kept of a debate, as clients of a tenant see it, without random ids and the time of recording."""
    async with (
        ParleyClient(system.target(), tenant, patience=30) as parley,
        RatingsClient(system.target("ratings"), tenant, patience=30) as ratings,
    ):
        kept: dict[str, list[Message]] = {
            "ratings": [each async for each in ratings.list(case.domain)],
            "relationships": [
                each for agent in case.agents async for each in parley.list_relationships(agent)
            ],
            "patterns": [each async for each in parley.list_patterns(domain=case.domain)],
            "memory": [],
            "recalled": list[Message](await recall(system, case, tenant)),
        }
        try:
            kept["memory"] = [await parley.get_memory(case.debate)]
        except ParleyError as error:
            if error.code != grpc.StatusCode.NOT_FOUND:
                raise
    for each in (each for found in kept.values() for each in found):
        for field in ("pattern_id", "last_match_at", "relevance"):
            if field in each.DESCRIPTOR.fields_by_name:
                each.ClearField(field)
    kept["patterns"].sort(key=str)
    return kept


async def recall(system: System, case: Case, tenant: str) -> list[PastDebate]:
    async with channel(system.target("memory")) as opened:
        request = RecallRequest(text="Which lasts longest?", floor_percent=1, limit=100, domain=case.domain)
        found = MemoryServiceStub(opened).Recall(request, metadata=(("parley-tenant", tenant),))
        return [each.debate async for each in found]


def count_documents(system: System, case: Case, tenant: str) -> dict[str, int]:
    """Count the documents of memory that name a debate of a tenant, by collection."""
    with MongoClient[dict[str, object]](system.store_url) as client:
        database = client[f"{urlsplit(system.store_url).path.strip('/')}_memory"]
        texts = {each.name: [str(found) for found in database[each.name].find()] for each in _KEPT_IN}
    counts = {
        name: sum(case.debate in each and tenant in each for each in found) for name, found in texts.items()
    }
    return {name: count for name, count in counts.items() if count}


async def is_as_without_a_kill(system: System, clients: Clients, case: Case, *values: int) -> None:
    """Check that all that is kept is what is kept of the same debate where nothing was killed."""
    events = await read_events(clients, case.debate)
    reference = f"reference-{uuid.uuid4().hex[:6]}"
    await record_anew(system, case, events, reference, *values)
    wanted = await list_kept(system, case, reference)
    assert {name: len(found) > 0 for name, found in wanted.items()} == dict.fromkeys(wanted, True)
    assert len(wanted["recalled"]) == 1
    assert await list_kept(system, case, _TENANT) == wanted
    counts = count_documents(system, case, reference)
    rated = {"approvals": 1} if values else {}
    one_each = {"debates": 1, "traces": 1, "tiers": 1, "pattern_contributions": 1}
    assert counts == {**one_each, "patterns": len(wanted["patterns"]), **rated}

    async def is_counted() -> bool:
        return count_documents(system, case, _TENANT) == counts

    await until(is_counted, "memory gets feedback in the background", within=60)
    (analysed,) = [each.answer_analysed.analysis for each in events if each.HasField("answer_analysed")]
    assert analysed.claims
    assert (await clients.client.get_analysis(case.debate)).analysis.claims == analysed.claims


async def close_case(system: System, clients: Clients) -> Case:
    case = await create_case(clients)
    await clients.watch(case.debate)
    return case


@pytest.mark.parametrize(("service", "crash"), _POINTS)
async def test_what_follows_an_answer_is_as_if_no_process_had_been_killed(
    system: System, clients: Clients, service: str, crash: str
) -> None:
    system.make_ready(service, crash=crash)
    case = await create_case(clients, at="orchestrator-1")
    watching = asyncio.create_task(clients.watch(case.debate))
    await asyncio.to_thread(system.died, service)
    system.start(service)
    await watching
    await check_all(clients)
    await is_as_without_a_kill(system, clients, case)


@pytest.mark.parametrize(("service", "crash"), _OF_FEEDBACK)
async def test_feedback_counts_once_when_a_process_is_killed(
    system: System, clients: Clients, service: str, crash: str
) -> None:
    system.make_ready()
    case = await close_case(system, clients)
    system.restart(service, crash=crash)
    request_id = uuid.uuid4().hex
    async with ParleyClient(system.target("orchestrator-1"), patience=60) as first:
        giving = asyncio.create_task(
            call_until_answered(lambda: first.submit_feedback(case.debate, 1, "Good.", request_id=request_id))
        )
        await asyncio.to_thread(system.died, service)
        system.start(service)
        given = await giving
    assert given.number == 1

    async def is_rated() -> bool:
        return (await clients.client.get(case.debate)).feedback.rated

    await until(is_rated, "the ratings have it", within=60)
    await is_as_without_a_kill(system, clients, case, 1)


@pytest.mark.parametrize("crash", _FORGETTING)
async def test_nothing_is_left_of_a_debate_that_is_forgotten_while_memory_is_killed(
    system: System, clients: Clients, crash: str
) -> None:
    system.make_ready()
    case = await close_case(system, clients)
    system.restart("memory", crash=crash)
    forgetting = asyncio.create_task(call_until_answered(lambda: clients.client.forget_memory(case.debate)))
    await asyncio.to_thread(system.died, "memory")
    system.start("memory")
    await forgetting
    kept = await list_kept(system, case, _TENANT)
    assert (kept["memory"], kept["recalled"], kept["patterns"]) == ([], [], [])
    assert count_documents(system, case, _TENANT) == {"tombstones": 1}
    assert kept["ratings"]
