"""Debates for MCP clients over streamable HTTP. Each request stands for itself, so any replica answers it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from parley.client import ParleyClient
from parley.edge.calls import OrchestratorCalls, find_address, select_metadata
from parley.edge.statuses import to_response
from parley.mcp.server import create_server
from parley.runtime.errors import ParleyError


class McpEndpoint:
    """An ASGI application that answers MCP requests for whoever sends them, by their own credentials."""

    def __init__(self, connection: grpc.aio.Channel, calls: OrchestratorCalls) -> None:
        """Call the orchestrator over `connection`; requests count as streams of `calls` while they last."""
        self._connection = connection
        self._calls = calls
        self._is_stopping = False
        server = create_server(self._open_client, is_stopping=lambda: self._is_stopping)
        server.streamable_http_app(
            stateless_http=True,
            transport_security=TransportSecuritySettings(
                enable_dns_rebinding_protection=False
            ),  # the edge checks
        )
        self._manager = server.session_manager

    def create_route(self) -> BaseRoute:
        """Return the route of the edge's application."""
        return Route("/mcp", self, methods=["POST"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope)
        try:
            with self._calls.count_stream(request.headers, find_address(request)):
                await self._manager.handle_request(scope, receive, send)
        except ParleyError as error:
            await to_response(error)(scope, receive, send)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve requests in the block."""
        started, ended = asyncio.Event(), asyncio.Event()

        async def run() -> None:  # a task of its own, in which what anyio begins ends too
            async with self._manager.run():
                started.set()
                await ended.wait()

        # No TaskGroup: what fails in the block leaves it as it is, and not in a group.
        task = asyncio.create_task(run())
        task.add_done_callback(lambda _: started.set())
        try:
            await started.wait()
            yield
        finally:
            ended.set()
            await task

    def stop(self) -> None:
        """Note that calls end from now on since the edge stops, and not because their callers want it."""
        self._is_stopping = True

    async def _open_client(self, context: Context[Any, Any]) -> ParleyClient:
        return ParleyClient.over(self._connection, select_metadata(context.headers or {}))
