"""The whole system in one process on one machine, over loopback gRPC and the embedded stores."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TextIO

from parley.runtime.errors import ConfigurationError
from parley.runtime.loopback import loopback
from parley.storage.folder import FolderLock, is_shared, read_address
from parley.storage.opening import in_use, sqlite_folder

if TYPE_CHECKING:  # what runs is imported where it is started: a command that starts nothing is spared it
    from parley.orchestrator.settings import OrchestratorSettings
    from parley.runtime.draining import Draining
    from parley.runtime.logs import Level
    from parley.runtime.server import Service

__all__ = [
    "FREE_PORTS",
    "LocalOptions",
    "LocalSystem",
    "Ports",
    "Purpose",
    "default_store",
    "known_formats",
    "known_roles",
    "local_system",
    "ports_from",
    "running_at",
]

_NOBODY: Final = "127.0.0.1:9"
_LOCK_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 0.05
_GRACE_SECONDS: Final = 2.0
_LOG: Final = "parley.log"
_LOG_BYTES: Final = 4 * 1024 * 1024


Purpose = Literal["debates", "records", "agents", "ratings"]
"""What a system is for: to hold debates (everything runs), or only to read debates (the orchestrator alone), or to list
agents or ratings (the gateway or the ratings beside it)."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where each service listens; 0 takes a free port."""

    orchestrator: int = 0
    gateway: int = 0
    convergence: int = 0
    ratings: int = 0
    memory: int = 0


FREE_PORTS: Final = Ports()


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How the system is run.

    Attributes:
        config_path: Agents, providers and routes. None: PARLEY_AGENTS_FILE, or the defaults.
        advertise: HOST:PORT by which orchestrators elsewhere reach ours. None: PARLEY_ADVERTISE, or where it listens.
        adopt: Whether debates that an earlier process left behind go on by themselves.
        purpose: Only what this needs is started, so that a command that reads loads no model it can do without.
        evaluators: Whether the file at `config_path` may also list evaluators alone.
        log_to_stderr: Whether logs go to stderr, rather than to `parley.log` in the data folder.
    """

    config_path: Path | None = None
    ports: Ports = FREE_PORTS
    adopt: bool = False
    advertise: str | None = None
    purpose: Purpose = "debates"
    evaluators: bool = False
    log_to_stderr: bool = False


@dataclass(frozen=True, slots=True)
class LocalSystem:
    """A system that answers.

    Attributes:
        gateway_address: None where it was not started.
        ratings_address: None where they were not started.
        store: Where debates are kept, for people.
        own: Whether it runs in this process, rather than in one that had the data folder first.
        alone: Whether no other process can run debates of its store.
        log: The file that logs go to, if they do.
    """

    orchestrator_address: str
    gateway_address: str | None
    ratings_address: str | None
    store: str
    own: bool
    alone: bool = False
    log: Path | None = None


def ports_from(first: int) -> Ports:
    """Return five ports in a row."""
    return Ports(first, first + 1, first + 2, first + 3, first + 4)


def known_roles(*, evaluating: bool = False) -> Mapping[str, tuple[str, ...]]:
    """Return the roles that agents of a system of our own can debate, or evaluate, in, by name, with their aliases."""
    from parley.orchestrator.formats.shipped import shipped_formats
    from parley.orchestrator.roles.catalogue import shipped_roles

    formats = [each for each in shipped_formats().all() if not each.stand_in_role]
    # Where agents only lend their routes, as in a moderated debate, any role will do: that tells nothing of it.
    duties = [each.debater_sections for each in formats if len(each.debater_sections) > 1]
    return {
        role.name: role.aliases
        for role in shipped_roles().all()
        if evaluating or any(role.serves(each) for each in duties)
    }


def known_formats() -> tuple[str, ...]:
    """Return the formats in which a system of our own debates a question, without versions."""
    from parley.orchestrator.formats.shipped import shipped_formats

    return tuple(sorted({each.name for each in shipped_formats().all() if each.subject is None}))


def running_at() -> str | None:
    """Where the orchestrator of a system answers that runs on our data folder already; None: there is none."""
    folder = _folder(default_store())
    address = read_address(folder) if folder is not None else None
    return address.partition(",")[0] if address is not None else None


def default_store() -> str:
    """PARLEY_STORE, or a folder of this person's own."""
    given = os.environ.get("PARLEY_STORE")
    if given:
        return given
    data = os.environ.get("XDG_DATA_HOME")
    try:
        folder = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    except RuntimeError:
        raise ConfigurationError(
            "PARLEY_STORE: no home directory is known for it; set PARLEY_STORE or HOME"
        ) from None
    return f"sqlite:///{folder / 'parley'}"


