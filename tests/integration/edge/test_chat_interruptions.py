"""What an edge does for a chat completion when its connection to the orchestrator breaks."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai import AsyncOpenAI

from parley.edge.__main__ import run_edge
from parley.edge.settings import EdgeSettings
from tests.integration.edge.relay import Relay, run_relay
from tests.support.orchestration import WITHIN, Orchestrator
from tests.support.scripted_gateway import ScriptedGateway

_QUESTION: list[Any] = [{"role": "user", "content": "Is water wet?"}]


@pytest.fixture
async def relay(orchestrator: Orchestrator) -> AsyncIterator[Relay]:
    async with run_relay(orchestrator.server.address) as running:
        yield running


@pytest.fixture
async def client(relay: Relay) -> AsyncIterator[AsyncOpenAI]:
    settings = EdgeSettings(port=0, orchestrator=relay.address, grace_seconds=1)
    async with (
        run_edge(settings) as address,
        AsyncOpenAI(base_url=f"http://{address}/v1", api_key="none", max_retries=0, timeout=WITHIN) as opened,
    ):
        yield opened


async def test_a_completion_goes_on_after_the_connection_broke_without_a_word_twice(
    orchestrator: Orchestrator, relay: Relay, client: AsyncOpenAI, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/critique/*")
    stream = await client.chat.completions.create(model="panel", messages=_QUESTION, stream=True)
    reasoning, answer, debate = "", "", ""
    async for part in stream:
        found: Any = part
        debate = found.parley["debate_id"]
        reasoning += getattr(part.choices[0].delta, "reasoning_content", None) or ""
        answer += part.choices[0].delta.content or ""
        if "proposal**" in reasoning and not hold.released.is_set():
            relay.cut()
            hold.release()
    assert relay.connections > 1
    assert answer == (await orchestrator.get(debate)).answer
    proposals = [
        each for each in (await orchestrator.get(debate)).contributions if each.work.activity == "proposal"
    ]
    assert reasoning.count(" · proposal**") == len(proposals)
    assert reasoning.count("### Round 1 of") == 1
