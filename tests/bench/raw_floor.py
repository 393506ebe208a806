"""The least that a durable debate costs in Python: its calls by bare aiohttp, each answer chained by SHA-256 and committed before it is used."""

import asyncio
import hashlib
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue

import aiohttp

from tests.bench.graph import JUDGEMENT, Ask, Place
from tests.support.model_server import BENCH_KEY_HEADER

_MOST = 1000
"""Answers of one commit."""


class _CommittedAnswers:
    """A SQLite table whose thread commits all answers that wait at once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._waiting: SimpleQueue[tuple[bytes, str, asyncio.Future[None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="floor's writer")
        self._thread.start()

    async def add(self, digest: bytes, text: str) -> None:
        """Return once the answer is committed."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put((digest, text, future))
        await future

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        connection = sqlite3.connect(self._file)
        connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE answers (digest BLOB, text TEXT)"
        )
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while not self._waiting.empty() and len(batch) < _MOST:
                if (each := self._waiting.get()) is None:
                    self._waiting.put(None)  # the end comes after this batch
                    break
                batch.append(each)
            connection.executemany("INSERT INTO answers VALUES (?, ?)", [each[:2] for each in batch])
            connection.commit()
            self._loop.call_soon_threadsafe(_notify, [future for _, _, future in batch])
        connection.close()


def _notify(futures: list[asyncio.Future[None]]) -> None:
    for each in futures:
        each.set_result(None)


class RawFloor:
    """Asks what is asked at each place, and nothing more than keeps the answer."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, model: str, answers: _CommittedAnswers
    ) -> None:
        self._session = session
        self._url = f"{url}/chat/completions"
        self._model = model
        self._answers = answers

    def over(self, places: Mapping[str, Place]) -> Ask:
        """Return what asks at the place that a step has, with a chain of its own."""
        chain = hashlib.sha256()

        async def ask(key: str) -> None:
            text = await self._ask(places[key])
            chain.update(text.encode())
            await self._answers.add(chain.digest(), text)

        return ask

    async def _ask(self, place: Place) -> str:
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": "user", "content": place.prompt}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if place.structured:
            body["response_format"] = JUDGEMENT
        headers = {BENCH_KEY_HEADER: place.latency_key, "Authorization": "Bearer bench"}
        async with self._session.post(self._url, json=body, headers=headers) as response:
            assert response.status == 200, await response.text()
            return _read_text(await response.read())


def _read_text(stream: bytes) -> str:
    chunks = [json.loads(line[6:]) for line in stream.split(b"\n") if line.startswith(b"data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


@asynccontextmanager
async def raw_floor(base_url: str, model: str, folder: Path) -> AsyncIterator[RawFloor]:
    """Open a session of aiohttp and a file for the answers."""
    answers = _CommittedAnswers(folder / "answers.db")
    try:
        async with aiohttp.ClientSession() as session:
            yield RawFloor(session, base_url, model, answers)
    finally:
        await answers.close()
