"""What the edge measures, through the OpenTelemetry meter, and the span of each request."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

import grpc
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parley.runtime import telemetry
from parley.runtime.errors import ParleyError

CallKind = Literal["unary", "stream"]
_meter: Final = telemetry.meter(__name__)
_tracer: Final = telemetry.tracer("parley.edge")
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600, 3600, 14_400)
"""A call takes milliseconds, a stream as long as a debate."""
_PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Asked all the time, and they reveal nothing."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_OTHER: Final = "other"
_HUNG_UP: Final = 499
"""What proxies write of a client that did not wait for the answer."""
_FAULT: Final = 500

_requests: Final = _meter.create_counter(
    "parley.edge.requests", "{request}", "HTTP requests, by route and the status of the answer."
)
_calls: Final = _meter.create_histogram(
    "parley.edge.call.duration",
    "s",
    "Calls passed on to the orchestrator, by method, code, and whether they stream.",
    explicit_bucket_boundaries_advisory=_SECONDS,
)
_streams: Final = _meter.create_up_down_counter("parley.edge.streams", "{stream}", "Streams that are open.")


@contextmanager
def measure_call(method: str, kind: CallKind) -> Iterator[None]:
    """Record a call of `PACKAGE.SERVICE/METHOD` that the block makes, with the code by which it ends."""
    begun = time.monotonic()
    code = grpc.StatusCode.OK
    if kind == "stream":
        _streams.add(1)
    try:
        yield
    except ParleyError as error:
        code = error.code
        raise
    except Exception:
        code = grpc.StatusCode.UNKNOWN
        raise
    except BaseException:  # the client hung up
        code = grpc.StatusCode.CANCELLED
        raise
    finally:
        if kind == "stream":
            _streams.add(-1)
        labels = {"rpc.method": method, "rpc.response.status_code": code.name, "parley.kind": kind}
        _calls.record(time.monotonic() - begun, labels)


class Observation:
    """Counts requests, and gives each a span, below that of the caller if it has one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        _streams.add(0)  # a metric without a value would look like an edge that is down

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else _OTHER
        parent = telemetry.extract(Headers(scope=scope))
        span = _tracer.start_span(method, parent, SpanKind.SERVER, attributes={"http.request.method": method})
        statuses: list[int] = []

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        token = otel_context.attach(trace.set_span_in_context(span, parent))
        try:
            await self._app(scope, receive, note)
        finally:
            otel_context.detach(token)
            route = getattr(scope.get("route"), "path", _OTHER)
            status = statuses[-1] if statuses else _HUNG_UP
            _requests.add(1, {"http.route": route, "http.response.status_code": status})
            _end(span, f"{method} {route}", route, status)


def _end(span: Span, name: str, route: str, status: int) -> None:
    if span.is_recording():
        span.update_name(name)
        span.set_attributes({"http.route": route, "http.response.status_code": status})
        if status >= _FAULT:
            span.set_attribute("error.type", str(status))
            span.set_status(Status(StatusCode.ERROR))
    span.end()