@asynccontextmanager
async def local_system(options: LocalOptions) -> AsyncIterator[LocalSystem]:
    """Run the system while the block runs, or find the one that runs on the same data folder.

    Raises ConfigurationError where settings, file or data folder do not allow a start.
    """
    store = default_store()
    folder = _folder(store)
    if folder is None:
        async with _running(options, store, None) as system:
            yield system
        return
    held = await _lock_or_address(folder)
    if isinstance(held, str):
        orchestrator, gateway, ratings = held.split(",")
        yield LocalSystem(orchestrator, gateway, ratings, str(folder), own=False)
        return
    with held:
        async with _running(options, store, held) as system:
            yield system


def _folder(store: str) -> Path | None:
    try:
        return sqlite_folder(store)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


async def _lock_or_address(folder: Path) -> FolderLock | str:
    """Return the right to use the folder, or where the process that has it answers."""
    try:
        async with asyncio.timeout(_LOCK_SECONDS):
            while True:
                lock = await asyncio.to_thread(FolderLock.acquire, folder)
                if lock is not None:
                    return lock
                address = await asyncio.to_thread(read_address, folder)
                if address is not None:
                    return address
                if await asyncio.to_thread(is_shared, folder):
                    raise ConfigurationError(in_use(folder))
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise ConfigurationError(in_use(folder)) from None
    except OSError as error:
        raise ConfigurationError(
            f"PARLEY_STORE: {folder}: cannot be used: {error.strerror or error}"
        ) from None


@asynccontextmanager
async def _running(options: LocalOptions, store: str, lock: FolderLock | None) -> AsyncIterator[LocalSystem]:
    from parley.orchestrator.settings import OrchestratorSettings
    from parley.runtime.logs import configure_logging
    from parley.runtime.telemetry import configure_telemetry

    settings = OrchestratorSettings.load()
    folder = _folder(store)
    log = None if options.log_to_stderr or folder is None else folder / _LOG
    async with AsyncExitStack() as stack:
        stream = stack.enter_context(_log_file(log)) if log is not None else None
        configure_logging(_log_level(settings, options), stream=stream)
        stack.callback(configure_logging)  # whatever is said after the block goes to stderr again
        stack.callback(configure_telemetry("parley"))
        others = await stack.enter_async_context(_others(options, store, folder))
        settings = settings.model_copy(
            update={
                "store": store,
                "gateway": others.gateway,
                "convergence": others.convergence,
                "ratings": others.ratings,
                "memory": others.memory,
                "adopt": options.adopt,
            }
        )
        if options.advertise is not None:
            settings = settings.model_copy(update={"advertise": options.advertise})
        if options.purpose != "debates":
            settings = settings.model_copy(update={"max_debates": 0})  # reading claims no debate
        orchestrator = await stack.enter_async_context(_orchestrator(settings, options))
        if lock is not None and options.purpose == "debates":
            lock.publish(f"{orchestrator},{others.gateway},{others.ratings}")
        yield LocalSystem(
            orchestrator,
            None if others.gateway == _NOBODY else others.gateway,
            None if others.ratings == _NOBODY else others.ratings,
            str(folder or "PARLEY_STORE"),
            own=True,
            alone=lock is not None,
            log=log,
        )


def _log_level(settings: "OrchestratorSettings", options: LocalOptions) -> "Level":
    """Return the level that was set; else, on stderr, only what a person must know."""
    is_set = "log_level" in settings.model_fields_set
    return "warning" if options.log_to_stderr and not is_set else settings.log_level


def _log_file(path: Path) -> TextIO:
    """Return the log, begun anew where it has grown large."""
    try:
        if path.exists() and path.stat().st_size > _LOG_BYTES:
            path.unlink()
        return path.open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        raise ConfigurationError(
            f"PARLEY_STORE: {path}: cannot be written: {error.strerror or error}"
        ) from None


@dataclass(frozen=True, slots=True)
class _Others:
    """Addresses of the services that the orchestrator calls."""

    gateway: str = _NOBODY
    convergence: str = _NOBODY
    ratings: str = _NOBODY
    memory: str = _NOBODY


