"""Debates as models: asked with OpenAI's client, in one piece or streamed."""

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from parley.edge.__main__ import run_edge
from parley.edge.chat import endpoint
from parley.edge.settings import EdgeSettings
from tests.integration.edge.conftest import Edge
from tests.support.orchestration import WITHIN, Orchestrator
from tests.support.scripted_gateway import ScriptedGateway

_ROUNDS = ("proposal", "critique", "refinement")
_QUESTION: list[Any] = [{"role": "user", "content": "Is water wet?"}]


async def test_the_formats_are_models(client: AsyncOpenAI) -> None:
    assert [each.id async for each in client.models.list()] == ["panel", "arena", "moderated"]
    found = await client.models.retrieve("arena")
    assert (found.id, found.object, found.owned_by) == ("arena", "model", "parley")


async def test_a_client_that_asks_for_what_is_not_served_is_told_what_is(client: AsyncOpenAI) -> None:
    with pytest.raises(
        openai.NotFoundError, match=r"there is no /v1/embeddings here; .* /v1/chat/completions"
    ) as refused:
        await client.embeddings.create(model="panel", input="Is water wet?")
    assert refused.value.code == "unknown_url"


async def test_a_method_that_a_path_does_not_take_is_refused_by_the_name_of_the_one_it_takes(
    client: AsyncOpenAI,
) -> None:
    with pytest.raises(
        openai.APIStatusError, match="/v1/chat/completions does not take GET, but POST"
    ) as refused:
        await client.get("/chat/completions", cast_to=object)
    assert (refused.value.status_code, refused.value.response.headers["Allow"]) == (405, "POST")


async def test_a_question_is_answered_with_what_the_debate_came_to(edge: Edge, client: AsyncOpenAI) -> None:
    raw = await client.chat.completions.with_raw_response.create(
        model="panel", messages=_QUESTION, temperature=0.3, max_tokens=10
    )
    answer: Any = raw.parse()
    debate = await edge.orchestrator.get(answer.parley["debate_id"])
    assert answer.choices[0].message.content == debate.answer
    assert answer.choices[0].finish_reason == "stop"
    assert debate.spec.question == "Is water wet?"
    assert debate.spec.format == "panel@1"
    assert raw.headers["Parley-Debate-Id"] == debate.id
    assert raw.headers["Parley-Ignored"] == "max_tokens, temperature"
    assert answer.parley["ignored"] == ["max_tokens", "temperature"]


async def test_usage_is_the_sum_of_the_debate(edge: Edge, client: AsyncOpenAI) -> None:
    answer: Any = await client.chat.completions.create(model="panel", messages=_QUESTION)
    debate = await edge.orchestrator.get(answer.parley["debate_id"])
    before = [each.reply.usage for each in debate.contributions if each.work.activity in _ROUNDS]
    assert answer.usage.prompt_tokens >= sum(each.input_tokens for each in before) > 0
    assert answer.usage.completion_tokens >= sum(each.output_tokens for each in before) > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert "cost" in answer.usage.model_extra


async def test_a_client_without_asyncio_is_answered_too(edge: Edge) -> None:
    def ask() -> str | None:
        with OpenAI(base_url=f"{edge.url}/v1", api_key="none", max_retries=0, timeout=WITHIN) as client:
            return (
                client.chat.completions.create(model="panel", messages=_QUESTION).choices[0].message.content
            )

    assert "The answer." in (await asyncio.to_thread(ask) or "")


async def test_what_was_said_before_is_shown_to_the_agents_as_documents(
    edge: Edge, client: AsyncOpenAI, gateway: ScriptedGateway
) -> None:
    told: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is water?"},
        {"role": "assistant", "content": "A liquid."},
        *_QUESTION,
    ]
    answer: Any = await client.chat.completions.create(model="panel", messages=told)
    debate = await edge.orchestrator.get(answer.parley["debate_id"])
    assert [each.path for each in debate.spec.context] == [
        "conversation/0001-system.md",
        "conversation/0002-user.md",
        "conversation/0003-assistant.md",
    ]
    assert debate.spec.question == "Is water wet?"


async def test_the_same_idempotency_key_is_the_same_debate(client: AsyncOpenAI) -> None:
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    ask = client.chat.completions
    first: Any = await ask.create(model="panel", messages=_QUESTION, extra_headers=headers)
    second: Any = await ask.create(model="panel", messages=_QUESTION, extra_headers=headers)
    assert first.parley["debate_id"] == second.parley["debate_id"]
    other: list[Any] = [{"role": "user", "content": "Is fire hot?"}]
    with pytest.raises(openai.ConflictError) as caught:
        await ask.create(model="panel", messages=other, extra_headers=headers)
    assert caught.value.code == "request_id_reused"


