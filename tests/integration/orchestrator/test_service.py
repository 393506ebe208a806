"""The orchestrator over real gRPC: what is accepted, what is watched, who sees what."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from parley.orchestrator.api import requests
from parley.orchestrator.model.digest import digest
from parley.runtime.server import RunningServer
from parley.storage.opening import open_store
from parley.v1 import agent_pb2, debate_pb2, event_pb2, orchestrator_pb2
from parley.v1.panel_pb2 import PanelSettings
from tests.integration.orchestrator.described_agents import inline
from tests.support.orchestration import Orchestrator, events_of, failure_of, kind_of, orchestrating, until
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def over_sockets() -> bool:
    return True


async def test_a_debate_is_held_and_told_in_full(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    debate = await orchestrator.create(rounds=2)
    messages = await orchestrator.watch(debate)
    found = await orchestrator.get(debate)
    assert found.status == debate_pb2.DEBATE_STATUS_COMPLETED
    assert found.outcome.description == "The answer."
    assert [(each.agent_id, each.score) for each in found.outcome.scores] == [
        ("ada", 1),
        ("bo", 2),
        ("cy", 3),
    ]
    assert found.calls == len(gateway.calls) == 1 + 2 * (3 + 6 + 3) + 1 + 1
    assert found.usage.input_tokens == 10 * found.calls
    assert found.last_sequence == messages[-1].event.sequence
    assert found.current_round == 2
    report = await orchestrator.stub.GetReport(
        orchestrator_pb2.GetReportRequest(debate_id=debate), timeout=10
    )
    assert "The answer." in report.markdown


@pytest.mark.parametrize(
    ("host", "recorded", "answered"),
    [
        ("127.0.0.1:8000", "unknown", ""),
        ("openai.azure.com.example.org", "unknown", ""),
        ("EU.API.OpenAI.com:443", "openai", "openai"),
        ("some-resource.openai.azure.com", "openai", "openai"),
    ],
)
async def test_a_model_of_an_own_server_is_of_the_family_that_its_own_name_shows(
    host: str, recorded: str, answered: str, orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.own_server, gateway.answering_route = host, "openai/mine"
    gateway.default_routes = ("openai/mine", "openai/other")
    team = [
        inline("ada", routes=["openai/gemma-3"]),
        inline("bo", routes=["openai/mine"]),
        inline("cy", routes=["openai/other"]),
    ]
    debate = await orchestrator.create(rounds=1, agents=team)
    await orchestrator.watch(debate)
    found = await orchestrator.get(debate)
    assert [each.agent.model_family for each in found.spec.agents] == ["google", recorded, recorded]
    assert found.spec.judge.agent.model_family == recorded
    assert found.outcome.effect.judge_family == answered


async def test_of_an_own_server_that_answers_as_second_route_its_own_name_shows_no_family_either(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.own_server, gateway.answering_route = "127.0.0.1:8000", "openai/mine"
    gateway.default_routes = ("openai/gpt-5",)
    team = [inline(each, routes=["openai/gemma-3", "openai/mine"]) for each in ("ada", "bo")]
    debate = await orchestrator.create(rounds=1, agents=team)
    await orchestrator.watch(debate)
    found = await orchestrator.get(debate)
    assert [each.agent.model_family for each in found.spec.agents] == ["google", "google"]
    assert list(found.outcome.effect.agent_families) == []


@pytest.mark.parametrize(
    ("offered", "judged_by", "said"),
    [
        (("p/gpt-5-mini", "p/claude-9"), ["p/claude-9", "p/gpt-5-mini"], "no agent's model is of its family"),
        (("p/gpt-5-mini", "p/gpt-5"), [], "all models are of one family (openai)"),
    ],
)
async def test_the_judge_is_of_another_family_where_a_route_is_and_the_result_says_who_judged_and_why(
    offered: tuple[str, ...],
    judged_by: list[str],
    said: str,
    orchestrator: Orchestrator,
    gateway: ScriptedGateway,
) -> None:
    gateway.default_routes = offered
    debate = await orchestrator.create(rounds=1)
    await orchestrator.watch(debate)
    found = await orchestrator.get(debate)
    assert list(found.spec.judge.agent.routes) == judged_by
    assert {each.agent.model_family for each in found.spec.agents} == {"openai"}
    assert said in found.judge_reason
    report = await orchestrator.stub.GetReport(
        orchestrator_pb2.GetReportRequest(debate_id=debate), timeout=10
    )
    assert said in report.markdown


async def test_the_same_request_is_the_same_debate_and_other_content_is_refused(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    spec = debate_pb2.DebateSpec(question="Is water wet?", panel=PanelSettings(rounds=1))
    request = orchestrator_pb2.CreateDebateRequest(request_id="r", spec=spec)
    answers = await asyncio.gather(*(orchestrator.stub.CreateDebate(request, timeout=10) for _ in range(4)))
    assert len({each.debate_id for each in answers}) == 1
    assert sorted(each.existed for each in answers) == [False, True, True, True]
    spec.question = "Is fire wet?"
    failure = await failure_of(
        orchestrator.stub.CreateDebate(orchestrator_pb2.CreateDebateRequest(request_id="r", spec=spec))
    )
    assert (failure.code, failure.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
    await orchestrator.watch(answers[0].debate_id)
    assert len(gateway.calls) == 15


async def test_the_content_of_a_request_is_reckoned_once(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    reckoned: list[Message] = []

    def digest_and_count(content: Message) -> str:
        reckoned.append(content)
        return digest(content)

    monkeypatch.setattr(requests, "digest", digest_and_count)
    await orchestrator.create()
    assert [each.question for each in reckoned if isinstance(each, debate_pb2.DebateSpec)] == [
        "Is water wet?"
    ]


async def test_an_accepted_debate_is_durable_when_it_is_answered(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path
) -> None:
    gateway.hold("*")
    async with (
        orchestrating(tmp_path, gateway_server, over_sockets=True) as served,
        open_store(f"sqlite:///{tmp_path}", "orchestrator") as beside,
    ):
        debate = await served.create()
        (record, *_) = await beside.log.read(f"default/{debate}")
        assert kind_of(event_pb2.Event.FromString(record.entries[0])) == "debate_created"


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
    assert found.outcome.panel.synthesized_by == "jim"


async def test_the_smallest_known_context_of_an_agents_routes_is_frozen_with_the_debate(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.contexts = {"p/m": 64_000, "open/small": 8192, "open/large": 128_000}
    agents = [
        inline("jack", routes=["open/large", "open/small", "open/unknown"]),
        inline("jill", routes=["open/unknown"], context_tokens=1_000_000),
        inline("joe"),
    ]
    debate = await orchestrator.create(agents=agents, judge=inline("jim", routes=["open/large"]))
    await orchestrator.watch(debate)
    spec = (await orchestrator.get(debate)).spec
    assert [each.agent.context_tokens for each in spec.agents] == [8192, 0, 64_000]
    assert spec.judge.agent.context_tokens == 128_000


async def test_a_context_that_nothing_tells_is_said_once_and_before_the_first_call(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.contexts = {"p/m": 64_000}
    agents = [inline("jack", routes=["open/a"]), inline("jill", routes=["open/a", "open/b"]), inline("joe")]
    debate = await orchestrator.create(agents=agents)
    warned = [each for each in events_of(await orchestrator.watch(debate)) if kind_of(each) == "warned"]
    assert [each.warned.message for each in warned] == [
        (
            "the context size of open/a, open/b is unknown: 32,768 tokens are assumed; set its context_tokens, "
            "or PARLEY_CONTEXT_TOKENS at the gateway"
        )
    ]
    assert (await orchestrator.get(debate)).warnings == [warned[0].warned.message]
    gateway.contexts |= {"open/a": 4096, "open/b": 4096}
    debate = await orchestrator.create(request_id="other", agents=agents)
    await orchestrator.watch(debate)
    assert not (await orchestrator.get(debate)).warnings


async def test_why_the_rounds_ended_stands_in_the_debate(orchestrator: Orchestrator) -> None:
    debate = await orchestrator.create(rounds=2)
    await orchestrator.watch(debate)
    found = await orchestrator.get(debate)
    assert found.stop_reason == debate_pb2.STOP_REASON_ALL_ROUNDS_COMPLETED
    assert found.stop_explanation == "all 2 rounds were held"


async def test_without_a_gateway_nothing_is_accepted_and_the_caller_is_told(tmp_path: Path) -> None:
    async with ScriptedGateway().served() as gone:
        pass
    async with orchestrating(tmp_path, gone, over_sockets=True) as served:
        failure = await failure_of(served.create())
    assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "GATEWAY_UNAVAILABLE")


async def test_a_draining_replica_ends_its_streams_gives_its_debates_up_and_takes_no_new_ones(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path
) -> None:
    hold = gateway.hold("synthesis")
    async with orchestrating(tmp_path, gateway_server, over_sockets=True) as one:
        debate = await one.create()
        await hold.reached.wait()
        seen: list[int] = []

        async def follow() -> None:
            async for message in one.stub.WatchDebate(
                orchestrator_pb2.WatchDebateRequest(debate_id=debate), timeout=10
            ):
                seen.append(message.event.sequence)  # noqa: PERF401 (it is read while it grows)

        watching = asyncio.create_task(failure_of(follow()))
        await until(lambda: _any(seen), "the first event")
        draining = asyncio.create_task(one.server.drain())
        failure = await watching
        assert (failure.code, failure.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert (await failure_of(one.create())).code == grpc.StatusCode.UNAVAILABLE
        await draining
    hold.release()
    async with orchestrating(tmp_path, gateway_server, over_sockets=True) as two:
        rest = events_of(await two.watch(debate, seen[-1]))
    assert [each.sequence for each in rest] == list(range(seen[-1] + 1, seen[-1] + 1 + len(rest)))
    assert kind_of(rest[-1]) == "closed"
    assert gateway.steps().count("round/1/propose/ada") == 1


async def _any(seen: list[int]) -> bool:
    return bool(seen)


async def test_a_tenant_sees_its_own_debates_only(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    stub, mine = orchestrator.stub, (("parley-tenant", "acme"),)
    spec = debate_pb2.DebateSpec(question="Is water wet?", panel=PanelSettings(rounds=1))
    request = orchestrator_pb2.CreateDebateRequest(request_id="r", spec=spec)
    ours = (await stub.CreateDebate(request, metadata=mine, timeout=10)).debate_id
    theirs = (await stub.CreateDebate(request, timeout=10)).debate_id
    assert ours != theirs, "a request id is a tenant's own"
    for metadata, own, foreign in ((mine, ours, theirs), ((), theirs, ours)):
        listed = await stub.ListDebates(orchestrator_pb2.ListDebatesRequest(), metadata=metadata, timeout=10)
        assert [each.id for each in listed.debates] == [own]
        cancel = debate_pb2.Intervention(cancel=debate_pb2.Cancel())
        act = orchestrator_pb2.InterveneRequest(request_id="w", debate_id=foreign, intervention=cancel)
        for call in (
            stub.GetDebate(
                orchestrator_pb2.GetDebateRequest(debate_id=foreign), metadata=metadata, timeout=10
            ),
            stub.GetReport(
                orchestrator_pb2.GetReportRequest(debate_id=foreign), metadata=metadata, timeout=10
            ),
            stub.Intervene(act, metadata=metadata, timeout=10),
            _read_first(
                stub.WatchDebate(
                    orchestrator_pb2.WatchDebateRequest(debate_id=foreign), metadata=metadata, timeout=10
                )
            ),
        ):
            assert (await failure_of(call)).code == grpc.StatusCode.NOT_FOUND
    watched = stub.WatchDebate(orchestrator_pb2.WatchDebateRequest(debate_id=ours), metadata=mine, timeout=10)
    assert kind_of([each async for each in watched][-1].event) == "closed"
    assert {each.tenant for each in gateway.calls if each.debate == ours} == {"acme"}


async def _read_first(stream: Any) -> Any:
    return await anext(aiter(stream))


async def test_a_caller_that_leaves_or_is_short_of_time_does_not_hurry_its_debate(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/*")
    spec = debate_pb2.DebateSpec(question="Is water wet?", panel=PanelSettings(rounds=1))
    request = orchestrator_pb2.CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
    metadata = (("parley-tenant", "default"),)
    debate = (await orchestrator.stub.CreateDebate(request, timeout=20, metadata=metadata)).debate_id
    await gateway.wait_for("round/1/propose/*", 3)
    assert all((each.remaining or 0) > 80 for each in gateway.calls), "the call's own time, not its caller's"
    hold.release()
    assert kind_of(events_of(await orchestrator.watch(debate))[-1]) == "closed"


async def test_a_caller_that_cancels_its_request_may_send_it_again(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    spec = debate_pb2.DebateSpec(question="Is water wet?", panel=PanelSettings(rounds=1))
    for turns in range(0, 60, 6):
        request = orchestrator_pb2.CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
        call = orchestrator.stub.CreateDebate(request, timeout=10)
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        debate = (await orchestrator.stub.CreateDebate(request, timeout=10)).debate_id
        events = events_of(await orchestrator.watch(debate))
        assert [kind_of(each) for each in events].count("debate_created") == 1
        assert kind_of(events[-1]) == "closed"
