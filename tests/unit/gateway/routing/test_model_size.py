"""Which models are so small that a debate of theirs is a demonstration."""

import pytest

from parley.gateway.routing.model_size import is_tiny


@pytest.mark.parametrize(
    "name",
    [
        "smollm",
        "smollm2:135m",
        "SmolLM2-360M-Instruct",
        "HuggingFaceTB/SmolLM2-135M",
        "qwen2.5:0.5b",
        "qwen2.5-0.5b-instruct-q4_k_m",
        "gemma-3-270m-it",
        "Qwen/Qwen3-0.6B",
        "tinyllama:999m",
    ],
)
def test_a_model_of_less_than_a_billion_parameters_is_tiny_by_its_name(name: str) -> None:
    assert is_tiny(name)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5-mini",
        "llama3.2:1b",
        "llama3.2:3b",
        "smollm2:1.7b",
        "SmolLM3-3B",
        "mixtral-8x7b",
        "qwen2.5-7b-instruct-1m",
        "claude-sonnet-4-1m",
        "model-q4_k_m",
        "m",
        "test-model",
        "phi3:3.8b",
        "openrouter/auto",
    ],
)
def test_any_other_is_not(name: str) -> None:
    assert not is_tiny(name)


def test_what_its_server_says_comes_before_its_name() -> None:
    assert is_tiny("my-model", 134_515_008)
    assert not is_tiny("smollm", 1_711_376_384)
