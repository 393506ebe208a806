"""What tokens cost, and who says so."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from parley.gateway.routing.prices import Price, Prices, PublishedPrices, Seller, load_prices

OPENAI = Seller("https://api.openai.com/v1", "openai")
SELLERS = {
    "openai": OPENAI,
    "openrouter": Seller("https://openrouter.ai/api/v1", "openrouter"),
    "groq": Seller("https://api.groq.com/openai/v1"),
    "azure": Seller("https://name.openai.azure.com/openai/v1"),
    "house": Seller("https://models.example.com/v1"),
    "here": Seller("http://localhost:8000/v1"),
}


@pytest.fixture
async def loaded() -> PublishedPrices:
    published = PublishedPrices()
    await published.load()
    return published


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "o3-mini"),
        ("openai", "gpt-4.1-2025-04-14"),
        ("openrouter", "openai/gpt-4.1"),
        ("groq", "llama-3.3-70b-versatile"),
        ("azure", "gpt-4o"),
    ],
)
async def test_sellers_of_models_publish_their_prices(
    provider: str, model: str, loaded: PublishedPrices
) -> None:
    price = load_prices(None, SELLERS, loaded).of(provider, model)
    assert price is not None
    assert 0 < price.input < price.output < 100


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "no-such"), ("house", "gpt-4o"), ("here", "gpt-4o"), ("unknown", "gpt-4o")],
)
async def test_what_nobody_publishes_is_unknown(provider: str, model: str, loaded: PublishedPrices) -> None:
    assert load_prices(None, SELLERS, loaded).of(provider, model) is None


async def test_sellers_of_models_publish_their_contexts_too(loaded: PublishedPrices) -> None:
    prices = load_prices(None, SELLERS, loaded)
    assert prices.context_of("openai", "gpt-4o-mini") == 128_000
    assert prices.context_of("house", "gpt-4o-mini") == 0
    assert prices.context_of("unknown", "gpt-4o-mini") == 0
    assert load_prices(None, SELLERS, PublishedPrices()).context_of("openai", "gpt-4o-mini") == 0


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-5-mini", 400_000),
        ("openai/gpt-4o", 128_000),
        ("claude-sonnet-4-5", 200_000),
        ("gemini-2.5-pro", 1_048_576),
        ("gpt-oss-20b", 0),
        ("llama3.1:8b", 0),
        ("gpt-of-my-own", 0),
        ("test", 0),
    ],
)
async def test_a_model_that_only_its_maker_serves_is_known_behind_any_address(
    model: str, tokens: int, loaded: PublishedPrices
) -> None:
    assert load_prices(None, SELLERS, loaded).context_by_name(model) == tokens
    unloaded = load_prices(None, SELLERS, PublishedPrices())
    assert unloaded.context_by_name(model) == 0
    assert unloaded.may_be_published("here", model) == (tokens > 0 or model == "gpt-of-my-own")


async def test_the_operators_table_comes_first_then_ours_then_what_is_published(tmp_path: Path) -> None:
    published = PublishedPrices()
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"openai/gpt-4o": {"input": 1, "output": 2}}))
    prices = load_prices(path, SELLERS, published)
    assert prices.of("openai", "gpt-4o-2030-01-01") == Price(input=1, output=2)
    assert prices.of("openai", "gpt-5") == Price(input=1.25, output=10)
    assert prices.of("openai", "o3-mini") is None
    assert prices.may_be_published("openai")
    assert not prices.may_be_published("here")
    await prices.load_published()
    assert prices.of("openai", "o3-mini") is not None
    assert prices.of("openai", "gpt-4o") == Price(input=1, output=2)
    assert not prices.may_be_published("openai")


@pytest.mark.parametrize("url", ["http://localhost:1/v1", "http://10.0.0.7/v1", "http://[::1]:1/v1"])
def test_nothing_is_loaded_for_an_address_of_this_house(url: str) -> None:
    assert not Prices({"p": Seller(url)}, {}, {}, PublishedPrices()).may_be_published("p")


def test_the_gateway_starts_without_the_published_prices() -> None:
    code = "import sys, parley.gateway.__main__; print('genai_prices' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
