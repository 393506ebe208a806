"""The orchestrator process: reads settings, creates the parts and serves them."""

import asyncio
import importlib
import os
import secrets
import socket
import sys
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from parley.orchestrator import metrics
from parley.orchestrator.allowance.usage import TENANT_USE
from parley.orchestrator.audit.parts import AUDIT_LOGS
from parley.orchestrator.audit.retention import remove_old_parts
from parley.orchestrator.audit.trail import AuditTrail
from parley.orchestrator.delivery.deliveries import DELIVERIES
from parley.orchestrator.delivery.hooks import HOOKS
from parley.orchestrator.engine.execution import leaf_exceptions
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.engine.inbox import INBOX
from parley.orchestrator.engine.runner import Runner
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.keys.authenticator import ApiKeyAuthenticator
from parley.orchestrator.keys.store import KEYS
from parley.orchestrator.links.authenticator import LinkAuthenticator
from parley.orchestrator.links.uses import LINK_USES
from parley.orchestrator.log.deletions import DELETIONS
from parley.orchestrator.log.feedback import FEEDBACK
from parley.orchestrator.log.imported_receipts import IMPORTED_RECEIPTS
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.orchestrator.replica import Access, Parts, Replica, create_parts, create_servicer, open_peers
from parley.orchestrator.roles.catalogue import RoleFileError, Roles, load_shipped_roles
from parley.orchestrator.settings import OrchestratorSettings
from parley.runtime.channel import Connect, channel
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.comma_lists import split_list
from parley.runtime.draining import Draining
from parley.runtime.entry import run
from parley.runtime.errors import ConfigurationError
from parley.runtime.identity.guard import Authenticator
from parley.runtime.logs import configure_logging
from parley.runtime.peers import watch_peers
from parley.runtime.server import Service, serve
from parley.runtime.tasks import background_task
from parley.runtime.telemetry import configure_telemetry
from parley.storage.opening import Store, lock_store, open_store, refuse_unusable_store
from parley.storage.ports import StorageError
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc

NAME = "orchestrator"
_ALL_ADDRESSES = ("0.0.0.0", "[::]")  # noqa: S104 - compared with, not bound to
_IMPORTED_AT_START = (
    "cloudevents.core.formats.json",
    "cloudevents.core.v1.event",
    "parley.orchestrator.api.decision",
    "parley.orchestrator.api.report",
    "parley.orchestrator.delivery.channels.chat",
    "parley.orchestrator.delivery.channels.file",
    "parley.orchestrator.delivery.channels.mail",
    "parley.orchestrator.delivery.channels.webhook",
    "parley.orchestrator.outgoing.guard",
    "parley.orchestrator.phases.analysis.analyse",
    "parley.orchestrator.phases.record",
    "parley.receipts.envelope",
    "parley.receipts.verification",
)
"""What a command imports on use. In a server that would hold up all debates, once each, for up to a fifth of a second."""


@asynccontextmanager
async def build(
    settings: OrchestratorSettings,
    *,
    draining: Draining | None = None,
    formats: Formats | None = None,
    roles: Roles | None = None,
    reading: bool = False,
    own_folder: Path | None = None,
    connect: Connect = channel,
) -> AsyncGenerator[Service, None]:
    """Create an orchestrator and run its debates while the block runs. They are released once it drains.

    It uses `formats` and `roles`, by default those that Parley ships. `reading`: debates are only read, by this process alone.
    `own_folder`: where the system keeps the key of its receipts that it makes for itself, if the settings name none.
    `connect` opens the channels to the services that it calls.

    Raises:
        ConfigurationError: a setting cannot be used.
        PartFailedError: a part stopped, so that no debate is run any more; the block was cancelled.
    """
    metrics.initialize()
    formats = formats or all_formats()
    if not reading:
        formats.get(formats.default())  # imported now, so that the first debate does not wait for it
    roles = _check_roles(roles, formats) if roles is not None else load_shipped_roles()
    draining = draining or Draining()
    name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    replica = Replica(name, settings, formats, roles, SystemClock(), draining)
    async with (
        _open_store(settings, reading=reading) as store,
        open_peers(settings, connect) as peers,
        AsyncExitStack() as running,
    ):
        parts = create_parts(replica, store, peers)
        servicer = create_servicer(replica, parts, peers, own_folder)
        service = Service(
            orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"].full_name,
            lambda server: orchestrator_pb2_grpc.add_OrchestratorServiceServicer_to_server(servicer, server),
            lambda address: _set_own_address(parts.records.index, address),
            authenticators=_create_authenticators(replica, parts.access),
            admission=parts.access.allowance.admit_call,
            # A process that only reads cannot write, and serves the user of its store alone.
            acts=None if reading else AuditTrail(parts.access.acts).record_call,
            ready=store.ping,
        )
        for what, work in _list_work(replica, parts, reading=reading):
            await running.enter_async_context(background_task(what, work))
        try:
            yield service
        finally:
            # With the store away this would wait for it: leases end by themselves.
            with suppress(TimeoutError, StorageError):
                async with asyncio.timeout(draining.seconds_left(settings.grace_seconds)):
                    await _finish_work(parts, reading=reading)


