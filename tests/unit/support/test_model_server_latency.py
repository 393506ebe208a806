import asyncio
from statistics import median
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from tests.support.model_server import BENCH_KEY_HEADER, Latency, ModelServer, Rule
from tests.support.model_server.answers import digest_of
from tests.unit.support.clients import ask, client_of, deltas, stream_text


@given(st.integers(), st.text(), st.floats(0, 2))
def test_a_draw_follows_from_seed_and_key_alone(seed: int, key: str, sigma: float) -> None:
    latency = Latency(median=0.2, sigma=sigma, seed=seed)
    assert latency.draw(key) == latency.draw(key) > 0


def test_log_normal_draws_have_their_median_and_spread() -> None:
    draws = sorted(Latency(median=0.2, sigma=0.6, seed=7).draw(str(n)) for n in range(4000))
    assert median(draws) == pytest.approx(0.2, rel=0.05)
    assert draws[int(0.8413 * 4000)] / median(draws) == pytest.approx(2.718**0.6, rel=0.08)
    assert Latency(median=0.2, sigma=0.6, seed=8).draw("1") != Latency(median=0.2, sigma=0.6, seed=7).draw(
        "1"
    )


@pytest.mark.parametrize("prompts", ["abac", "caba"])
async def test_the_nth_call_of_a_prompt_takes_as_long_in_whatever_order_calls_come(prompts: str) -> None:
    latency = Latency(median=0.06, sigma=0.8, seed=5)
    async with ModelServer(latency=latency) as server, client_of(server) as client:
        for prompt in prompts:
            await ask(client, "responses", prompt)
        calls = server.ledger.calls
    draws = [latency.draw(f"{digest_of(r.path, r.model, r.prompt)}/{r.occurrence}") for r in calls]
    assert len(set(draws)) == 4
    for record, draw in zip(calls, draws, strict=True):
        assert draw <= record.ended - record.started < draw + 5


async def test_a_caller_may_name_the_draw_with_a_header(
    model_server: ModelServer, openai_client: AsyncOpenAI
) -> None:
    model_server.latency = Latency(median=0.05, sigma=0.8, seed=3)
    expected = model_server.latency.draw("ada/1")
    for prompt in ("one", "two"):
        await openai_client.responses.create(
            model="small", input=prompt, extra_headers={BENCH_KEY_HEADER: "ada/1"}
        )
    for record in model_server.ledger.calls:
        assert expected <= record.ended - record.started < expected + 5
        assert record.headers["x-parley-bench-key"] == "ada/1"


@pytest.mark.parametrize("share", [0.25, 1.0])
async def test_a_stream_takes_as_long_as_a_whole_answer(
    model_server: ModelServer, openai_client: AsyncOpenAI, share: float
) -> None:
    model_server.latency = Latency(median=0.2, first_token_share=share)
    await asyncio.gather(ask(openai_client, "chat"), stream_text(openai_client, "responses"))
    for record in model_server.ledger.calls:
        assert 0.2 <= record.ended - record.started < 5


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_words_come_at_their_pace_after_the_first(
    model_server: ModelServer, openai_client: AsyncOpenAI, api: str
) -> None:
    model_server.rules = [Rule(answer="one two three four five", latency=Latency(median=0.1, per_token=0.04))]
    begun = monotonic()
    arrived = [monotonic() - begun async for _ in deltas(openai_client, api)]
    assert len(arrived) == 5
    assert arrived[0] >= 0.1
    assert arrived[-1] >= 0.1 + 4 * 0.04


def test_a_latency_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="first_token_share"):
        Latency(first_token_share=1.5)
    with pytest.raises(ValueError, match="times are 0 or more"):
        Latency(median=-1)
