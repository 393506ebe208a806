"""What is read of a list of models: names, and contexts where servers tell them."""

from typing import Any

import pytest

from parley.gateway.wire.endpoint import ListedModel, text_models


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        pytest.param({"max_model_len": 8192}, 8192, id="vllm"),
        pytest.param({"meta": {"n_ctx_train": 131072, "n_ctx": 4096}}, 4096, id="llama.cpp"),
        pytest.param({"max_context_length": 131072, "loaded_context_length": 4096}, 4096, id="lm-studio"),
        pytest.param({"max_context_length": 32768}, 32768, id="mistral"),
        pytest.param({"context_window": 131072}, 131072, id="groq"),
        pytest.param({"context_length": 65536}, 65536, id="openrouter"),
        pytest.param(
            {"meta": {"n_ctx_train": 131072}}, 0, id="an old llama.cpp tells what it was trained with"
        ),
        pytest.param(
            {"max_model_len": None, "context_length": 4096}, 4096, id="the next field where one is null"
        ),
        pytest.param({"max_model_len": "8192", "meta": 7}, 0, id="no number"),
        pytest.param({"max_model_len": -1}, 0, id="no size"),
        pytest.param({"max_model_len": 2**31}, 0, id="no size that can be"),
        pytest.param({}, 0, id="ollama"),
    ],
)
def test_a_models_context_is_what_its_server_says_that_it_serves(told: dict[str, Any], tokens: int) -> None:
    assert text_models({"data": [{"id": "m", **told}]}) == (ListedModel("m", tokens),)


def test_a_model_that_is_listed_twice_is_the_first_of_both() -> None:
    listing = {"data": [{"id": "a", "max_model_len": 1}, {"id": "b"}, {"id": "a", "max_model_len": 2}]}
    assert text_models(listing) == (ListedModel("a", 1), ListedModel("b"))


@pytest.mark.parametrize(
    ("given", "parameters"),
    [({"meta": {"n_params": 134515008}}, 134515008), ({"meta": {"n_params": "x"}}, 0), ({}, 0)],
)
def test_a_models_size_is_what_its_server_says(given: dict[str, Any], parameters: int) -> None:
    assert text_models({"data": [{"id": "m", **given}]}) == (ListedModel("m", 0, parameters),)
