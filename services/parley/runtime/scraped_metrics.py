"""Metrics over HTTP for a Prometheus that fetches them: `GET /metrics`, and nothing else."""

import os
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer, ThreadingTCPServer
from threading import BoundedSemaphore, Lock, Thread
from typing import Any, Final

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from parley.runtime.errors import ConfigurationError

_PORT: Final = "OTEL_EXPORTER_PROMETHEUS_PORT"
_HOST: Final = "OTEL_EXPORTER_PROMETHEUS_HOST"
_CONNECTIONS: Final = 16
_IDLE_SECONDS: Final = 10
"""The longest time that a connection waits for the other side."""


def serve_metrics() -> tuple[PrometheusMetricReader, Callable[[], None]]:
    """Start to serve at OTEL_EXPORTER_PROMETHEUS_HOST and _PORT; return the reader to register, and what stops it.

    Names and labels are the ones that an OpenTelemetry collector makes for Prometheus: attributes of the resource
    are labels, and in `target_info` too. Raise ConfigurationError if nothing can listen there.
    """
    host, port = os.environ.get(_HOST) or "localhost", _read_port()
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(
        scope_info_enabled=False, resource_attribute_filter=_is_label, registry=registry
    )
    try:
        server = _Server(host, port, registry)
    except OSError as error:
        raise ConfigurationError(
            f"{_PORT}: metrics cannot be served at {host} port {port}: {error.strerror}; choose another port, or another host by {_HOST}"
        ) from None
    thread = Thread(target=server.serve_forever, name="scraped-metrics", daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        thread.join()
        server.server_close()

    return reader, stop


def _read_port() -> int:
    given = os.environ.get(_PORT) or "9464"
    if not (given.isascii() and given.isdigit() and 0 < int(given[:6]) < 65536):
        raise ConfigurationError(f"{_PORT}: {given[:20]!r} is not a port from 1 to 65535")
    return int(given)


def _is_label(attribute: str) -> bool:
    """Return whether an attribute of the resource is a label: all but those that name the SDK."""
    return not attribute.startswith("telemetry.")


class _Server(ThreadingTCPServer):
    """Answers each connection in a thread, `_CONNECTIONS` at most; more are closed at once."""

    allow_reuse_address = True
    request_queue_size = _CONNECTIONS
    daemon_threads = True

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        (self.address_family, *_, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self._registry = registry
        self._one_at_a_time = Lock()
        self._free = BoundedSemaphore(_CONNECTIONS)
        super().__init__(address[:2], _Handler)  # type: ignore[arg-type]  # an address of the internet is text

    def exposition(self, accepted: str) -> tuple[str, bytes]:
        """Return the content type and all metrics in a format that the caller accepts."""
        encode, content_type = choose_encoder(accepted)
        with self._one_at_a_time:  # the reader gives what one call collected to whichever call asks first
            return content_type, encode(self._registry)

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the other side went away."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _IDLE_SECONDS
    server: BaseServer

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404)
            return
        assert isinstance(self.server, _Server)
        content_type, body = self.server.exposition(self.headers.get("Accept", ""))
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        return "parley"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a scrape is no event."""
