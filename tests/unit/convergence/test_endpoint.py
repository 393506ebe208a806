"""What an embeddings endpoint answers is vectors, or refused: one bad number would spoil every comparison."""

from typing import Any
from unittest.mock import AsyncMock

import numpy as np
import pytest
from openai.types import CreateEmbeddingResponse, Embedding
from openai.types.create_embedding_response import Usage

from parley.convergence.endpoint import EndpointEmbedder, vectors_of
from parley.runtime.errors import ParleyError


def test_vectors_come_out_with_length_one() -> None:
    one, other = vectors_of([[3.0, 4.0], [0.0, 0.0]])
    assert one.tolist() == pytest.approx([0.6, 0.8])
    assert np.isfinite(other).all()


@pytest.mark.parametrize(
    "answered",
    [
        [[1.0, float("nan")]],
        [[float("inf"), 0.0]],
        [[1e39, 0.0]],
        [[]],
        [[1.0], [1.0, 2.0]],
        [["x"]],
        [None],
        [[None]],
    ],
    ids=["nan", "inf", "too large", "none", "of two lengths", "text", "null", "null inside"],
)
def test_what_is_no_vector_is_refused(answered: Any) -> None:
    with pytest.raises(ParleyError, match="embeddings endpoint") as raised:
        vectors_of(answered)
    assert raised.value.reason == "EMBEDDINGS_UNAVAILABLE"


def answering(indices: list[int]) -> EndpointEmbedder:
    """An endpoint that answers a vector for each of these places, with a one at the place."""
    endpoint = EndpointEmbedder("http://127.0.0.1:9/v1", "key", "a-model", 1.0)
    data = [
        Embedding(index=each, embedding=[float(each == n) for n in range(3)], object="embedding")
        for each in indices
    ]
    endpoint._client.embeddings.create = AsyncMock(  # type: ignore[method-assign]
        return_value=CreateEmbeddingResponse(
            data=data, model="a-model", object="list", usage=Usage(prompt_tokens=1, total_tokens=1)
        )
    )
    return endpoint


async def test_each_text_gets_its_own_vector_in_whatever_order_they_are_answered() -> None:
    endpoint = answering([2, 0, 1])
    vectors = await endpoint.embed(["zero", "one", "two"])
    await endpoint.close()
    assert [int(each.argmax()) for each in vectors] == [0, 1, 2]


@pytest.mark.parametrize("indices", [[0, 1], [0, 1, 1], [0, 1, 3]], ids=["too few", "twice", "of no text"])
async def test_vectors_that_are_not_one_for_each_text_are_refused(indices: list[int]) -> None:
    endpoint = answering(indices)
    with pytest.raises(ParleyError, match=f"{len(indices)} vectors for 3 texts"):
        await endpoint.embed(["zero", "one", "two"])
    await endpoint.close()
