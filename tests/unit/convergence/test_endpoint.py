"""What an embeddings endpoint answers is vectors, or refused: one bad number would spoil every comparison."""

import gzip
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from parley.convergence.endpoint import EndpointEmbedder, parse_vectors
from parley.convergence.vectors import Vector
from parley.runtime.errors import ParleyError


def test_vectors_come_out_with_length_one() -> None:
    one, other = parse_vectors([[3.0, 4.0], [0.0, 0.0]])
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
        parse_vectors(answered)
    assert raised.value.reason == "EMBEDDINGS_UNAVAILABLE"


async def embed_at(answer: web.Response) -> list[Vector]:
    """What comes of three texts at an endpoint that answers so."""

    async def say(_: web.Request) -> web.Response:
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    application = web.Application()
    application.router.add_post("/v1/embeddings", say)
    async with TestServer(application) as server:
        endpoint = EndpointEmbedder(str(server.make_url("/v1")), "key", "a-model")
        try:
            return await endpoint.embed(["zero", "one", "two"])
        finally:
            await endpoint.close()


def vectors_at(indices: Sequence[int], size: int = 3) -> dict[str, Any]:
    """An answer with a vector for each of these places, with a one at the place."""
    return {
        "data": [{"index": each, "embedding": [float(each == n) for n in range(size)]} for each in indices]
    }


async def test_each_text_gets_its_own_vector_in_whatever_order_they_are_answered() -> None:
    vectors = await embed_at(web.json_response(vectors_at([2, 0, 1])))
    assert [int(each.argmax()) for each in vectors] == [0, 1, 2]


@pytest.mark.parametrize("indices", [[0, 1], [0, 1, 1], [0, 1, 3]], ids=["too few", "twice", "of no text"])
async def test_vectors_that_are_not_one_for_each_text_are_refused(indices: list[int]) -> None:
    with pytest.raises(ParleyError, match=f"{len(indices)} vectors for 3 texts"):
        await embed_at(web.json_response(vectors_at(indices)))


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(text="<html>Welcome</html>", content_type="text/html"),
        web.Response(text="{", content_type="application/json"),
        web.json_response([1]),
        web.json_response({"data": None}),
        web.json_response({"data": [{"index": 0, "embedding": ["x"]}]}),
    ],
    ids=["html", "cut", "list", "null", "words"],
)
async def test_an_answer_without_vectors_is_refused_as_one(answer: web.Response) -> None:
    with pytest.raises(ParleyError, match="answered no vectors of numbers") as raised:
        await embed_at(answer)
    assert raised.value.reason == "EMBEDDINGS_UNAVAILABLE"


async def test_no_more_of_an_answer_is_read_than_vectors_have() -> None:
    bomb = gzip.compress(b" " * 4_194_305, compresslevel=1)
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    with pytest.raises(ParleyError, match="answered more than 4194304 bytes"):
        await embed_at(web.Response(body=bomb, headers=headers))
