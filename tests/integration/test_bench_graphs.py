"""Benchmarks find each call of a debate by words of its prompt, so that a bare client can make the same calls."""

import os
from unittest.mock import patch

from tests.bench.graph import Shape
from tests.bench.models import model_server
from tests.bench.spans import measure_ours
from tests.bench.system import system
from tests.support.model_server import Latency


async def test_each_call_of_a_measured_panel_belongs_to_one_step() -> None:
    """A prompt in other words would end every benchmark of panels."""
    shape = Shape(2, 1)
    with patch.dict(os.environ):  # it is set for a benchmark's process alone
        async with model_server() as models, system(models.base_url) as client:
            span = await measure_ours(models, client, shape, Latency(), "Which prompts?")

    assert len(span.places) == shape.calls