async def test_a_moderated_debate_waits_for_nobody(
    edge: Edge, client: AsyncOpenAI, gateway: ScriptedGateway
) -> None:
    gateway.hold("*")
    asking = asyncio.create_task(client.chat.completions.create(model="moderated", messages=_QUESTION))
    debate = await edge.orchestrator.get(await edge.wait_for_debate())
    asking.cancel()
    await asyncio.wait({asking})
    assert debate.spec.moderated.checkpoints is False
    assert not debate.spec.HasField("clarifications")


async def test_a_model_that_there_is_not_is_named_with_those_that_there_are(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        await client.chat.completions.create(model="gpt-4o", messages=_QUESTION)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert "panel, arena, moderated" in caught.value.message
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("gpt-4o")


async def test_what_cannot_be_honoured_is_refused_by_name_and_no_debate_begins(
    edge: Edge, client: AsyncOpenAI
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model="panel", messages=_QUESTION, n=2)
    assert (caught.value.param, caught.value.type) == ("n", "invalid_request_error")
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model="panel", messages=[{"role": "user", "content": " "}])
    assert caught.value.param == "messages"
    assert (await edge.post("ListDebates", {}))[1] == {}


async def test_a_body_that_is_too_large_is_refused(edge: Edge) -> None:
    large = {"model": "panel", "messages": [{"role": "user", "content": "x" * 4 * 1024 * 1024}]}
    async with edge.session.post(f"{edge.url}/v1/chat/completions", json=large) as answer:
        assert (answer.status, (await answer.json())["error"]["param"]) == (400, "body")


async def test_a_cancelled_debate_is_an_error_that_is_not_sent_again(
    edge: Edge, client: AsyncOpenAI, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("*")
    asking = asyncio.create_task(client.chat.completions.create(model="panel", messages=_QUESTION))
    debate = await edge.wait_for_debate()
    await edge.orchestrator.intervene(debate, cancel={})
    hold.release()
    with pytest.raises(openai.ConflictError) as caught:
        await asking
    assert caught.value.code == "debate_cancelled"
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert caught.value.response.headers["Parley-Debate-Id"] == debate


async def test_a_failed_debate_is_an_error_that_names_the_reason(
    client: AsyncOpenAI, gateway: ScriptedGateway
) -> None:
    gateway.fail("*")
    with pytest.raises(openai.InternalServerError, match="failed: ") as caught:
        await client.chat.completions.create(model="panel", messages=_QUESTION)
    assert caught.value.code == "debate_failed"
    assert caught.value.response.headers["x-should-retry"] == "false"


async def test_an_answer_that_takes_long_begins_with_empty_lines(
    client: AsyncOpenAI, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "_SILENCE_SECONDS", 0.01)
    for fails in (False, True):
        hold = gateway.hold("*")
        create = client.chat.completions.with_streaming_response.create
        async with create(model="panel", messages=_QUESTION) as raw:
            lines = raw.iter_lines()
            assert await anext(lines) == await anext(lines) == ""
            if fails:
                gateway.fail("*")
            hold.release()
            (told,) = [each async for each in lines if each]
            answer = json.loads(told)
            assert (raw.status_code, raw.headers["x-should-retry"]) == (200, "false")
        if fails:
            assert answer["error"]["code"] == "debate_failed"
        else:
            assert answer["choices"][0]["message"]["content"]
            assert raw.headers["Parley-Debate-Id"] == answer["parley"]["debate_id"]


async def test_an_orchestrator_that_is_away_is_said_to_be(edge: Edge, client: AsyncOpenAI) -> None:
    await edge.orchestrator.server.drain()
    with pytest.raises(openai.InternalServerError) as caught:
        await client.models.list()
    assert caught.value.status_code == 503
    assert "Retry-After" in caught.value.response.headers


async def test_a_team_is_asked_by_the_name_of_its_file(orchestrator: Orchestrator, tmp_path: Path) -> None:
    team = "agents: [{id: ann, role: security}, {id: bob, role: architect}]\ndebate: {rounds: 1}\n"
    (tmp_path / "review.yaml").write_text(team, encoding="utf-8")
    settings = EdgeSettings(
        port=0, orchestrator=orchestrator.server.address, grace_seconds=1, edge_teams=tmp_path
    )
    async with (
        run_edge(settings) as address,
        AsyncOpenAI(base_url=f"http://{address}/v1", api_key="none", timeout=WITHIN) as client,
    ):
        assert [each.id async for each in client.models.list()][-1] == "review"
        answer: Any = await client.chat.completions.create(model="review", messages=_QUESTION)
    spec = (await orchestrator.get(answer.parley["debate_id"])).spec
    assert [each.agent.id for each in spec.agents] == ["ann", "bob"]