@asynccontextmanager
async def _others(options: LocalOptions, store: str, folder: Path | None) -> AsyncIterator[_Others]:
    match options.purpose:
        case "debates":
            async with _all(options, store, folder) as others:
                yield others
        case "records":
            yield _Others()
        case "agents":
            async with _gateway(options, store) as gateway:
                yield _Others(gateway=gateway)
        case "ratings":
            async with _ratings(store, options.ports.ratings) as ratings:
                yield _Others(ratings=ratings)


@asynccontextmanager
async def _all(options: LocalOptions, store: str, folder: Path | None) -> AsyncIterator[_Others]:
    ports = options.ports
    starts = _gateway(options, store), _convergence(ports.convergence), _ratings(store, ports.ratings)
    async with (
        _together(*starts) as (gateway, convergence, ratings),
        _memory(store, folder, convergence, ports.memory) as memory,
    ):
        yield _Others(gateway, convergence, ratings, memory)


@asynccontextmanager
async def _orchestrator(settings: "OrchestratorSettings", options: LocalOptions) -> AsyncIterator[str]:
    from parley.orchestrator.__main__ import build
    from parley.runtime.draining import Draining

    draining = Draining()
    reading = options.purpose == "records"
    async with (
        build(settings, draining=draining, reading=reading) as service,
        _served(service, options.ports.orchestrator, draining) as address,
    ):
        yield address


@asynccontextmanager
async def _gateway(options: LocalOptions, store: str) -> AsyncIterator[str]:
    from parley.gateway.__main__ import build
    from parley.gateway.settings import GatewaySettings
    from parley.runtime.draining import Draining

    settings = GatewaySettings.load().model_copy(update={"store": store, "grace_seconds": _GRACE_SECONDS})
    if options.config_path is not None:
        settings = settings.model_copy(update={"agents_file": options.config_path})
    draining = Draining()
    alone = _folder(store) is not None  # its lock is held
    async with (
        build(settings, draining=draining, alone=alone, evaluators=options.evaluators) as service,
        _served(service, options.ports.gateway, draining) as address,
    ):
        yield address


@asynccontextmanager
async def _convergence(port: int) -> AsyncIterator[str]:
    from parley.convergence.__main__ import build
    from parley.convergence.settings import ConvergenceSettings

    async with build(ConvergenceSettings.load()) as service, _served(service, port) as address:
        yield address


@asynccontextmanager
async def _ratings(store: str, port: int) -> AsyncIterator[str]:
    from parley.ratings.__main__ import build
    from parley.ratings.settings import RatingsSettings

    settings = RatingsSettings.load().model_copy(update={"store": store})
    async with build(settings) as service, _served(service, port) as address:
        yield address


@asynccontextmanager
async def _memory(store: str, folder: Path | None, convergence: str, port: int) -> AsyncIterator[str]:
    from parley.memory.__main__ import build
    from parley.memory.settings import MemorySettings

    settings = MemorySettings.load().model_copy(update={"store": store, "convergence": convergence})
    if folder is not None and not os.environ.get("PARLEY_VECTORS"):
        settings = settings.model_copy(update={"vectors": f"edge:{folder / 'vectors'}"})
    async with build(settings) as service, _served(service, port) as address:
        yield address


@asynccontextmanager
async def _served(service: "Service", port: int, draining: "Draining | None" = None) -> AsyncIterator[str]:
    from parley.runtime.server import ServerSettings, serving

    async with serving(
        [service], ServerSettings(loopback(), port, _GRACE_SECONDS), draining=draining
    ) as running:
        yield running.address


@asynccontextmanager
async def _together(*starts: AbstractAsyncContextManager[str]) -> AsyncIterator[list[str]]:
    """Enters several at a time, each in a task of its own, and leaves them together, or as soon as one fails."""
    from parley.runtime.beside import stoppable

    leave = asyncio.Event()
    ready = [asyncio.get_running_loop().create_future() for _ in starts]
    async with stoppable() as stop:
        tasks = [
            asyncio.create_task(_held(start, each, leave, stop))
            for start, each in zip(starts, ready, strict=True)
        ]
        try:
            yield await asyncio.gather(*ready)
        finally:
            leave.set()
            for task, each in zip(tasks, ready, strict=True):
                if not each.done():
                    task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error


async def _held(
    start: AbstractAsyncContextManager[str],
    ready: asyncio.Future[str],
    leave: asyncio.Event,
    stop: Callable[[Exception], None],
) -> None:
    try:
        async with start as address:
            ready.set_result(address)
            await leave.wait()
    except Exception as error:
        if not ready.done():
            ready.set_exception(error)
        elif leave.is_set():
            raise
        else:
            stop(error)
