"""Replicas whose agents are asked through a real gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from parley.runtime.direct.channel import direct_channel, identify_service
from tests.integration.gateway.harness import run_with_server
from tests.support.model_server import ModelServer
from tests.support.orchestration import Backstage, backstage


@asynccontextmanager
async def open_stage_before_models(folder: Path, server: ModelServer) -> AsyncIterator[Backstage]:
    """Open a stage whose agents ask a model server."""
    async with (
        run_with_server(server) as gateway,
        direct_channel(gateway.server.direct, identify_service("orchestrator")) as models,
        backstage(folder) as stage,
    ):
        yield replace(stage, models=models)
