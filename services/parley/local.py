"""The whole system in one process on one machine, with the embedded stores; gRPC over loopback is for its callers."""

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from msgspec import Struct

from parley.local_services import (
    FREE_PORTS,
    NOT_STARTED,
    LocalOptions,
    LocalServices,
    Ports,
    Purpose,
    ServiceAddresses,
    import_client,
)
from parley.runtime.errors import ConfigurationError
from parley.runtime.private_files import open_private
from parley.storage.data_folder import DATABASE, STORING, in_use_message, sqlite_folder
from parley.storage.folder_lock import FolderLock, is_shared, read_address

if TYPE_CHECKING:  # services are imported when they start: a command that starts none starts faster
    import grpc

    from parley.orchestrator.engine.format import Formats
    from parley.orchestrator.keys.store import KeyStore
    from parley.orchestrator.settings import OrchestratorSettings
    from parley.runtime.logs import Level

__all__ = [
    "FREE_PORTS",
    "LocalOptions",
    "LocalSystem",
    "Ports",
    "Purpose",
    "back_up",
    "consecutive_ports",
    "default_store",
    "has_format",
    "has_role",
    "list_formats",
    "list_roles",
    "local_system",
    "open_own_keys",
    "restore",
    "rewrap",
    "running_system",
]

_LOCK_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.05
_DEBATER: Final = "generalist"
"""A role that debates in every format that asks something of a role. What has its prompts does too."""
_LOG: Final = "parley.log"
_LOG_BYTES: Final = 4 * 1024 * 1024


class LocalSystem(Struct, frozen=True):
    """A running system.

    Attributes:
        gateway_address: None if it was not started.
        edge_address: None if it was not started.
        channel: To the orchestrator without a socket, for this machine's user; None if it runs in another process.
        store: The store of debates, for people.
        own: Whether it runs in this process, rather than in the process that locked the data folder first.
        alone: Whether no other process can run debates of its store.
        log: The log file, if there is one.
    """

    orchestrator_address: str
    gateway_address: str | None
    store: str
    own: bool
    alone: bool = False
    log: Path | None = None
    edge_address: str | None = None
    channel: "grpc.aio.Channel | None" = None


def consecutive_ports(first: int) -> Ports:
    """Return the orchestrator's port, the four after it, and for the edge the one before it."""
    return Ports(first, first + 1, first + 2, first + 3, first + 4, edge=first - 1)


def list_roles(*, evaluating: bool = False) -> Mapping[str, tuple[str, ...]]:
    """Return the roles in which agents of a local system can debate, or evaluate, by name, with their aliases."""
    from parley.orchestrator.formats.shipped import all_formats
    from parley.orchestrator.roles.catalogue import load_shipped_roles

    duties = tuple(_duties(all_formats()))
    return {
        role.name: role.aliases
        for role in load_shipped_roles().all()
        if evaluating or any(role.serves(each) for each in duties)
    }


def _duties(formats: "Formats") -> Iterator[Collection[str]]:
    """Yield what agents need prompts for, in each format that asks that of their roles."""
    for each in formats:
        # If agents only lend their routes, as in a moderated debate, any role works: that format says nothing about roles.
        if not each.fallback_role and len(each.debater_sections) > 1:
            yield each.debater_sections


def has_role(name: str, *, evaluating: bool) -> bool:
    """Return whether an agent of a local system can debate, or evaluate, in a role of this name or alias."""
    from parley.orchestrator.roles.catalogue import load_shipped_roles

    roles = load_shipped_roles()
    role = roles.find(name)
    if role is None or evaluating:
        return role is not None
    if role.serves(roles.get(_DEBATER).prompts):
        return True  # without an import of any format
    from parley.orchestrator.formats.shipped import all_formats

    return any(role.serves(each) for each in _duties(all_formats()))


def has_format(name: str) -> bool:
    """Return whether a local system debates a question in this format, of which the version may be given."""
    from parley.orchestrator.engine.format import UnknownFormatError
    from parley.orchestrator.formats.shipped import all_formats

    try:
        return all_formats().get(name.partition("@")[0]).subject is None
    except UnknownFormatError:
        return False


