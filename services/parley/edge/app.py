"""All that the edge answers, as one ASGI application."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import ServiceDescriptor
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

import parley.v1
from parley.edge.bounds import OriginCheck, RequestBounds
from parley.edge.calls import ORCHESTRATOR, OrchestratorCalls
from parley.edge.chat.catalogue import Catalogue, Model, format_models
from parley.edge.chat.debates import ChatDebates
from parley.edge.chat.endpoint import chat_routes
from parley.edge.chat.errors import to_error_response, to_unknown_response
from parley.edge.chat.teams import load_teams
from parley.edge.connect import RpcApplication
from parley.edge.console.routes import create_routes
from parley.edge.console.seals import Seal
from parley.edge.console.sessions import SessionCookie, Sessions
from parley.edge.events import EventStreams
from parley.edge.links import Links
from parley.edge.mcp import McpEndpoint
from parley.edge.receipts import Receipts
from parley.edge.reports import Reports
from parley.edge.settings import EdgeSettings
from parley.edge.shared_watches import SharedWatches
from parley.edge.statuses import to_response
from parley.runtime.comma_lists import split_list
from parley.runtime.errors import ParleyError

IsReady = Callable[[], Awaitable[bool]]
"""Says whether the orchestrator answers."""


def create_app(
    settings: EdgeSettings, calls: OrchestratorCalls, mcp: McpEndpoint, is_ready: IsReady
) -> Starlette:
    """Return the application. Raise ConfigurationError for teams that cannot be used."""
    seal = Seal(split_list(settings.edge_session_secrets.get_secret_value()))
    sessions = Sessions(seal, settings.edge_session_seconds)
    return Starlette(
        routes=[
            *_create_probes(is_ready),
            *_create_api_routes(settings, calls),
            mcp.create_route(),
            *create_routes(settings, seal, sessions, calls),
        ],
        middleware=_create_middleware(settings, sessions, calls),
        exception_handlers={404: answer_unknown, 405: answer_unknown},
    )


def _create_api_routes(settings: EdgeSettings, calls: OrchestratorCalls) -> list[BaseRoute]:
    service = _find_service()
    events = EventStreams(SharedWatches(service.methods_by_name["WatchDebate"], calls))
    links = Links(service, calls)
    reports = Reports(service.methods_by_name["StreamReport"], calls)
    receipts = Receipts(service, calls)
    return [
        Route("/v1/debates/{debate_id}/events", events.answer),
        Route("/v1/debates/{debate_id}/report.md", reports.answer_markdown),
        Route("/v1/debates/{debate_id}/report.html", reports.answer_html),
        Route("/v1/debates/{debate_id}/receipt.json", receipts.answer_receipt),
        Route("/.well-known/parley-receipt-keys.json", receipts.answer_keys),
        Route("/links/{token}", links.answer_page, methods=["GET"]),
        Route("/links/{token}", links.answer_use, methods=["POST"]),
        *chat_routes(
            Catalogue([*format_models(), *_load_teams(settings)]),
            ChatDebates(service, calls),
        ),
        *(Route(each.path, each) for each in (RpcApplication(rpc, calls) for rpc in service.methods)),
    ]


def _create_middleware(
    settings: EdgeSettings, sessions: Sessions, calls: OrchestratorCalls
) -> list[Middleware]:
    """Return what each request passes through, the outermost first."""
    origins = split_list(settings.edge_origins)
    return [
        Middleware(TrustedHostMiddleware, allowed_hosts=settings.hosts, www_redirect=False),
        Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"] if origins else [],
            expose_headers=["Parley-Debate-Id", "Parley-Ignored", "Retry-After"],
        ),
        Middleware(OriginCheck, allowed=origins),
        Middleware(SessionCookie, sessions=sessions),
        Middleware(
            RequestBounds,
            send_seconds=settings.edge_send_seconds,
            check_caller=calls.check_reader,
            to_answer=to_answer,
        ),
    ]


async def answer_unknown(request: Request, error: Exception) -> Response:
    """Answer a path or a method that no route takes."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith("/v1/"):
        return to_unknown_response(request.method, request.url.path, error)
    if request.url.path.startswith(f"/{ORCHESTRATOR}/"):
        message = f"there is no RPC {request.url.path}; docs/reference/orchestrator.md lists all"
        return JSONResponse({"code": "unimplemented", "message": message}, error.status_code)
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)


def to_answer(path: str, error: ParleyError) -> Response:
    """Return an error as clients of a path expect it."""
    return to_error_response(error) if path.startswith("/v1/chat/") else to_response(error)


def create_health_app(is_ready: IsReady) -> Starlette:
    """Return the application of the health port, which answers probes alone, whatever name they ask for."""
    return Starlette(routes=_create_probes(is_ready))


def _create_probes(is_ready: IsReady) -> list[BaseRoute]:
    async def answer_ready(_: Request) -> Response:
        if await is_ready():
            return PlainTextResponse("ready\n")
        return PlainTextResponse("the orchestrator does not answer\n", 503)

    async def answer_alive(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    return [Route("/healthz", answer_alive), Route("/readyz", answer_ready)]


def _load_teams(settings: EdgeSettings) -> list[Model]:
    return load_teams(settings.edge_teams) if settings.edge_teams else []


def _find_service() -> ServiceDescriptor:
    """Return the orchestrator's service, with all messages loaded: an `Any` can be written as JSON only if its message is known."""
    for each in pkgutil.iter_modules(parley.v1.__path__):
        if each.name.endswith("_pb2"):
            importlib.import_module(f"parley.v1.{each.name}")
    return descriptor_pool.Default().FindServiceByName(ORCHESTRATOR)
