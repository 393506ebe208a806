"""Debates as models, streamed: what the agents say as reasoning, then the answer; and who hangs up."""

import asyncio
import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from parley.edge.chat import endpoint
from parley.v1 import debate_pb2
from tests.integration.edge.conftest import Edge
from tests.support.orchestration import WITHIN
from tests.support.scripted_answers import judgement
from tests.support.scripted_gateway import ScriptedGateway

_QUESTION: list[Any] = [{"role": "user", "content": "Is water wet?"}]
_BODY = {"model": "panel", "messages": _QUESTION, "stream": True}


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"edge_streams_per_caller": 2}


def collect(parts: list[Any]) -> tuple[str, str]:
    """Return the reasoning and the answer."""
    deltas = [each.choices[0].delta for each in parts if each.choices]
    reasoning = "".join(getattr(each, "reasoning_content", None) or "" for each in deltas)
    return reasoning, "".join(each.content or "" for each in deltas)


async def test_the_debate_streams_as_reasoning_and_then_the_answer(edge: Edge, client: AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="panel", messages=_QUESTION, stream=True, stream_options={"include_usage": True}
    )
    parts: list[Any] = [each async for each in stream]
    debate = await edge.orchestrator.get(parts[0].parley["debate_id"])
    reasoning, answer = collect(parts)
    assert answer == debate.answer
    assert "### Round 1 of " in reasoning
    for each in debate.contributions:
        if each.work.activity == "proposal":
            assert (
                f"**{each.work.agent_id} · proposal**\n\n{each.reply.rendered or each.reply.text}"
                in reasoning
            )
    assert "The answer." not in reasoning
    assert [each.choices[0].finish_reason for each in parts if each.choices][-1] == "stop"
    assert parts[-1].choices == []
    assert 0 < parts[-1].usage.prompt_tokens <= debate.usage.input_tokens
    assert {each.parley["debate_id"] for each in parts} == {debate.id}


async def test_usage_comes_only_if_it_is_asked_for(client: AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model="panel", messages=_QUESTION, stream=True)
    assert all(each.usage is None for each in [part async for part in stream])


async def test_a_client_without_asyncio_follows_too(edge: Edge) -> None:
    def ask() -> str:
        with OpenAI(base_url=f"{edge.url}/v1", api_key="none", max_retries=0, timeout=WITHIN) as client:
            parts = client.chat.completions.create(model="panel", messages=_QUESTION, stream=True)
            return collect(list(parts))[1]

    assert "The answer." in await asyncio.to_thread(ask)


async def test_the_stream_ends_with_done_and_carries_the_debate_in_a_header(edge: Edge) -> None:
    async with edge.session.post(f"{edge.url}/v1/chat/completions", json=_BODY) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.headers["Parley-Debate-Id"].startswith("deb-")
        blocks = (await answer.text()).split("\n\n")
    assert blocks[-2:] == ["data: [DONE]", ""]
    assert json.loads(blocks[0].removeprefix("data: "))["choices"][0]["delta"]["role"] == "assistant"


async def test_a_debate_without_news_keeps_the_connection_alive(
    edge: Edge, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "_SILENCE_SECONDS", 0.01)
    hold = gateway.hold("*")
    async with edge.session.post(f"{edge.url}/v1/chat/completions", json=_BODY) as answer:
        while await answer.content.readline() != b": alive\n":
            pass
        hold.release()
        assert (await answer.text()).endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("stream", [True, False])
async def test_hanging_up_leaves_the_debate_running(
    edge: Edge, gateway: ScriptedGateway, *, stream: bool
) -> None:
    hold = gateway.hold("*")
    debate = await ask_and_hang_up(edge, stream=stream)
    await edge.wait_for_two_streams(debate)
    hold.release()
    await edge.orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)


@pytest.mark.parametrize("stream", [True, False])
async def test_hanging_up_cancels_the_debate_if_a_header_says_so(
    edge: Edge, gateway: ScriptedGateway, *, stream: bool
) -> None:
    gateway.hold("*")
    debate = await ask_and_hang_up(edge, stream=stream, **{"Parley-Cancel-On-Disconnect": "true"})
    await edge.orchestrator.status(debate, debate_pb2.DEBATE_STATUS_CANCELLED)


async def test_a_caller_that_has_too_many_streams_begins_no_debate(
    edge: Edge, client: AsyncOpenAI, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("*")
    debate = await edge.create()
    url, mine = f"{edge.url}/v1/debates/{debate}/events", {"Authorization": "Bearer none"}
    async with edge.session.get(url, headers=mine), edge.session.get(url, headers=mine):
        with pytest.raises(openai.RateLimitError) as caught:
            await client.chat.completions.create(model="panel", messages=_QUESTION)
        assert caught.value.code == "too_many_streams"
        hold.release()
    assert len((await edge.post("ListDebates", {}))[1]["debates"]) == 1


async def test_a_cancelled_debate_ends_the_stream_with_an_error(
    edge: Edge, client: AsyncOpenAI, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("*")
    stream = await client.chat.completions.create(model="panel", messages=_QUESTION, stream=True)
    first: Any = await anext(stream)
    await edge.orchestrator.intervene(first.parley["debate_id"], cancel={})
    hold.release()
    with pytest.raises(openai.APIError, match="was cancelled"):
        async for _ in stream:
            pass


async def ask_and_hang_up(edge: Edge, *, stream: bool, **headers: str) -> str:
    """Ask a question, close the connection as soon as its debate is there, and return the debate."""

    async def ask() -> None:
        body = {**_BODY, "stream": stream}
        async with edge.session.post(f"{edge.url}/v1/chat/completions", json=body, headers=headers) as answer:
            await answer.read()

    asking = asyncio.create_task(ask())
    debate = await edge.wait_for_debate()
    asking.cancel()
    await asyncio.wait({asking})
    return debate


async def test_what_agents_write_commands_no_terminal(client: AsyncOpenAI, gateway: ScriptedGateway) -> None:
    gateway.text = lambda _step, agent: f"\x1b]0;title\x07\x1b[2J{agent} proposes.\u202e"
    gateway.judge = lambda schema: judgement(schema, description="\x1b[2JThe answer.\u202e")
    stream = await client.chat.completions.create(model="panel", messages=_QUESTION, stream=True)
    reasoning, answer = collect([each async for each in stream])
    assert "ada proposes." in reasoning
    assert "The answer." in answer
    assert not {"\x1b", "\x07", "\u202e"} & {*reasoning, *answer}
