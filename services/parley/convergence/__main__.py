"""The convergence service as a process."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from parley.convergence.agreement import AgreementModel, Agreements, NliAgreement
from parley.convergence.embedder import Embedder, LocalEmbedder
from parley.convergence.embeddings import Embeddings, open_embeddings
from parley.convergence.encoder_threads import EncoderThreads
from parley.convergence.head import EncoderHead
from parley.convergence.held_model import HeldModel, release_idle_models
from parley.convergence.local_model import LateModel
from parley.convergence.servicer import ConvergenceServicer
from parley.convergence.settings import ConvergenceSettings, ModelName
from parley.convergence.support import SupportModel
from parley.runtime import entry
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.logs import configure_logging
from parley.runtime.server import Service, serve
from parley.runtime.tasks import background_task
from parley.runtime.telemetry import configure_telemetry
from parley.v1.convergence_pb2_grpc import add_ConvergenceServiceServicer_to_server


@asynccontextmanager
async def build(
    settings: ConvergenceSettings, *, late: bool = False, clock: Clock | None = None
) -> AsyncIterator[Service]:
    """Open the service with its models. `late`: they are loaded when they are first used. An idle one is released.

    Raise ConfigurationError if a model's files are missing or, unless it is late, not the ones expected.
    """
    clock = clock or SystemClock()
    held: list[HeldModel[Any]] = []
    async with AsyncExitStack() as stack:
        # Endpoints serve many requests at a time; a local model as many as it has threads.
        fine, fast = [
            await stack.enter_async_context(
                open_embeddings(
                    await _create_embedder(name, settings, held, clock, late=late),
                    cache=settings.embedding_cache,
                    workers=8 if name == "endpoint" else settings.embedding_threads,
                )
            )
            for name in (settings.embedding_fine, settings.embedding_fast)
        ]
        encoder = _open_encoder(settings, clock)
        if encoder is not None:
            held.append(encoder.held)
            stack.push_async_callback(encoder.close)
        agreements = Agreements(_agreement_model(settings, encoder), cache=settings.agreement_cache)
        servicer = ConvergenceServicer(fine, fast, agreements, _support_model(settings, fine, fast, encoder))
        await stack.enter_async_context(
            background_task("releasing idle models", release_idle_models(held, clock))
        )
        yield Service(
            "parley.v1.ConvergenceService",
            lambda server: add_ConvergenceServiceServicer_to_server(servicer, server),
        )


def _open_encoder(settings: ConvergenceSettings, clock: Clock) -> EncoderThreads | None:
    """Return the encoder that the settings name; None: an agent is asked instead."""
    if not (settings.agreement_encoder and settings.agreement_tokenizer):
        return None
    from parley.convergence.encoder import EncoderFiles  # heavy, as most deployments have none

    files = EncoderFiles(
        settings.agreement_encoder,
        settings.agreement_encoder_sha256.lower(),
        settings.agreement_tokenizer,
    )
    return EncoderThreads(files, settings.agreement_threads, clock)


def _agreement_model(settings: ConvergenceSettings, encoder: EncoderThreads | None) -> AgreementModel | None:
    if encoder is None or settings.agreement_head is None:
        return None
    return NliAgreement(encoder, EncoderHead.read(settings.agreement_head))


def _support_model(
    settings: ConvergenceSettings, fine: Embeddings, fast: Embeddings, encoder: EncoderThreads | None
) -> SupportModel | None:
    if encoder is None or settings.support_head is None:
        return None
    return SupportModel(fine, fast, encoder, EncoderHead.read(settings.support_head, "support"))


async def _create_embedder(
    name: ModelName, settings: ConvergenceSettings, held: list[HeldModel[Any]], clock: Clock, *, late: bool
) -> Embedder:
    """Return an embedder; add its model to those that are `held`."""
    if name == "endpoint":
        from parley.convergence.endpoint import EndpointEmbedder, key_reader

        file = settings.embedding_api_key_file
        key = key_reader(file) if file else settings.embedding_api_key.get_secret_value()
        return EndpointEmbedder(settings.embedding_base_url, key, settings.embedding_model)
    model = LateModel(name, clock)
    held.append(model.held)
    if not late:
        await asyncio.to_thread(model.load)
    return LocalEmbedder(model, settings.embedding_threads)


async def main() -> None:
    """Serve until stopped."""
    settings = ConvergenceSettings.load()
    configure_logging(settings.log_level)
    stop_telemetry = configure_telemetry("parley-convergence")
    try:
        async with build(settings) as service:
            await serve([service], settings.server())
    finally:
        stop_telemetry()


if __name__ == "__main__":
    sys.exit(entry.run(main))