def list_formats() -> tuple[str, ...]:
    """Return the formats in which a local system debates a question, without versions."""
    from parley.orchestrator.formats.shipped import all_formats

    return tuple(sorted({each.name for each in all_formats().all() if each.subject is None}))


def running_system() -> LocalSystem | None:
    """Return the system that already runs on our data folder, or None."""
    folder = _folder(default_store())
    published = read_address(folder) if folder is not None else None
    return _published_system(published, folder) if folder is not None and published is not None else None


def _published_system(published: str, folder: Path) -> LocalSystem:
    orchestrator, gateway, *edge = published.split(",")
    return LocalSystem(orchestrator, gateway, str(folder), own=False, edge_address=edge[0] if edge else None)


def open_own_keys() -> AbstractAsyncContextManager["KeyStore"]:
    """Open the API keys of our data folder, or of the store in PARLEY_STORE, also while a system runs on it."""
    from parley.orchestrator.audit.key_store import open_keys
    from parley.storage.settings import StoreSettings

    return open_keys(default_store(), StoreSettings.load().wrapping_keys())


def back_up(target: Path) -> Sequence[str]:
    """Copy the databases of our data folder into a new folder, also while they are in use; return their names.

    Raises:
        ConfigurationError: the data are not in a folder, are of an earlier Parley, or cannot be copied.
        OSError: the target cannot be written.
    """
    from parley.storage.ports import StorageError
    from parley.storage.sqlite.backup import back_up

    try:
        return back_up(_own_folder(), target, DATABASE)
    except StorageError as error:
        raise ConfigurationError(str(error)) from None


async def restore(source: Path) -> Sequence[str]:
    """Put a backup into our data folder, which must be empty and unused; return the names of its databases.

    Raises:
        ConfigurationError: the data are not in a folder, a process uses it, it has data, or the backup is not complete.
        OSError: the folder cannot be written.
    """
    from parley.storage.ports import StorageError
    from parley.storage.sqlite.backup import restore

    folder = _own_folder()
    held = await _lock_or_address(folder)
    if isinstance(held, str):
        raise ConfigurationError(f"PARLEY_STORE: {folder}: Parley runs on it; stop it first")
    with held:
        try:
            return await asyncio.to_thread(restore, source, folder, DATABASE)
        except StorageError as error:
            raise ConfigurationError(str(error)) from None


async def rewrap() -> Iterator[str]:
    """Wrap the data keys of our data folder, or of the store in PARLEY_STORE, by the first of the operator's keys, also while a system runs on it.

    Return a line for each service, then raise PartFailedError if keys are damaged. Raise ConfigurationError if there is no such key, or the store cannot be used.
    """
    from parley.storage.opening import refuse_unusable_store, rewrap_data_keys
    from parley.storage.rewrap import describe_rewrapping, read_keys

    store, wrapping = default_store(), read_keys()
    folder = _folder(store)
    with refuse_unusable_store():
        is_there = folder is None or any(folder.glob("*.db"))
        done = {each: await rewrap_data_keys(store, each, wrapping) for each in STORING if is_there}
    return describe_rewrapping(done)


def _own_folder() -> Path:
    folder = _folder(default_store())
    if folder is None:
        raise ConfigurationError(
            "PARLEY_STORE: is a MongoDB server; back it up with its own tools (docs/guides/backup.md)"
        )
    return folder


def default_store() -> str:
    """Return PARLEY_STORE, or a folder of this user."""
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
    """Run the system while the block runs, or use the one that already runs on the same data folder.

    Raise ConfigurationError if settings, file or data folder do not allow a start.
    """
    store = default_store()
    folder = _folder(store)
    if folder is None:
        async with _run_system(options, store, None) as system:
            yield system
        return
    held = await _lock_or_address(folder)
    if isinstance(held, str):
        yield _published_system(held, folder)
        return
    with held:
        async with _run_system(options, store, held) as system:
            yield system


def _folder(store: str) -> Path | None:
    try:
        return sqlite_folder(store)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


