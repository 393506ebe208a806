"""The services of the system on one machine, each on loopback and only for this user."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from parley.runtime.loopback import loopback
from parley.runtime.together import enter_meanwhile, enter_together

if TYPE_CHECKING:  # services are imported when they start: a command that starts none starts faster
    import grpc

    from parley.config.file import ConfigFile
    from parley.orchestrator.settings import OrchestratorSettings
    from parley.runtime.channel import ChannelSettings, Connect
    from parley.runtime.direct.late_server import LateServer
    from parley.runtime.direct.server import DirectServer
    from parley.runtime.draining import Draining
    from parley.runtime.identity.guard import Guard
    from parley.runtime.server import Service

NOT_STARTED: Final = "127.0.0.1:9"
"""The address of a service that was not started."""
_GRACE_SECONDS: Final = 2.0
_LATE_SECONDS: Final = 0.5
"""From the start of the system to that of services that nobody has called: models write then, and a debate that ends waits for none of them."""
_AFTER_AN_ANSWER: Final = ("parley.orchestrator.phases.analysis.analyse", "parley.orchestrator.phases.record")
"""What is first needed once there is an answer, as ratings are, and imported with them: an answer waits for no import."""
_PLAINTEXT: Final = {
    "auth": "none",
    "tls_certificate": None,
    "tls_key": None,
    "tls_client_ca": None,
    "ca": "",
}
"""Settings of a service on loopback that decides nothing about callers."""


Purpose = Literal["debates", "records", "agents", "ratings", "memory", "deleting", "hooks", "importing"]
"""What a system is for: to run debates (everything runs), or only to read debates (only the orchestrator), to list
agents or ratings (with the gateway or the ratings), to search memory (with memory), or to delete debates (with ratings and memory)."""


class Ports(Struct, frozen=True):
    """The port of each service; 0 takes a free port.

    Attributes:
        edge: None: no edge runs.
    """

    orchestrator: int = 0
    gateway: int = 0
    convergence: int = 0
    ratings: int = 0
    memory: int = 0
    edge: int | None = None


FREE_PORTS: Final = Ports()


class LocalOptions(Struct, frozen=True):
    """How the system is run.

    Attributes:
        config_path: Agents, providers and routes. None: PARLEY_AGENTS_FILE, or the defaults.
        read_config: Reads the file at `config_path`, at the start and after each change. None: it is read whatever it says.
        advertise: HOST:PORT at which other orchestrators reach ours. None: PARLEY_ADVERTISE, or its own address.
        adopt: Whether debates of an earlier process continue by themselves.
        begins_debate: Whether a debate begins at once: what its first call does not need starts when it is needed, or soon.
        purpose: Only the services that it needs are started, so that a command that only reads loads no model.
        evaluators: Whether the file at `config_path` may also list evaluators alone.
        context_tokens: Of routes for which the file does not say it. None: PARLEY_CONTEXT_TOKENS, or what is known of them.
        log_to_stderr: Whether logs go to stderr, rather than to `parley.log` in the data folder.
        on_listening: Called with the name and address of each service that answers this user from now on.
    """

    config_path: Path | None = None
    read_config: Callable[[], "ConfigFile"] | None = None
    ports: Ports = FREE_PORTS
    adopt: bool = False
    begins_debate: bool = False
    advertise: str | None = None
    purpose: Purpose = "debates"
    evaluators: bool = False
    context_tokens: int | None = None
    log_to_stderr: bool = False
    on_listening: Callable[[str, str], None] | None = None


class ServiceAddresses(Struct, frozen=True):
    """Addresses of the services that the orchestrator calls."""

    gateway: str = NOT_STARTED
    convergence: str = NOT_STARTED
    ratings: str = NOT_STARTED
    memory: str = NOT_STARTED


class LocalServices:
    """Starts services for a purpose.

    Callers from outside send the token that only this user can read. The services call each other without a socket, and so
    without credentials. With PARLEY_AUTH=none, no caller on this machine has to authenticate.
    """

    def __init__(self, options: LocalOptions, store: str, folder: Path | None) -> None:
        """Use `options` and a store; `folder` is the data folder, if the store is one."""
        from parley.runtime.identity.local_token import LocalToken

        self._options = options
        self._store = store
        self._folder = folder
        self._token = LocalToken()
        self._servers: dict[str, DirectServer] = {}
        """By address, those that answer services of this process."""
        self._late: dict[str, LateServer] = {}
        """By name, those that start once they are called."""
        self._shared: dict[str, Any] = {
            "service_secret": None,
            "service_secret_file": None,
            "ca": "",
            "store": store,
        }

    @property
    def _read_only(self) -> bool:
        """Whether the system runs no debate, so that it works on a full disk too."""
        return self._options.purpose in ("records", "agents", "ratings")

    @asynccontextmanager
    async def run_others(self) -> AsyncIterator[ServiceAddresses]:
        """Run the services that the orchestrator calls, if the purpose needs them."""
        match self._options.purpose:
            case "debates":
                async with self._run_all() as others:
                    yield others
            case "records" | "hooks" | "importing":
                yield ServiceAddresses()
            case "agents":
                async with self._run_gateway() as gateway:
                    yield ServiceAddresses(gateway=gateway)
            case "ratings":
                async with self._run_ratings() as ratings:
                    yield ServiceAddresses(ratings=ratings)
            case "memory":
                async with (
                    self._run_convergence() as convergence,
                    self._run_memory(convergence) as memory,
                ):
                    yield ServiceAddresses(convergence=convergence, memory=memory)
            case "deleting":
                async with (
                    enter_together(self._run_convergence(), self._run_ratings()) as (convergence, ratings),
                    self._run_memory(convergence) as memory,
                ):
                    yield ServiceAddresses(convergence=convergence, ratings=ratings, memory=memory)

    @asynccontextmanager
    async def run_orchestrator(self, settings: "OrchestratorSettings") -> AsyncIterator[str]:
        """Run the orchestrator; yield its address."""
        # In a thread: the gateway asks providers about their models meanwhile.
        await asyncio.to_thread(_import_orchestrator, debates=not self._read_only)
        if (memory := self._late.get("memory")) is not None:
            memory.called.set()  # a debate asks it before any model: it starts while providers answer
        from parley.orchestrator.__main__ import build
        from parley.runtime.draining import Draining

        settings = settings.model_copy(update=self._shared)
        draining, port = Draining(), self._options.ports.orchestrator
        async with (
            build(
                settings,
                draining=draining,
                reading=self._read_only,
                own_folder=self._folder,
                connect=self._connect_as(settings.service_name),
            ) as service,
            self._serve(service, port, settings.auth, draining) as address,
        ):
            yield address

    @asynccontextmanager
    async def run_edge(self, orchestrator: str) -> AsyncIterator[str | None]:
        """Run the edge before the orchestrator at this address, if it has a port; yield its address."""
        port = self._options.ports.edge
        if port is None:
            yield None
            return
        from parley.edge.__main__ import run_edge
        from parley.edge.settings import EdgeSettings
        from parley.runtime.direct.channel import direct_channel

        def connect(target: str, _settings: "ChannelSettings") -> "grpc.aio.Channel":
            return direct_channel(self._servers[target])  # with the credentials of its callers

        settings = EdgeSettings.load(
            **_PLAINTEXT, host=loopback(), port=port, orchestrator=orchestrator, grace_seconds=_GRACE_SECONDS
        )
        async with run_edge(settings, connect=connect) as address:
            yield address

    def connect_user(self, target: str) -> "grpc.aio.Channel":
        """Open a channel for this machine's user to a service that runs here, without a socket."""
        from parley.runtime.direct.channel import direct_channel
        from parley.runtime.identity.local_token import LOCAL_USER

        return direct_channel(self._servers[target], lambda: LOCAL_USER)

    def start_late(self) -> None:
        """Start, in a moment, also those services that start when they are called and were not."""
        loop = asyncio.get_running_loop()
        for each in self._late.values():
            loop.call_later(_LATE_SECONDS, each.called.set)

    @asynccontextmanager
    async def _run_all(self) -> AsyncIterator[ServiceAddresses]:
        if self._options.begins_debate:
            _check_late_settings()
            async with (
                self._run_gateway() as gateway,
                self._run_once_called("ratings", self._run_ratings(), _AFTER_AN_ANSWER) as ratings,
                self._run_once_called("convergence", self._run_convergence()) as convergence,
                self._run_once_called("memory", self._run_memory(convergence)) as memory,
            ):
                yield ServiceAddresses(gateway, convergence, ratings, memory)
            return
        starts = self._run_convergence(), self._run_gateway(), self._run_ratings()
        async with (
            enter_together(*starts) as (convergence, gateway, ratings),
            self._run_memory(convergence) as memory,
        ):
            yield ServiceAddresses(gateway, convergence, ratings, memory)

    @asynccontextmanager
    async def _run_once_called(
        self, name: str, start: AbstractAsyncContextManager[str], also_imports: Sequence[str] = ()
    ) -> AsyncIterator[str]:
        """Start a service when it is first called, and run it until the block is left; yield what callers have for its address."""
        from parley.runtime.direct.late_server import LateServer

        late = self._late[name] = LateServer()

        @asynccontextmanager
        async def start_when_called() -> AsyncIterator[str]:
            await late.called.wait()
            # In a thread: the loop sends the first calls to models meanwhile.
            await asyncio.to_thread(_import_all, f"parley.{name}.__main__", *also_imports)
            async with start as address:
                late.start(self._servers[address])
                yield address

        async with enter_meanwhile(start_when_called()):
            yield name

    @asynccontextmanager
    async def _run_gateway(self) -> AsyncIterator[str]:
        from parley.gateway.__main__ import build
        from parley.gateway.settings import GatewaySettings
        from parley.runtime.draining import Draining

        options = self._options
        settings = GatewaySettings.load().model_copy(update={**self._shared, "grace_seconds": _GRACE_SECONDS})
        if options.config_path is not None:
            settings = settings.model_copy(update={"agents_file": options.config_path})
        if options.context_tokens is not None:
            settings = settings.model_copy(update={"context_tokens": options.context_tokens})
        draining = Draining()
        alone = self._folder is not None  # its lock is held
        built = build(
            settings,
            draining=draining,
            alone=alone,
            reading=self._read_only,
            expects_debate=options.begins_debate,
            evaluators=options.evaluators,
            read_config=options.read_config,
        )
        async with (
            built as service,
            self._serve(service, options.ports.gateway, settings.auth, draining) as address,
        ):
            yield address

    @asynccontextmanager
    async def _run_convergence(self) -> AsyncIterator[str]:
        from parley.convergence.__main__ import build
        from parley.convergence.settings import ConvergenceSettings

        settings, port = ConvergenceSettings.load(), self._options.ports.convergence
        async with (
            build(settings, late=True) as service,  # a first call to a model waits for no other model
            self._serve(service, port, settings.auth) as address,
        ):
            yield address

    @asynccontextmanager
    async def _run_ratings(self) -> AsyncIterator[str]:
        from parley.ratings.__main__ import build
        from parley.ratings.settings import RatingsSettings

        settings = RatingsSettings.load().model_copy(update=self._shared)
        port = self._options.ports.ratings
        async with (
            build(settings, reading=self._read_only) as service,
            self._serve(service, port, settings.auth) as address,
        ):
            yield address

    @asynccontextmanager
    async def _run_memory(self, convergence: str) -> AsyncIterator[str]:
        from parley.memory.__main__ import build
        from parley.memory.settings import MemorySettings

        settings = MemorySettings.load().model_copy(update={**self._shared, "convergence": convergence})
        if self._folder is not None and not os.environ.get("PARLEY_VECTORS"):
            settings = settings.model_copy(update={"vectors": f"edge:{self._folder / 'vectors'}"})
        port = self._options.ports.memory
        async with (
            build(settings, connect=self._connect_as(settings.service_name)) as service,
            self._serve(service, port, settings.auth) as address,
        ):
            yield address

    def _connect_as(self, name: str) -> "Connect":
        """Return how a service opens its channels: directly, where the other one runs here too."""
        from parley.runtime.channel import channel
        from parley.runtime.direct.channel import direct_channel, identify_service

        def connect(target: str, settings: "ChannelSettings") -> "grpc.aio.Channel":
            server = self._late.get(target) or self._servers.get(target)
            return (
                channel(target, settings)
                if server is None
                else direct_channel(server, identify_service(name))
            )

        return connect

    @asynccontextmanager
    async def _serve(
        self, service: "Service", port: int, auth: str, draining: "Draining | None" = None
    ) -> AsyncIterator[str]:
        from parley.runtime.server import ServerSettings, start_server

        settings = ServerSettings(loopback(), port, _GRACE_SECONDS, guard=self._guard(service, auth))
        # As long as the server answers: a caller without the token is refused for good.
        with ExitStack() as published:

            def publish_token(address: str) -> None:
                published.enter_context(self._publish_token(address, auth))
                if service.on_listening is not None:
                    service.on_listening(address)

            served = replace(service, on_listening=publish_token)
            async with start_server([served], settings, draining=draining) as running:
                self._servers[running.address] = running.direct
                if self._options.on_listening is not None:
                    name = service.name.rpartition(".")[2].removesuffix("Service").lower()
                    self._options.on_listening(name, running.address)
                yield running.address

    def _publish_token(self, address: str, auth: str) -> AbstractContextManager[None]:
        """Write the token that a port asks for, if it does, before its address is printed: whoever reads that can call it."""
        if auth == "none":
            return nullcontext()
        return self._token.publish(int(address.rpartition(":")[2]))

    def _guard(self, service: "Service", auth: str) -> "Guard":
        from parley.runtime.identity.guard import OPEN, Guard

        if auth == "none":
            return OPEN
        return Guard(self._token, *service.authenticators)


def import_client(purpose: Purpose) -> None:
    """Import the client that asks models, if any is asked. In a thread: it reads this machine's certificates, twice, while others import."""
    if purpose in ("debates", "agents"):
        import_module("aiohttp")


def _import_all(*names: str) -> None:
    for each in names:
        import_module(each)


def _import_orchestrator(*, debates: bool) -> None:
    """Import the orchestrator, and if it runs debates its default format and what checks the answers of models."""
    from parley.orchestrator.formats.shipped import all_formats

    import_module("parley.orchestrator.__main__")
    if debates:
        import_module("parley.gateway.prompt.bounded_schema")
        formats = all_formats()
        formats.get(formats.default())


def _check_late_settings() -> None:
    """Raise ConfigurationError if the settings of a service that starts late cannot be used: by then models are called."""
    from parley.convergence.settings import ConvergenceSettings
    from parley.memory.settings import MemorySettings
    from parley.ratings.settings import RatingsSettings

    for each in (ConvergenceSettings, MemorySettings, RatingsSettings):
        each.load()
