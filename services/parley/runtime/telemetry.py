"""OpenTelemetry, set by the standard OTEL_… variables; nothing is exported without them."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from parley.runtime.errors import ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_TRACEPARENT: Final = "traceparent"
_NO_SPAN: Final = nullcontext(trace.INVALID_SPAN)
_GRPC: Final = "grpc"
_PROTOCOLS: Final = (_GRPC, "http/protobuf")
_OTLP: Final = "otlp"
_PROMETHEUS: Final = "prometheus"
_NONE: Final = "none"
_EXPORTERS: Final = {
    "TRACES": ("trace_exporter", "OTLPSpanExporter"),
    "METRICS": ("metric_exporter", "OTLPMetricExporter"),
    "LOGS": ("_log_exporter", "OTLPLogExporter"),
}
_EXPORT_SECONDS: Final = 5
"""The longest time of one export, and so of the last one at shutdown."""


def tracer(name: str) -> trace.Tracer:
    """Return a tracer with the module's name; safe to create at import time."""
    return trace.get_tracer(name)


def meter(name: str) -> "Meter":
    """Return a meter with the module's name; safe to create at import time."""
    from opentelemetry import metrics  # with all that finds plugins: a client measures nothing

    return metrics.get_meter(name)


class BoundedNames:
    """Names that callers choose, as labels of a metric: the first `limit` names, and `other` for the rest.

    A meter keeps each set of labels forever.
    """

    def __init__(self, limit: int = 200) -> None:
        self._limit = limit
        self._names: set[str] = set()

    def label(self, name: str) -> str:
        """Return the label for a name, the same one every time."""
        if name in self._names:
            return name
        if len(self._names) >= self._limit:
            return "other"
        self._names.add(name)
        return name


def open_span(
    tracer: trace.Tracer, name: str, context: Context | None = None
) -> AbstractContextManager[trace.Span]:
    """Start a span, as `Tracer.start_span` does, that is the current one while the block runs, and ends with it.

    It tells of an error that leaves the block. While nobody records spans, a block costs next to nothing.
    """
    span = tracer.start_span(name, context)
    if span is trace.INVALID_SPAN:  # nobody records it, and there is no caller's span to pass on
        return _NO_SPAN
    return trace.use_span(span, end_on_exit=True)


def inject(context: Context | None = None) -> dict[str, str]:
    """Return the W3C `traceparent` (and `tracestate`) of the current span; empty without one."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, context)
    return carrier


def extract(carrier: Mapping[str, str]) -> Context:
    """Return a context whose current span is the remote one in `carrier`, or none if it names none.

    It starts from an empty context, without the current span.
    """
    return _PROPAGATOR.extract(carrier, Context()) if _TRACEPARENT in carrier else Context()


def configure_telemetry(service_name: str) -> Callable[[], None]:
    """Start exporting over OTLP if an endpoint is set, and serving metrics to Prometheus if OTEL_METRICS_EXPORTER names it.

    Return a function that flushes and stops it. Raise ConfigurationError for variables that cannot be followed.

    Services in one process share one provider: the first names it (OTEL_SERVICE_NAME wins over
    `service_name`), and the last one to stop shuts it down. A second start after that exports nothing.
    """
    if _flag("OTEL_SDK_DISABLED"):
        return _do_nothing
    return _shared.join(service_name)


class _Shared:
    """The providers of this process, and the number of services that use them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._stops: list[Callable[[], None]] = []

    def join(self, service_name: str) -> Callable[[], None]:
        with self._lock:
            if self._users == 0:
                self._stops = _start(service_name)
            self._users += 1
        left = False

        def leave() -> None:
            nonlocal left
            with self._lock:
                if left:
                    return
                left = True
                self._users -= 1
                stops = self._stops if self._users == 0 else []
            for stop in stops:
                stop()

        return leave


_shared: Final = _Shared()


