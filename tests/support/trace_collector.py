"""A collector of traces: what services export over OTLP, by gRPC or HTTP, as spans that a test can look at."""

import gzip
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

_KINDS = {trace_pb2.Span.SPAN_KIND_CLIENT: "client", trace_pb2.Span.SPAN_KIND_SERVER: "server"}


@dataclass(frozen=True, slots=True)
class Span:
    """A span that has ended. `kind` is `client`, `server` or empty; ids are hex; a root's `parent` is empty."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, str | int] = field(default_factory=dict)
    failed: bool = False


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps every span that is exported to it."""

    def __init__(self) -> None:
        self.endpoint = ""
        self._spans: list[Span] = []
        self._came = threading.Condition()

    def Export(  # noqa: N802
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: object
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        with self._came:
            self._spans.extend(_spans(request))
            self._came.notify_all()
        return trace_service_pb2.ExportTraceServiceResponse()

    @property
    def spans(self) -> list[Span]:
        """All spans that have come so far."""
        with self._came:
            return list(self._spans)

    def of(self, trace: str) -> list[Span]:
        """The spans of one trace that have come so far."""
        with self._came:
            return [each for each in self._spans if each.trace == trace]

    def wait_for(
        self, trace: str, complete: Callable[[Sequence[Span]], bool], *, within: float = 30.0
    ) -> list[Span]:
        """The spans of a trace once they satisfy `complete`; an AssertionError that lists them if they never do."""
        ends = time.monotonic() + within
        while not complete(found := self.of(trace)):
            with self._came:
                assert self._came.wait(ends - time.monotonic()) or time.monotonic() < ends, sorted(
                    f"{each.service} {each.kind} {each.name}" for each in found
                )
        return found


@contextmanager
def run_collector() -> Iterator[Collector]:
    """A collector that listens on a free port while the block runs."""
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(4))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    collector.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait()


@dataclass(slots=True)
class HttpCollector:
    """Keeps every span, every log record and the name of every metric that is exported to it over HTTP, and the headers they came with."""

    endpoint: str = ""
    spans: list[Span] = field(default_factory=list)
    metrics: set[str] = field(default_factory=set)
    headers: list[dict[str, str]] = field(default_factory=list)
    logs: list[logs_pb2.LogRecord] = field(default_factory=list)
    exports: list[tuple[str, bytes]] = field(default_factory=list)
    """Each export as it came, with its path."""

    def take(self, path: str, body: bytes, headers: dict[str, str]) -> int:
        """Keep one export; the HTTP status that answers it."""
        self.headers.append(headers)
        self.exports.append((path, body))
        if path == "/v1/traces":
            self.spans.extend(_spans(trace_service_pb2.ExportTraceServiceRequest.FromString(body)))
        elif path == "/v1/metrics":
            asked = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
            scopes = [scope for resource in asked.resource_metrics for scope in resource.scope_metrics]
            self.metrics |= {
                each.name for scope in scopes for each in scope.metrics if scope.scope.name == "test"
            }
        elif path == "/v1/logs":
            told = logs_service_pb2.ExportLogsServiceRequest.FromString(body)
            scopes_of = [scope for resource in told.resource_logs for scope in resource.scope_logs]
            self.logs.extend(record for scope in scopes_of for record in scope.log_records)
        else:
            return 404
        return 200


@contextmanager
def run_http_collector() -> Iterator[HttpCollector]:
    """A collector over HTTP that listens on a free port while the block runs."""
    collector = HttpCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(collector.take(self.path, body, headers))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _spans(request: trace_service_pb2.ExportTraceServiceRequest) -> Iterator[Span]:
    for resource in request.resource_spans:
        attributes = resource.resource.attributes
        service = next(each.value.string_value for each in attributes if each.key == "service.name")
        for scope in resource.scope_spans:
            for each in scope.spans:
                yield _span(service, each)


def _span(service: str, span: trace_pb2.Span) -> Span:
    return Span(
        service=service,
        name=span.name,
        kind=_KINDS.get(span.kind, ""),
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        attributes={each.key: each.value.string_value or each.value.int_value for each in span.attributes},
        failed=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
    )
