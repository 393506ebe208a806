"""The gateway's methods: protobuf in and out, nothing decided here."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, cast

from grpc.aio import ServicerContext

from parley.gateway.calls.registry import CallRegistry
from parley.gateway.calls.store import call_key
from parley.gateway.calls.stream import CallFailed, Digest, RunningCall
from parley.gateway.plan import Roster
from parley.gateway.prompt.document_cache import DocumentCache
from parley.gateway.prompt.structured_answers import is_known_shape
from parley.gateway.requests import check_cancel, check_forget, check_generate, check_route_names
from parley.gateway.routing.call import Call
from parley.gateway.routing.fallback import Fallback
from parley.gateway.routing.route import LiveRoute
from parley.gateway.routing.table import RouteTable
from parley.runtime import deadline
from parley.runtime.direct.context import DirectContext
from parley.runtime.draining import Draining
from parley.runtime.errors import not_found, permission_denied
from parley.runtime.identity.identity import current_identity
from parley.runtime.large_texts import in_thread_per_tenant
from parley.runtime.request_reading import request_bytes
from parley.v1 import agent_pb2, gateway_pb2, gateway_pb2_grpc

_Context = ServicerContext[Any, Any]
_Changes = AsyncGenerator[LiveRoute, None]
_MARGIN_SECONDS: Final = 0.25
_MARGIN_SHARE: Final = 0.05
"""The time before its caller's deadline at which a call ends, so that the caller gets the reason from us."""
_SMALL_BYTES: Final = 64 * 1024
_SMALL_SCHEMA: Final = 256
"""Characters. What is longer may take longer to be checked than the loop may be blocked: half a millisecond for each `{}` in it."""


@dataclass(slots=True)
class GatewayServicer(gateway_pb2_grpc.GatewayServiceServicer):
    """Answers for agents.

    `call_seconds` is the time of calls that name none. `found` are the model servers of this machine that serve the default
    routes, `ignored_model` the wanted one that the small model stands in for.
    """

    roster: Roster
    table: RouteTable
    fallback: Fallback
    calls: CallRegistry
    draining: Draining
    call_seconds: float
    documents: DocumentCache
    found: tuple[gateway_pb2.FoundServer, ...]
    ignored_model: str

    async def Generate(  # noqa: N802
        self,
        request: gateway_pb2.GenerateRequest,
        context: _Context,
    ) -> AsyncIterator[gateway_pb2.GenerateResponse]:
        """Generate one text, or one structured answer."""
        call, digest = await _check(request, self.documents)
        del request
        key = None
        if call.request.HasField("call_id"):
            _check_tenant(call.request.call_id)
            key = call_key(call.request.call_id)
        # From here on: waiting for the store, or for another replica, is part of the call's time.
        ends = _end_of(call, self.call_seconds)

        async def answer(running: RunningCall) -> gateway_pb2.GenerateCompleted:
            return await self.fallback.answer(call, ends, running.meter, running)

        try:
            # A service of this process records what it asks for.
            listening = self.calls.listen(
                key, digest, answer, ends, records=isinstance(context, DirectContext)
            )
            async with aclosing(listening) as events:
                async for event in events:
                    yield event
        except CallFailed as failed:
            raise failed.failure.to_error(failed.usage) from None

    async def CancelCall(  # noqa: N802
        self,
        request: gateway_pb2.CancelCallRequest,
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.CancelCallResponse:
        """Stop a call by its id at once."""
        call_id = check_cancel(request)
        _check_tenant(call_id)
        return await self.calls.cancel(call_key(call_id))

    async def ForgetAnswers(  # noqa: N802
        self,
        request: gateway_pb2.ForgetAnswersRequest,
        context: _Context,  # noqa: ARG002
    ) -> gateway_pb2.ForgetAnswersResponse:
        """Forget the answers of calls, which their caller has recorded."""
        call_ids = check_forget(request)
        for each in call_ids:
            _check_tenant(each)
        await self.calls.forget([call_key(each) for each in call_ids])
        return gateway_pb2.ForgetAnswersResponse()

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
        await self.table.learn(named)
        return gateway_pb2.ListRoutesResponse(
            routes=[live.status() for live in self.table.all_routes()],
            default_routes=self.table.default_names(),
            open_providers=self.table.open_providers,
            found_servers=self.found,
            ignored_model=self.ignored_model,
            unlisted_defaults=[
                gateway_pb2.UnlistedModel(route=route, successor=successor)
                for route, successor in self.table.find_missing_defaults().items()
            ],
            unnamed_defaults=[live.status() for live in self.table.find_unnamed_defaults()],
        )

    async def WatchRoutes(  # noqa: N802
        self,
        request: gateway_pb2.WatchRoutesRequest,  # noqa: ARG002
        context: _Context,  # noqa: ARG002
    ) -> AsyncIterator[gateway_pb2.WatchRoutesResponse]:
        """Send every route's state, then each change, until the caller hangs up."""
        async with aclosing(cast(_Changes, self.draining.until(self.table.follow_changes()))) as changes:
            async for live in changes:
                yield gateway_pb2.WatchRoutesResponse(route=live.status())


def _end_of(call: Call, default_seconds: float) -> float:
    """Return when a call that starts now ends at the latest, in the loop's time: a moment before the caller's deadline."""
    seconds = call.seconds if call.seconds is not None else default_seconds
    left = deadline.remaining()
    if left is not None:
        seconds = max(min(seconds, left - min(_MARGIN_SECONDS, _MARGIN_SHARE * left)), 0.0)
    return asyncio.get_running_loop().time() + seconds


def _check_tenant(call_id: gateway_pb2.CallId) -> None:
    """Refuse a call of a tenant other than the one that the caller acts for: no other caller claims, reads or cancels it."""
    caller = current_identity()
    if caller.proven and call_id.tenant != caller.tenant:
        raise permission_denied("WRONG_TENANT", "call_id.tenant is not the tenant that you act for")


def _digest(request: gateway_pb2.GenerateRequest) -> str:
    """Return what the call asks; what it may take is not part of it, since that is less with every step attempt."""
    asked = gateway_pb2.GenerateRequest()
    asked.CopyFrom(request)
    asked.ClearField("timeout")
    asked.ClearField("affordable_output_tokens")
    asked.ClearField("affordable_input_tokens")
    return hashlib.blake2b(asked.SerializeToString(deterministic=True), digest_size=32).hexdigest()


async def _check(request: gateway_pb2.GenerateRequest, documents: DocumentCache) -> tuple[Call, Digest]:
    """Return the checked call and the digest of its request; of a large request or a new schema both are made in a thread, the digest if the call has an id."""
    if request_bytes() <= _SMALL_BYTES and _is_quickly_checked(request.schema):
        return _check_now(request, documents)
    return await in_thread_per_tenant(partial(_check_in_thread, request, documents))


def _is_quickly_checked(schema: gateway_pb2.AnswerSchema) -> bool:
    return len(schema.json_schema) <= _SMALL_SCHEMA or is_known_shape(
        schema.name, schema.json_schema, accepts_prose=schema.accepts_prose
    )


def _check_now(request: gateway_pb2.GenerateRequest, documents: DocumentCache) -> tuple[Call, Digest]:
    call = check_generate(request, documents)
    return call, cache(partial(_digest, call.request))


def _check_in_thread(request: gateway_pb2.GenerateRequest, documents: DocumentCache) -> tuple[Call, Digest]:
    call, digest = _check_now(request, documents)
    if call.request.HasField("call_id"):  # no other call is compared
        digest()  # it takes as long as the check
    return call, digest
