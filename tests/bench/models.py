"""The model server as a process of its own, so that its CPU is not counted with what is measured."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp

from tests.support.model_server import Latency, Outcome


@dataclass(frozen=True, slots=True)
class Served:
    """One call as the model server's ledger has it; times are of `time.monotonic`, in seconds."""

    path: str
    model: str
    prompt: str
    occurrence: int
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class Models:
    """The running server."""

    base_url: str
    _session: aiohttp.ClientSession

    async def begin(self, latency: Latency) -> None:
        """Forget all calls and answer with this latency from now on."""
        change = {"reset": True, "latency": asdict(latency)}
        async with self._session.post(self._url("control"), json=change) as response:
            assert response.status == 200, await response.text()

    async def follow(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Answer by these rules, as `rule_from_json` reads them, from now on."""
        async with self._session.post(self._url("control"), json={"rules": rules}) as response:
            assert response.status == 200, await response.text()

    async def served(self) -> list[Served]:
        """Return the calls for an answer since `begin`, in the order they ended; every one of them was answered."""
        async with self._session.get(self._url("ledger")) as response:
            calls = (await response.json())["calls"]
        bad = [call for call in calls if call["outcome"] != Outcome.ANSWERED]
        assert not bad, f"{len(bad)} calls were not answered, the first: {bad[0]}"
        asked = [call for call in calls if call["path"] != "/v1/models"]
        return [Served(**{name: call[name] for name in Served.__slots__}) for call in asked]

    def _url(self, name: str) -> str:
        return f"{self.base_url.removesuffix('/v1')}/{name}"


@asynccontextmanager
async def model_server(words: int = 24, *, keeps_calls: bool = True) -> AsyncIterator[Models]:
    """Run the server for as long as the block lasts; its answers have so many words.

    Unless it `keeps_calls`, it forgets each call once it has ended: large prompts would fill the memory.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.support.model_server", "--answer-words", str(words), "--positions"),
        *([] if keeps_calls else ["--forget-calls"]),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        base_url = (await process.stdout.readline()).decode().strip()
        assert base_url, "the model server did not start"
        async with aiohttp.ClientSession() as session:
            yield Models(base_url, session)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
