"""The orchestrator over real gRPC: what is accepted, what is watched, who sees what."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from parley.runtime.server import RunningServer
from parley.storage.opening import open_store
from parley.v1 import agent_pb2
from parley.v1 import orchestrator_pb2 as pb
from tests.support.orchestration import Orchestrator, failure_of, orchestrating, until
from tests.support.scripted_gateway import ScriptedGateway, answer_text

WATCHED = pb.WatchDebateResponse
NOWHERE = "deb-20300101-000000-aaaaaaaa"


def inline(name: str, role: str = "architect", **fields: Any) -> pb.Participant:
    return pb.Participant(agent=agent_pb2.Agent(id=name, role=role, **fields))


def events_of(messages: list[WATCHED]) -> list[pb.Event]:
    return [message.event for message in messages if message.HasField("event")]


async def test_a_debate_is_held_and_told_in_full(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    debate = await orchestrator.create(rounds=2)
    messages = await orchestrator.watch(debate)
    found = await orchestrator.get(debate)
    assert found.status == pb.DEBATE_STATUS_COMPLETED
    assert found.solution.description == "The answer."
    assert [(each.agent_id, each.score) for each in found.solution.scores] == [
        ("ada", 1),
        ("bo", 2),
        ("cy", 3),
    ]
    assert found.calls == len(gateway.calls) == 2 * (3 + 6 + 3) + 1
    assert found.usage.input_tokens == 10 * found.calls
    assert found.last_sequence == messages[-1].event.sequence
    assert found.current_round == 2
    report = await orchestrator.stub.GetReport(pb.GetReportRequest(debate_id=debate), timeout=10)
    assert "The answer." in report.markdown


async def test_the_same_request_is_the_same_debate_and_other_content_is_refused(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    spec = pb.DebateSpec(question="Is water wet?", rounds=1)
    request = pb.CreateDebateRequest(request_id="r", spec=spec)
    answers = await asyncio.gather(*(orchestrator.stub.CreateDebate(request, timeout=10) for _ in range(4)))
    assert len({each.debate_id for each in answers}) == 1
    assert sorted(each.existed for each in answers) == [False, True, True, True]
    spec.question = "Is fire wet?"
    failure = await failure_of(
        orchestrator.stub.CreateDebate(pb.CreateDebateRequest(request_id="r", spec=spec))
    )
    assert (failure.code, failure.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
    await orchestrator.watch(answers[0].debate_id)
    assert len(gateway.calls) == 13


async def test_an_accepted_debate_is_durable_when_it_is_answered(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path
) -> None:
    gateway.hold("*")
    async with (
        orchestrating(tmp_path, gateway_server) as served,
        open_store(f"sqlite:///{tmp_path}", "orchestrator") as beside,
    ):
        debate = await served.create()
        (record, *_) = await beside.log.read(f"default/{debate}")
        assert '"kind":"debate_created"' in record.entries[0]


async def test_every_bad_field_is_listed_at_once_and_known_names_are_told(orchestrator: Orchestrator) -> None:
    spec = pb.DebateSpec(
        question="  ",
        rounds=101,
        format="duel",
        agents=[
            pb.Participant(agent_id="nobody"),
            inline("Bad Id", role="wizard", routes=["p/none"], temperature=3),
            pb.Participant(),
        ],
        judge=pb.Participant(agent_id="no-judge"),
        context=[pb.ContextDocument(path="../x", text="")],
        domain="d" * 65,
        limits=pb.DebateLimits(),
    )
    spec.limits.call.FromSeconds(0)
    request = pb.CreateDebateRequest(request_id="a b", spec=spec)
    failure = await failure_of(orchestrator.stub.CreateDebate(request, timeout=10))
    assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
    told = {each.field: each.description for each in failure.violations}
    assert told.keys() >= {
        "request_id", "spec.question", "spec.rounds", "spec.format", "spec.agents[0].agent_id",
        "spec.agents[1].agent.id", "spec.agents[1].agent.role", "spec.agents[1].agent.routes[0]",
        "spec.agents[1].agent.temperature", "spec.agents[2]", "spec.judge.agent_id", "spec.context[0].path",
        "spec.domain", "spec.limits.call",
    }  # fmt: skip
    assert "known agents: ada, bo, cy, judge" in told["spec.agents[0].agent_id"]
    assert "known roles: architect, " in told["spec.agents[1].agent.role"]
    assert "known routes: p/m, open/MODEL" in told["spec.agents[1].agent.routes[0]"]
    assert "known formats: panel" in told["spec.format"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"question": "wet\0?"}, "spec.question"),
        ({"question": "x" * (256 * 1024 + 1)}, "spec.question"),
        ({"agents": [inline("ada"), inline("ada")]}, "spec.agents"),
        ({"agents": [inline("ada", role="judge")]}, "spec.agents[0]"),
        ({"rounds": -1}, "spec.rounds"),
        ({"limits": pb.DebateLimits(round=Duration(nanos=1))}, "spec.limits.round"),
        ({"limits": pb.DebateLimits(total=Duration(seconds=700_000))}, "spec.limits.total"),
        ({"limits": pb.DebateLimits(checkpoint=Duration())}, "spec.limits.checkpoint"),
        ({"limits": pb.DebateLimits(waiting=Duration(seconds=-1))}, "spec.limits.waiting"),
        ({"limits": pb.DebateLimits(max_tokens=-1)}, "spec.limits.max_tokens"),
        ({"limits": pb.DebateLimits(max_cost_micros=-1)}, "spec.limits.max_cost_micros"),
        ({"max_concurrent_revisions": 1025}, "spec.max_concurrent_revisions"),
    ],
)
async def test_what_cannot_be_run_is_refused(
    orchestrator: Orchestrator, spec: dict[str, Any], field: str
) -> None:
    given = pb.DebateSpec(**{"question": "Is water wet?", **spec})
    request = pb.CreateDebateRequest(request_id="r", spec=given)
    failure = await failure_of(orchestrator.stub.CreateDebate(request, timeout=10))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert field in {each.field for each in failure.violations}


async def test_agents_described_in_the_request_debate_with_their_own_prompts_and_routes(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    told = agent_pb2.PromptText(text="Speak like a pirate.", source="pirate.md")
    agents = [inline("jack", system_prompt=told, routes=["open/some"]), inline("jill", role="kiss")]
    judge = inline("jim", role="architect")
    debate = await orchestrator.create(agents=agents, judge=judge)
    await orchestrator.watch(debate)
    asked = gateway.asked("round/1/propose/jack")
    assert asked.prompt.startswith("Speak like a pirate.")
    assert list(asked.agent.routes) == ["open/some"]
    found = await orchestrator.get(debate)
    assert found.spec.agents[1].agent.role == "simplicity"
    assert found.solution.synthesized_by == "jim"


async def test_without_a_gateway_nothing_is_accepted_and_the_caller_is_told(tmp_path: Path) -> None:
    async with ScriptedGateway().served() as gone:
        pass
    async with orchestrating(tmp_path, gone) as served:
        failure = await failure_of(served.create())
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "GATEWAY_UNAVAILABLE")


async def test_a_watch_from_any_sequence_sees_all_that_comes_after_it_once_and_ends(
    orchestrator: Orchestrator,
) -> None:
    debate = await orchestrator.create()
    live = events_of(await orchestrator.watch(debate))
    assert [each.sequence for each in live] == list(range(1, len(live) + 1))
    assert live[-1].kind == "closed"
    for after in range(len(live) + 1):
        assert events_of(await orchestrator.watch(debate, after)) == live[after:]


async def test_a_watch_of_a_failed_debate_ends_after_its_failure_from_wherever_it_began(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.fail("round/1/propose/*", attempt=1)
    debate = await orchestrator.create()
    live = events_of(await orchestrator.watch(debate))
    assert live[-1].kind == "debate_failed"
    assert not await orchestrator.watch(debate, len(live))
    await orchestrator.intervene(debate, guide=pb.Guide(text="try harder"))
    more = events_of(await orchestrator.watch(debate, len(live)))
    assert [each.kind for each in more] == ["claimed", "intervened"]
    await orchestrator.intervene(debate, resume=pb.Resume())
    assert events_of(await orchestrator.watch(debate))[-1].kind == "closed"


async def test_text_comes_as_it_is_written_to_those_who_ask_for_it_only(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.deltas = 4
    hold = gateway.hold("round/1/propose/*")
    debate = await orchestrator.create()
    with_text = asyncio.create_task(orchestrator.watch(debate, text_deltas=True))
    without = asyncio.create_task(orchestrator.watch(debate))
    await gateway.wait_for("round/1/propose/*", 3)
    hold.release()
    heard = await with_text
    texts: dict[str, str] = {}
    for message in heard:
        if message.HasField("delta"):
            delta = message.delta
            assert (delta.attempt, delta.try_number) == (1, 1)
            assert delta.offset == len(texts.get(delta.key, ""))
            texts[delta.key] = texts.get(delta.key, "") + delta.text
    assert texts["round/1/refine/bo"] == answer_text("round/1/refine/bo", "bo")
    assert events_of(heard) == events_of(await without)
    assert not any(message.HasField("delta") for message in await without)


async def test_a_debate_in_which_nothing_ends_for_a_while_shows_that_it_lives(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path
) -> None:
    hold = gateway.hold("*")
    async with orchestrating(tmp_path, gateway_server, heartbeat_seconds=0.05) as served:
        debate = await served.create()
        beats = 0
        async for message in served.stub.WatchDebate(pb.WatchDebateRequest(debate_id=debate), timeout=10):
            if message.HasField("heartbeat"):
                beats += 1
                assert message.heartbeat.last_sequence >= 2
                if beats == 3:
                    hold.release()
            elif message.event.kind == "closed":
                break
        assert beats >= 3


@pytest.mark.parametrize(
    ("debate", "after", "code", "reason"),
    [
        (NOWHERE, 0, grpc.StatusCode.NOT_FOUND, "DEBATE_NOT_FOUND"),
        ("x", 0, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT"),
        (None, -1, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT"),
        (None, 10_000, grpc.StatusCode.OUT_OF_RANGE, "AFTER_END"),
    ],
)
async def test_a_watch_that_makes_no_sense_says_so(
    orchestrator: Orchestrator, debate: str | None, after: int, code: grpc.StatusCode, reason: str
) -> None:
    there = await orchestrator.create()
    failure = await failure_of(orchestrator.watch(debate or there, after))
    assert (failure.code, failure.reason) == (code, reason)


async def test_a_draining_replica_ends_its_streams_gives_its_debates_up_and_takes_no_new_ones(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path
) -> None:
    hold = gateway.hold("synthesis")
    async with orchestrating(tmp_path, gateway_server) as one:
        debate = await one.create()
        await hold.reached.wait()
        seen: list[int] = []

        async def follow() -> None:
            async for message in one.stub.WatchDebate(pb.WatchDebateRequest(debate_id=debate), timeout=10):
                seen.append(message.event.sequence)  # noqa: PERF401 (it is read while it grows)

        watching = asyncio.create_task(failure_of(follow()))
        await until(lambda: _any(seen), "the first event")
        draining = asyncio.create_task(one.server.drain())
        failure = await watching
        assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert (await failure_of(one.create())).code == grpc.StatusCode.UNAVAILABLE
        await draining
    hold.release()
    async with orchestrating(tmp_path, gateway_server) as two:
        rest = events_of(await two.watch(debate, seen[-1]))
    assert [each.sequence for each in rest] == list(range(seen[-1] + 1, seen[-1] + 1 + len(rest)))
    assert rest[-1].kind == "closed"
    assert gateway.steps().count("round/1/propose/ada") == 1


async def _any(seen: list[int]) -> bool:
    return bool(seen)


async def test_debates_are_listed_newest_first_in_pages_and_by_status(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    done = [await orchestrator.create() for _ in range(5)]
    for debate in done:
        await orchestrator.status(debate, pb.DEBATE_STATUS_COMPLETED)
    gateway.fail("*")
    failed = await orchestrator.create()
    await orchestrator.watch(failed)
    await until(lambda: _listed(orchestrator, failed, pb.DEBATE_STATUS_FAILED), "the list tells of it")
    found: list[str] = []
    token = ""
    while True:
        request = pb.ListDebatesRequest(page_size=2, page_token=token)
        page = await orchestrator.stub.ListDebates(request, timeout=10)
        found.extend(each.id for each in page.debates)
        token = page.next_page_token
        if not token:
            break
        assert len(page.debates) == 2
    assert found == [failed, *reversed(done)]
    request = pb.ListDebatesRequest(statuses=[pb.DEBATE_STATUS_COMPLETED])
    listed = (await orchestrator.stub.ListDebates(request, timeout=10)).debates
    assert [each.id for each in listed] == list(reversed(done))
    assert (listed[0].question, listed[0].format) == ("Is water wet?", "panel@1")


async def _listed(orchestrator: Orchestrator, debate: str, status: Any) -> bool:
    listed = await orchestrator.stub.ListDebates(pb.ListDebatesRequest(statuses=[status]), timeout=10)
    return debate in [each.id for each in listed.debates]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.ListDebatesRequest(page_size=201), "page_size"),
        (pb.ListDebatesRequest(page_size=-1), "page_size"),
        (pb.ListDebatesRequest(page_token="?"), "page_token"),
        (pb.ListDebatesRequest(page_token="AAAA"), "page_token"),
        (pb.ListDebatesRequest(statuses=[pb.DEBATE_STATUS_UNSPECIFIED]), "statuses[0]"),
    ],
    ids=["too large", "negative", "no base64", "no token of ours", "no status"],
)
async def test_a_page_that_cannot_be_told_is_refused(
    orchestrator: Orchestrator, request_: pb.ListDebatesRequest, field: str
) -> None:
    failure = await failure_of(orchestrator.stub.ListDebates(request_, timeout=10))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in failure.violations] == [field]


async def test_a_tenant_sees_its_own_debates_only(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    stub, mine = orchestrator.stub, (("parley-tenant", "acme"),)
    spec = pb.DebateSpec(question="Is water wet?", rounds=1)
    request = pb.CreateDebateRequest(request_id="r", spec=spec)
    ours = (await stub.CreateDebate(request, metadata=mine, timeout=10)).debate_id
    theirs = (await stub.CreateDebate(request, timeout=10)).debate_id
    assert ours != theirs, "a request id is a tenant's own"
    for metadata, own, foreign in ((mine, ours, theirs), ((), theirs, ours)):
        listed = await stub.ListDebates(pb.ListDebatesRequest(), metadata=metadata, timeout=10)
        assert [each.id for each in listed.debates] == [own]
        wish = pb.InterveneRequest(request_id="w", debate_id=foreign, cancel=pb.Cancel())
        for call in (
            stub.GetDebate(pb.GetDebateRequest(debate_id=foreign), metadata=metadata, timeout=10),
            stub.GetReport(pb.GetReportRequest(debate_id=foreign), metadata=metadata, timeout=10),
            stub.Intervene(wish, metadata=metadata, timeout=10),
            _first(stub.WatchDebate(pb.WatchDebateRequest(debate_id=foreign), metadata=metadata, timeout=10)),
        ):
            assert (await failure_of(call)).code == grpc.StatusCode.NOT_FOUND
    watched = stub.WatchDebate(pb.WatchDebateRequest(debate_id=ours), metadata=mine, timeout=10)
    assert [each async for each in watched][-1].event.kind == "closed"
    assert {each.tenant for each in gateway.calls if each.debate == ours} == {"acme"}


async def _first(stream: Any) -> Any:
    return await anext(aiter(stream))


async def test_a_caller_that_leaves_or_is_short_of_time_does_not_hurry_its_debate(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/*")
    spec = pb.DebateSpec(question="Is water wet?", rounds=1)
    request = pb.CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
    metadata = (("parley-tenant", "default"),)
    debate = (await orchestrator.stub.CreateDebate(request, timeout=3, metadata=metadata)).debate_id
    await gateway.wait_for("round/1/propose/*", 3)
    assert all((each.remaining or 0) > 80 for each in gateway.calls), "the call's own time, not its caller's"
    hold.release()
    assert events_of(await orchestrator.watch(debate))[-1].kind == "closed"


async def test_a_caller_that_cancels_its_request_may_send_it_again(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    spec = pb.DebateSpec(question="Is water wet?", rounds=1)
    for turns in range(0, 60, 6):
        request = pb.CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
        call = orchestrator.stub.CreateDebate(request, timeout=10)
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        debate = (await orchestrator.stub.CreateDebate(request, timeout=10)).debate_id
        events = events_of(await orchestrator.watch(debate))
        assert [each.kind for each in events].count("debate_created") == 1
        assert events[-1].kind == "closed"