def _list_work(
    replica: Replica, parts: Parts, *, reading: bool
) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
    """Yield what runs in the background, by its name in messages; it stops in the opposite order."""
    engine, access = parts.engine, parts.access
    if not reading:
        yield "counting what tenants use", parts.records.usage.run()
        yield "storing when keys are used", access.key_uses.run()
        yield "recording acts", access.acts.run()
    yield "running debates", _run(engine.runner)
    yield "reporting feedback", engine.reporter.run()
    if not reading:
        yield "delivering to hooks", parts.delivery.run()
    if replica.settings.max_debates:  # a process that only reads debates deletes none
        yield "deleting debates", engine.deleter.run()
        days = replica.settings.audit_retention_days
        yield "removing old acts", remove_old_parts(parts.records.audit_logs, replica.clock, days)
    yield "releasing debates", _drain_on_stop(replica.draining, engine.runner)


async def _finish_work(parts: Parts, *, reading: bool) -> None:
    """Release the debates, and write what is not written yet."""
    await parts.engine.runner.drain()
    if not reading:
        await parts.delivery.finish()
        await parts.records.usage.publish()
        await parts.access.key_uses.store()
        await parts.access.acts.flush()


@asynccontextmanager
async def _open_store(settings: OrchestratorSettings, *, reading: bool) -> AsyncGenerator[Store, None]:
    async with AsyncExitStack() as stack:
        with refuse_unusable_store():
            store = await stack.enter_async_context(
                open_store(settings.store, NAME, wrapping=settings.wrapping_keys(), reading=reading)
            )
            await store.documents.prepare(
                DEBATES,
                INBOX,
                FEEDBACK,
                DELETIONS,
                KEYS,
                TENANT_USE,
                HOOKS,
                DELIVERIES,
                IMPORTED_RECEIPTS,
                AUDIT_LOGS,
                LINK_USES,
            )
        yield store


def _check_roles(roles: Roles, formats: Formats) -> Roles:
    """Raise ConfigurationError if no format can use a role file: better at the start than in a debate."""
    try:
        roles.check([duty for each in formats.all() for duty in (each.debater_sections, each.judge_sections)])
    except RoleFileError as error:
        raise ConfigurationError(str(error)) from None
    return roles


def _create_authenticators(replica: Replica, access: Access) -> tuple[Authenticator, ...]:
    """Return the authenticators that the settings name, in addition to those of every service."""
    methods, clock = replica.settings.auth_methods, replica.clock
    authenticators: list[Authenticator] = []
    if "key" in methods:
        authenticators.append(ApiKeyAuthenticator(access.key_uses.keys, clock, access.key_uses))
    if access.links.tokens is not None:
        authenticators.append(LinkAuthenticator(access.links.tokens, clock))
    if "jwt" in methods:
        authenticators.append(_create_token_authenticator(replica.settings, clock))
    return tuple(authenticators)


def _create_token_authenticator(settings: OrchestratorSettings, clock: Clock) -> Authenticator:
    # Imported late: it is large, and most deployments do not use it.
    from parley.runtime.identity.json_web_tokens import JsonWebTokens, TokenRules
    from parley.runtime.identity.signing_keys import SigningKeys, key_fetcher

    rules = TokenRules(
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        algorithms=tuple(split_list(settings.jwt_algorithms)),
        tenant_claim=settings.jwt_tenant_claim,
        roles_claim=settings.jwt_roles_claim,
    )
    return JsonWebTokens(
        rules, SigningKeys(key_fetcher(settings.jwt_issuer, settings.jwt_keys_url or None), clock)
    )


def _set_own_address(index: DebateIndex, address: str) -> None:
    """Set the address by which other replicas reach this one, unless the settings name it."""
    host, _, port = address.rpartition(":")
    if not index.address:
        # A wildcard is no address. If host names do not resolve between machines, PARLEY_ADVERTISE must be set.
        index.address = f"{socket.gethostname()}:{port}" if host in _ALL_ADDRESSES else address


async def _run(runner: Runner) -> None:
    try:
        await runner.run()
    except ExceptionGroup as group:
        raise next(leaf_exceptions(group)) from group


async def _drain_on_stop(draining: Draining, runner: Runner) -> None:
    """Release debates as soon as the server starts to stop, not after its last stream."""
    await draining.wait()
    await runner.drain()


async def serve_orchestrator() -> None:
    """Serve until the process is asked to stop."""
    settings = OrchestratorSettings.load()
    configure_logging(settings.log_level)
    stop_telemetry = configure_telemetry("parley-orchestrator")
    draining, formats = Draining(), all_formats()
    formats.all()
    for each in _IMPORTED_AT_START:
        importlib.import_module(each)
    try:
        with lock_store(settings.require_store(), NAME, alone=True):
            async with (
                watch_peers(settings.peers(), settings.channels()),
                build(settings, draining=draining, formats=formats) as service,
            ):
                await serve([service], settings.server(*service.authenticators), draining=draining)
    finally:
        stop_telemetry()


def main() -> int:
    """Run the orchestrator; return its exit code."""
    return run(serve_orchestrator)


if __name__ == "__main__":
    sys.exit(main())
