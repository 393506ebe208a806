"""How long callbacks hold the event loop, by the CPU time of its thread: a machine that is busy with other work makes none of them longer.

In a test: `with loop_holds() as holds`. Around a service: `python -m tests.support.loop_holds FILE parley.gateway`, which writes the
longest ones to a file when the service ends.
"""

import asyncio
import gc
import heapq
import json
import runpy
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_KEPT = 20
_ALLOWED = 50.0
"""Milliseconds, on the machine for which they were set or a faster one."""
_WORK_MILLISECONDS = 1.5
"""What `_work` took there."""


class Holds:
    """The longest holds, each in milliseconds of CPU with what was run."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, int, str]] = []
        self._count = 0

    @property
    def longest(self) -> float:
        """The longest hold in milliseconds; 0 before any."""
        return max(self._kept)[0] if self._kept else 0.0

    def told(self) -> list[str]:
        """Return the longest holds, longest first."""
        return [
            f"{milliseconds:.1f} ms: {what}" for milliseconds, _, what in sorted(self._kept, reverse=True)
        ]

    def clear(self) -> None:
        """Forget them."""
        self._kept.clear()

    def note(self, handle: Any, milliseconds: float) -> None:
        """Keep a hold if it is one of the longest."""
        if len(self._kept) < _KEPT or milliseconds > self._kept[0][0]:
            self._count += 1
            add = heapq.heappush if len(self._kept) < _KEPT else heapq.heappushpop
            add(self._kept, (milliseconds, self._count, _what(handle)))


@contextmanager
def loop_holds(*, collects: bool = False) -> Iterator[Holds]:
    """Measure every callback of this process's event loops while the block runs.

    Unless it `collects`, the garbage collector is off: in a test it goes through what all tests hold, within some callback.
    """
    handles: Any = asyncio.Handle
    holds, run = Holds(), handles._run

    def run_measured(handle: Any) -> None:
        before = time.thread_time()
        run(handle)
        holds.note(handle, 1000 * (time.thread_time() - before))

    handles._run = run_measured
    is_on = gc.isenabled()
    if not collects:
        gc.disable()
    try:
        yield holds
    finally:
        handles._run = run
        if is_on:
            gc.enable()


def longest_hold_allowed() -> float:
    """Return how many milliseconds a callback may take: 50, or as many more as this machine is slower than the one they were set on."""
    return _ALLOWED * max(1.0, min(_work() for _ in range(7)) / _WORK_MILLISECONDS)


def _work() -> float:
    """Do some work of Python; return its milliseconds."""
    before = time.thread_time()
    sum(len(str(number)) for number in range(20_000))
    return 1000 * (time.thread_time() - before)


def _what(handle: Any) -> str:
    """Return what a callback is, of a task where it stands now. Nothing is shown by its `repr`, which may change what it shows."""
    callback = handle._callback
    task = getattr(callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return str(getattr(callback, "__qualname__", type(callback).__qualname__))
    frames = [f" {Path(each.f_code.co_filename).name}:{each.f_lineno}" for each in task.get_stack(limit=3)]
    return str(getattr(task.get_coro(), "__qualname__", "")) + "".join(frames)


def _main() -> None:
    file, module = Path(sys.argv[1]), sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    with loop_holds(collects=True) as holds:
        try:
            runpy.run_module(f"{module}.__main__", run_name="__main__", alter_sys=True)
        finally:
            file.write_text(json.dumps(holds.told(), indent=1))


if __name__ == "__main__":
    _main()
