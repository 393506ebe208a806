"""A service that starts without its store says so in one line, and one that stops without it stops in time."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from parley.gateway import __main__ as gateway
from parley.gateway.settings import GatewaySettings
from parley.memory import __main__ as memory
from parley.memory.settings import MemorySettings
from parley.orchestrator import __main__ as orchestrator
from parley.orchestrator.allowance.usage import TenantUsage
from parley.orchestrator.engine.runner import Runner
from parley.orchestrator.settings import OrchestratorSettings
from parley.ratings import __main__ as ratings
from parley.ratings.settings import RatingsSettings
from parley.runtime.draining import Draining
from parley.runtime.errors import ConfigurationError

_NOBODY = "mongodb://127.0.0.1:1/?timeoutMS=200"

Build = Callable[[str], AbstractAsyncContextManager[Any]]

_SERVICES: dict[str, Build] = {
    "orchestrator": lambda store: orchestrator.build(OrchestratorSettings(store=store)),
    "gateway": lambda store: gateway.build(GatewaySettings(store=store)),
    "ratings": lambda store: ratings.build(RatingsSettings(store=store)),
    "memory": lambda store: memory.build(MemorySettings(store=store)),
}


@pytest.mark.parametrize("service", _SERVICES)
@pytest.mark.parametrize("store", [_NOBODY, "postgres://elsewhere"])
async def test_a_service_without_its_store_says_so_in_one_line_that_names_the_setting(
    service: str, store: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        async with _SERVICES[service](store):
            pass
    (problem,) = refused.value.problems
    assert problem.startswith("PARLEY_STORE")
    assert problem.count("PARLEY_STORE") == 1
    assert "\n" not in problem


async def test_an_orchestrator_whose_store_has_gone_away_stops_in_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait_for_store(*_: object) -> None:
        await asyncio.Event().wait()

    settings = OrchestratorSettings(store=f"sqlite:///{tmp_path}", grace_seconds=0.5)
    draining = Draining()
    async with asyncio.timeout(30), orchestrator.build(settings, draining=draining):
        monkeypatch.setattr(Runner, "_release_all", wait_for_store)
        monkeypatch.setattr(TenantUsage, "publish", wait_for_store)
        draining.set()
