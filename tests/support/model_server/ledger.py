"""What the server was asked and how it ended, call by call, in memory and as lines of a file."""

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Any

from tests.support.model_server.rules import Call

_KEPT_HEADERS = frozenset(
    {"user-agent", "traceparent", "idempotency-key", "x-request-id", "x-stainless-retry-count"}
)
_KEPT_PREFIX = "x-parley-"


class Outcome(StrEnum):
    """How a call ended."""

    ANSWERED = "answered"
    FAULTED = "faulted"
    """By a rule or a switch: an error, a cut, a text that is wrong."""
    CANCELLED = "cancelled"
    """The client hung up before the answer was complete."""


@dataclass(frozen=True, slots=True)
class Record:
    """One call that has ended.

    `started` and `ended` are of `time.monotonic`, which all processes of a machine share. `fault` is its name or
    empty; `status` is 0 where none was sent; tokens are estimates, 0 where there was no answer. `headers` keeps
    tracing, retry and Parley's own headers, in lower case; a key is never kept. `tools` are the names of those that
    could be called, `tool_results` what those called before had answered. `body` is the request, and empty
    when read from a file.
    """

    number: int
    path: str
    model: str
    prompt: str
    occurrence: int
    headers: Mapping[str, str]
    started: float
    ended: float
    outcome: Outcome
    fault: str
    status: int
    tokens_in: int
    tokens_out: int
    streamed: bool
    tools: tuple[str, ...]
    tool_results: tuple[str, ...]
    body: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the record without the request's body."""
        fields = {name: getattr(self, name) for name in _FILE_FIELDS}
        return fields | {"tools": list(self.tools), "tool_results": list(self.tool_results)}


_FILE_FIELDS = tuple(name for name in Record.__slots__ if name != "body")


class Ledger:
    """Every call of one server. `file` also gets each record as a line of JSON the moment the call ends.

    Unless it `keeps_calls`, no record of a call that has ended is kept in memory.
    """

    def __init__(self, file: Path | None = None, *, keeps_calls: bool = True) -> None:
        self._keeps_calls = keeps_calls
        self._file = None if file is None else os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._records: list[Record] = []
        self._open: dict[Call, None] = {}
        self._most_open = 0
        self._waiting: set[asyncio.Event] = set()

    @property
    def calls(self) -> tuple[Record, ...]:
        """The calls that have ended, in the order they ended."""
        return tuple(self._records)

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """The calls in flight, in the order they came."""
        return tuple(self._open)

    @property
    def in_flight(self) -> int:
        """How many calls are in flight now."""
        return len(self._open)

    @property
    def max_in_flight(self) -> int:
        """The most calls that ever were in flight at once."""
        return self._most_open

    def to(self, path: str, model: str | None = None) -> tuple[Record, ...]:
        """Return the ended calls to a path, such as `/v1/responses`, and if given, to a model."""
        return tuple(r for r in self._records if r.path == path and (model is None or r.model == model))

    def begin(self, call: Call) -> None:
        """Note a call that came in."""
        self._open[call] = None
        self._most_open = max(self._most_open, len(self._open))
        self._wake()

    def end(
        self,
        call: Call,
        outcome: Outcome,
        *,
        fault: str = "",
        status: int = 0,
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        """Record how a call ended; the first end of a call counts, and one forgotten by a reset has none."""
        if call not in self._open:
            return
        del self._open[call]
        record = Record(
            number=call.number,
            path=call.path,
            model=call.model,
            prompt=call.prompt,
            occurrence=call.occurrence,
            headers=_keep_headers(call.headers),
            started=call.started,
            ended=monotonic(),
            outcome=outcome,
            fault=fault,
            status=status,
            tokens_in=tokens[0],
            tokens_out=tokens[1],
            streamed=call.streamed,
            tools=call.tools,
            tool_results=call.tool_results,
            body=call.body,
        )
        if self._keeps_calls:
            self._records.append(record)
        if self._file is not None:
            os.write(self._file, json.dumps(record.to_json()).encode() + b"\n")
        self._wake()

    async def wait_for(self, predicate: Callable[["Ledger"], bool], within: float) -> None:
        """Return as soon as the predicate holds; it is asked again whenever a call begins or ends.

        Raises TimeoutError, saying what the ledger holds, if it does not within that many seconds.
        """
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            async with asyncio.timeout(within):
                while not predicate(self):
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            seen = (
                f"{len(self._records)} calls ended, {self.in_flight} in flight, {self.max_in_flight} at most"
            )
            raise TimeoutError(
                f"the model server's ledger did not get there within {within:g} s: {seen}"
            ) from None
        finally:
            self._waiting.discard(changed)

    def reset(self) -> None:
        """Forget every call, those in flight too; the file keeps what it has."""
        self._records.clear()
        self._open.clear()
        self._most_open = 0
        self._wake()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()


def most_at_once(records: Iterable[Record]) -> int:
    """Return the most of these calls that overlapped in time."""
    edges = sorted(edge for record in records for edge in ((record.started, 1), (record.ended, -1)))
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


def read_ledger(file: Path) -> tuple[Record, ...]:
    """Read a ledger's file; a last line that a killed server left unfinished is passed over."""
    if not file.exists():
        return ()
    whole = file.read_text().rpartition("\n")[0]
    return tuple(_from_json(json.loads(line)) for line in whole.splitlines())


def _from_json(fields: dict[str, Any]) -> Record:
    read = {
        "outcome": Outcome(fields["outcome"]),
        "tools": tuple(fields["tools"]),
        "tool_results": tuple(fields["tool_results"]),
    }
    return Record(**{**fields, **read}, body={})


def _keep_headers(headers: Mapping[str, str]) -> dict[str, str]:
    kept = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in _KEPT_HEADERS or lower.startswith(_KEPT_PREFIX):
            kept[lower] = value
    return kept
