"""The gateway's methods: protobuf in and out, nothing decided here."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from grpc.aio import ServicerContext

from parley.gateway.answering import Answering
from parley.gateway.calls.key import CallKey
from parley.gateway.calls.registry import CallRegistry
from parley.gateway.calls.stream import CallFailed
from parley.gateway.conversion import cancelled, error, found_server, response, route_status
from parley.gateway.discovery import FoundServer
from parley.gateway.requests import CheckedRequest, check_call_id, check_generate, check_route_names
from parley.gateway.roster import Roster
from parley.gateway.routing.route import LiveRoute
from parley.gateway.routing.table import RouteTable
from parley.runtime.draining import Draining
from parley.runtime.errors import not_found, permission_denied
from parley.runtime.identity.identity import current_identity
from parley.runtime.large_texts import in_thread_per_tenant
from parley.v1 import agent_pb2, gateway_pb2, gateway_pb2_grpc

__all__ = ["GatewayServicer"]

_Context = ServicerContext[Any, Any]
_Changes = AsyncGenerator[LiveRoute, None]
_SMALL_BYTES: Final = 64 * 1024
_SMALL_SCHEMA: Final = 256
"""Characters. What is longer may take longer to be checked than the loop may be held: half a millisecond for each `{}` in it."""


@dataclass(slots=True)
class GatewayServicer(gateway_pb2_grpc.GatewayServiceServicer):
    """Answers for agents. `found` are the model servers of this machine that serve the default routes."""

    roster: Roster
    table: RouteTable
    answering: Answering
    calls: CallRegistry
    draining: Draining
    found: tuple[FoundServer, ...] = ()

    async def Generate(  # noqa: N802
        self,
        request: gateway_pb2.GenerateRequest,
        context: _Context,  # noqa: ARG002
    ) -> AsyncIterator[gateway_pb2.GenerateResponse]:
        """Generate one text, or one structured answer."""
        checked, digest = await _checked(request)
        _check_tenant(checked.key)
        # From here on: waiting for the store, or for another replica, is part of the call's time.
        ends = self.answering.ends(checked)

        answerer = partial(self.answering.answer, checked, ends)
        try:
            async with aclosing(self.calls.listen(checked.key, digest, answerer, ends)) as events:
                async for event in events:
                    yield response(event)
        except CallFailed as failed:
            raise error(failed.failure, failed.usage) from None

    async def CancelCall(  # noqa: N802
        self,
        request: gateway_pb2.CancelCallRequest,
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.CancelCallResponse:
        """Stop a call by its id at once."""
        key = check_call_id(request)
        _check_tenant(key)
        return cancelled(await self.calls.cancel(key))

    async def ListAgents(  # noqa: N802
        self,
        request: gateway_pb2.ListAgentsRequest,  # noqa: ARG002
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.ListAgentsResponse:
        """List the configured agents, ordered by id."""
        return gateway_pb2.ListAgentsResponse(
            agents=self.roster.agents.values(),
            default_team=self.roster.default_team,
            default_judge=self.roster.default_judge,
        )

    async def GetAgent(  # noqa: N802
        self,
        request: gateway_pb2.GetAgentRequest,
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.GetAgentResponse:
        """Return one configured agent."""
        agent: agent_pb2.Agent | None = self.roster.agents.get(request.agent_id)
        if agent is None:
            raise not_found("agent", request.agent_id)
        return gateway_pb2.GetAgentResponse(agent=agent)

    async def ListRoutes(  # noqa: N802
        self,
        request: gateway_pb2.ListRoutesRequest,
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.ListRoutesResponse:
        """List the routes with their breaker states, ordered by name."""
        named = [live for name in check_route_names(request) if (live := self.table.get(name)) is not None]
        await self.table.learn_prices(named)
        await self.table.learn_contexts(named)
        await self.table.learn_defaults()
        return gateway_pb2.ListRoutesResponse(
            routes=[route_status(live) for live in self.table.listing()],
            default_routes=self.table.known_defaults(),
            open_providers=self.table.open_providers,
            found_servers=map(found_server, self.found),
        )

    async def WatchRoutes(  # noqa: N802
        self,
        request: gateway_pb2.WatchRoutesRequest,  # noqa: ARG002
        context: _Context,  # noqa: ARG002
    ) -> AsyncIterator[gateway_pb2.WatchRoutesResponse]:
        """Send every route's state, then each change, until the caller hangs up."""
        async with aclosing(cast(_Changes, self.draining.until(self.table.changes()))) as changes:
            async for live in changes:
                yield gateway_pb2.WatchRoutesResponse(route=route_status(live))


def _check_tenant(key: CallKey | None) -> None:
    """Refuse a call of a tenant other than the one that the caller acts for: nobody else claims, reads or cancels it."""
    caller = current_identity()
    if key is not None and caller.proven and key.tenant != caller.tenant:
        raise permission_denied("WRONG_TENANT", "call_id.tenant is not the tenant that you act for")


def _digest(request: gateway_pb2.GenerateRequest) -> str:
    """Return what the call asks; what it may take is not part of it, since that is less with every step attempt."""
    asked = gateway_pb2.GenerateRequest()
    asked.CopyFrom(request)
    asked.ClearField("timeout")
    asked.ClearField("affordable_output_tokens")
    return hashlib.blake2b(asked.SerializeToString(deterministic=True), digest_size=32).hexdigest()


async def _checked(request: gateway_pb2.GenerateRequest) -> tuple[CheckedRequest, str]:
    """Return what `check_generate` does, and the digest of a call that has an id; a large request leaves the loop to others."""
    if request.ByteSize() <= _SMALL_BYTES and len(request.schema.json_schema) <= _SMALL_SCHEMA:
        return _check(request)
    return await in_thread_per_tenant(partial(_check, request))


def _check(request: gateway_pb2.GenerateRequest) -> tuple[CheckedRequest, str]:
    checked = check_generate(request)
    return checked, _digest(request) if checked.key is not None else ""