def _start(service_name: str) -> list[Callable[[], None]]:
    traces, metric = _protocol("TRACES"), _protocol("METRICS")
    logs = _protocol("LOGS") if os.environ.get("OTEL_LOGS_EXPORTER") else None  # stderr has them anyway
    scraped = _is_scraped()
    if not (traces or metric or logs or scraped):
        return []
    # Loading the SDK and its exporters takes a tenth of a second that most starts need not pay.
    from importlib.metadata import version

    from opentelemetry.sdk.resources import Resource

    name = os.environ.get("OTEL_SERVICE_NAME") or service_name
    resource = Resource.create({"service.name": name, "service.version": version("parley")})
    return [
        *(_start_traces(resource, traces) if traces else []),
        *(_start_metrics(resource, metric, scraped=scraped) if metric or scraped else []),
        *(_start_logs(resource, logs) if logs else []),
    ]


def _start_traces(resource: "Resource", protocol: str) -> list[Callable[[], None]]:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(_exporter("TRACES", protocol)))
    trace.set_tracer_provider(tracers)
    return [tracers.shutdown]


def _start_metrics(resource: "Resource", protocol: str | None, *, scraped: bool) -> list[Callable[[], None]]:
    """Export metrics over the protocol, if there is one, and serve them where they are `scraped`."""
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    readers: list[MetricReader] = []
    stops: list[Callable[[], None]] = []
    if scraped:
        from parley.runtime.scraped_metrics import serve_metrics

        reader, stop_serving = serve_metrics()
        readers.append(reader)
        stops.append(stop_serving)
    if protocol:
        readers.append(PeriodicExportingMetricReader(_exporter("METRICS", protocol)))
    meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    metrics.set_meter_provider(meters)
    return [*stops, meters.shutdown]


def _start_logs(resource: "Resource", protocol: str) -> list[Callable[[], None]]:
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    loggers = LoggerProvider(resource, shutdown_on_exit=False)
    loggers.add_log_record_processor(BatchLogRecordProcessor(_exporter("LOGS", protocol)))
    set_logger_provider(loggers)
    return [loggers.shutdown]


def _exporter(signal: str, protocol: str) -> Any:
    """Return the exporter of a signal. Each is in a package of its own that only its protocol needs."""
    package = "grpc" if protocol == _GRPC else "http"
    module, name = _EXPORTERS[signal]
    exporter = getattr(import_module(f"opentelemetry.exporter.otlp.proto.{package}.{module}"), name)
    return exporter(timeout=_EXPORT_SECONDS)


def _protocol(signal: str) -> str | None:
    """Return the export protocol of a signal, or None if it is not exported. Raise ConfigurationError."""
    endpoint = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or os.environ.get(
        "OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    if not endpoint:
        return None
    if _OTLP not in _exporters(signal):
        return None
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = os.environ.get(name, "").strip().lower()
        if protocol and protocol not in _PROTOCOLS:
            raise ConfigurationError(f"{name}: {protocol!r} is not one of {', '.join(_PROTOCOLS)}")
        if protocol:
            return protocol
    return _GRPC


def _is_scraped() -> bool:
    """Return whether metrics are served to Prometheus. Raise ConfigurationError."""
    named = _PROMETHEUS in os.environ.get("OTEL_METRICS_EXPORTER", "").lower()
    return named and _PROMETHEUS in _exporters("METRICS")


def _exporters(signal: str) -> list[str]:
    """Return the exporters of a signal; without a variable OTLP alone. Raise ConfigurationError."""
    known = (_OTLP, _PROMETHEUS, _NONE) if signal == "METRICS" else (_OTLP, _NONE)
    names = [each.strip().lower() for each in os.environ.get(f"OTEL_{signal}_EXPORTER", _OTLP).split(",")]
    for name in names:
        if name not in known:
            raise ConfigurationError(f"OTEL_{signal}_EXPORTER: {name!r} is not one of {', '.join(known)}")
    if _NONE in names and len(names) > 1:
        raise ConfigurationError(
            f"OTEL_{signal}_EXPORTER: names none and another exporter: remove one of them"
        )
    return names


def _flag(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() == "true"


def _do_nothing() -> None:
    """Do nothing: there is nothing to stop."""
