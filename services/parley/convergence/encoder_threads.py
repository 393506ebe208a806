"""The encoder on threads of its own, so that it never blocks the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from parley.convergence.head import EncoderHead
from parley.convergence.held_model import HeldModel
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.errors import ConfigurationError, unavailable

if TYPE_CHECKING:  # heavy: it is imported when it is loaded
    from parley.convergence.encoder import CrossEncoder, EncoderFiles

T = TypeVar("T")


class EncoderThreads:
    """Threads that read with one encoder, which all heads share. It is loaded at its first use, which takes seconds; `held` releases it when it is idle."""

    def __init__(self, files: "EncoderFiles", threads: int = 2, clock: Clock | None = None) -> None:
        """Check that the files are there without loading the model; raise ConfigurationError if one is missing."""
        files.check_present()
        self._files = files
        self.held = HeldModel(self._load_encoder, clock or SystemClock())
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="agreement")
        self._closed = Event()

    def check_head(self, head: EncoderHead, target: str) -> None:
        """Raise ConfigurationError if a head was trained for another encoder; `target` of `make` trains one."""
        if head.encoder_sha256 != self._files.sha256:
            raise ConfigurationError(
                f"{self._files.model}: the {head.task} head was trained for another encoder (sha256 {head.encoder_sha256}); train a"
                f" head for this encoder with `make {target}`"
            )

    async def run(self, work: Callable[["CrossEncoder"], T]) -> T:
        """Return the result of work with the encoder, as soon as a thread is free.

        Raises:
            ParleyError: UNAVAILABLE `AGREEMENT_MODEL_UNAVAILABLE`.
        """
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._run, work)
        try:
            return await running
        except ConfigurationError as error:
            raise unavailable("AGREEMENT_MODEL_UNAVAILABLE", str(error), retry_after=60.0) from error

    async def close(self) -> None:
        """Stop the threads after their present work."""
        self._closed.set()
        await asyncio.to_thread(self._threads.shutdown)

    def _run(self, work: Callable[["CrossEncoder"], T]) -> T:
        if self._closed.is_set():
            raise unavailable("AGREEMENT_MODEL_UNAVAILABLE", "the service is stopping", retry_after=1.0)
        with self.held.use() as encoder:
            return work(encoder)

    def _load_encoder(self) -> "CrossEncoder":
        from parley.convergence.encoder import CrossEncoder

        return CrossEncoder(self._files)