async def _lock_or_address(folder: Path) -> FolderLock | str:
    """Return the lock on the folder, or the address of the process that has it."""
    try:
        async with asyncio.timeout(_LOCK_SECONDS):
            while True:
                address = await asyncio.to_thread(read_address, folder)  # first: a lock is tried for a while
                if address is not None:
                    return address
                lock = await asyncio.to_thread(FolderLock.acquire, folder)
                if lock is not None:
                    return lock
                if await asyncio.to_thread(is_shared, folder):
                    raise ConfigurationError(in_use_message(folder))
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise ConfigurationError(in_use_message(folder)) from None
    except OSError as error:
        raise ConfigurationError(
            f"PARLEY_STORE: {folder}: cannot be used: {error.strerror or error}"
        ) from None


@asynccontextmanager
async def _run_system(
    options: LocalOptions, store: str, lock: FolderLock | None
) -> AsyncIterator[LocalSystem]:
    from parley.runtime.entry import return_large_blocks, tune_gc_and_threads
    from parley.runtime.logs import configure_logging
    from parley.runtime.telemetry import configure_telemetry

    settings, _ = await asyncio.gather(
        asyncio.to_thread(_load_settings), asyncio.to_thread(import_client, options.purpose)
    )
    folder = _folder(store)
    log = None if options.log_to_stderr or folder is None else folder / _LOG
    async with AsyncExitStack() as stack:
        stream = stack.enter_context(_log_file(log)) if log is not None else None
        configure_logging(_log_level(settings, options), stream=stream)
        stack.callback(configure_logging)  # after the block, logs go to stderr again
        stack.callback(configure_telemetry("parley"))
        services = LocalServices(options, store, folder)
        others = await stack.enter_async_context(services.run_others())
        own_settings = _adapt_settings(settings, options, others)
        orchestrator = await stack.enter_async_context(services.run_orchestrator(own_settings))
        edge = await stack.enter_async_context(services.run_edge(orchestrator))
        direct = await stack.enter_async_context(services.connect_user(orchestrator))
        if lock is not None and options.purpose == "debates":
            lock.publish(",".join([orchestrator, others.gateway, *([edge] if edge else [])]))
            stack.callback(lock.withdraw)  # before anything stops
        services.start_late()
        return_large_blocks()
        tune_gc_and_threads()  # as `runtime.entry` does, for a caller with a process of its own
        yield LocalSystem(
            orchestrator,
            None if others.gateway == NOT_STARTED else others.gateway,
            str(folder or "PARLEY_STORE"),
            own=True,
            alone=lock is not None,
            log=log,
            edge_address=edge,
            channel=direct,
        )


def _load_settings() -> "OrchestratorSettings":
    from parley.orchestrator.settings import OrchestratorSettings

    return OrchestratorSettings.load()


def _adapt_settings(
    settings: "OrchestratorSettings", options: LocalOptions, others: ServiceAddresses
) -> "OrchestratorSettings":
    """Return the settings of the orchestrator of this system."""
    changes: dict[str, Any] = {
        # Whoever runs the system on their own machine is its operator.
        "hook_stdout": settings.hook_stdout or "hook_stdout" not in settings.model_fields_set,
        "gateway": others.gateway,
        "convergence": others.convergence,
        "ratings": others.ratings,
        "memory": others.memory,
        "adopt": options.adopt,
    }
    if options.advertise is not None:
        changes["advertise"] = options.advertise
    if options.purpose != "debates":
        changes["max_debates"] = 0  # reading claims no debate
    return settings.model_copy(update=changes)


def _log_level(settings: "OrchestratorSettings", options: LocalOptions) -> "Level":
    """Return the configured level; by default on stderr only what a person must know."""
    is_set = "log_level" in settings.model_fields_set
    return "warning" if options.log_to_stderr and not is_set else settings.log_level


@contextmanager
def _log_file(path: Path) -> Iterator[TextIO]:
    """Open the log file while the block runs, started again if it is too large."""
    try:
        if path.exists() and path.stat().st_size > _LOG_BYTES:
            path.unlink()
        file = open(path, "a", encoding="utf-8", buffering=1, opener=open_private)  # noqa: SIM115 - closed below
    except OSError as error:
        raise ConfigurationError(
            f"PARLEY_STORE: {path}: cannot be written: {error.strerror or error}"
        ) from None
    try:
        yield file
    finally:
        with suppress(OSError):  # a full disk has no room for the last lines, and is named by what needs it
            file.close()
