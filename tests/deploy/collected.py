"""What a real collector passes on of a short run: each signal by the service that sent it, and metrics as a Prometheus reads them."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.deploy.instruments import Instrument
from tests.support.ports import free_ports
from tests.support.trace_collector import HttpCollector


@dataclass(frozen=True, slots=True)
class Rotel:
    """A collector that runs: where it takes OTLP by gRPC, and where by HTTP."""

    grpc: str
    http: str


@contextmanager
def rotel(behind: HttpCollector, folder: Path) -> Iterator[Rotel]:
    """Run the collector `rotel`, which passes everything on, while the block runs. Raises LookupError where there is none."""
    found = find_spec("rotel")
    if found is None or found.origin is None:
        raise LookupError(
            "the collector rotel is not installed: make check-deploy installs it where it has a wheel"
        )
    grpc, http = (f"127.0.0.1:{port}" for port, _ in zip(free_ports(), range(2), strict=False))
    command = [
        str(Path(found.origin).with_name("rotel-agent")),
        "start",
        f"--otlp-grpc-endpoint={grpc}",
        f"--otlp-http-endpoint={http}",
        "--exporter=otlp",
        f"--otlp-exporter-endpoint={behind.endpoint}",
        "--otlp-exporter-protocol=http",
        f"--pid-file={folder / 'rotel.pid'}",
        "--batch-timeout=100ms",
    ]
    # `tests.conftest` takes the authorities of this machine away, without which this program does not start.
    dropped = ("ROTEL_", "OTEL_", "SSL_CERT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    with (folder / "rotel.log").open("wb") as log:
        process = subprocess.Popen(command, env=kept, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield Rotel(f"http://{grpc}", f"http://{http}")
        finally:
            process.terminate()  # it passes on what it still has
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass(frozen=True, slots=True)
class Collected:
    """All that came, by service: its resource's attributes, spans, metrics as they came last, and log lines."""

    resources: dict[str, dict[str, Any]]
    spans: dict[str, list[Span]]
    metrics: dict[str, dict[str, metrics_pb2.Metric]]
    lines: dict[str, list[str]]

    @classmethod
    def of(cls, exports: Iterable[tuple[str, bytes]]) -> "Collected":
        """Read exports in the order in which they came."""
        collected = cls({}, {}, {}, {})
        for path, body in exports:
            collected._take(path, body)
        return collected

    def _take(self, path: str, body: bytes) -> None:
        match path:
            case "/v1/traces":
                for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                    spans = self.spans.setdefault(self._service(sent), [])
                    spans += [span for scope in sent.scope_spans for span in scope.spans]
            case "/v1/metrics":
                for told in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    metrics = self.metrics.setdefault(self._service(told), {})
                    metrics |= {
                        metric.name: metric for scope in told.scope_metrics for metric in scope.metrics
                    }
            case "/v1/logs":
                for said in ExportLogsServiceRequest.FromString(body).resource_logs:
                    lines = self.lines.setdefault(self._service(said), [])
                    lines += [
                        line.body.string_value for scope in said.scope_logs for line in scope.log_records
                    ]

    def _service(self, sent: Any) -> str:
        attributes = values(sent.resource.attributes)
        service = str(attributes["service.name"])
        self.resources.setdefault(service, {}).update(attributes)
        return service


def values(attributes: Iterable[Any]) -> dict[str, Any]:
    """Return attributes as OTLP writes them by name; those of a list as a tuple."""
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_value(each) for each in value.array_value.values)
    return getattr(value, kind) if kind else None


def exposition(collected: Collected) -> str:
    """Return the metrics in the text that a Prometheus scrapes, named as the OpenTelemetry collector names them.

    Attributes of the resource become labels, as the collector of `k8s/` is told to do.
    """
    lines: list[str] = []
    for service, metrics in collected.metrics.items():
        resource = collected.resources[service]
        for metric in metrics.values():
            lines += _samples(metric, resource)
    return "\n".join(lines) + "\n"


_KINDS: Final = {"histogram": "histogram", "gauge": "gauge", "sum": "counter"}


def _samples(metric: metrics_pb2.Metric, resource: Mapping[str, Any]) -> Iterator[str]:
    data = metric.WhichOneof("data")
    assert data in _KINDS, metric.name
    kind = "gauge" if data == "sum" and not metric.sum.is_monotonic else _KINDS[data]
    instrument = Instrument(metric.name, metric.unit, kind)
    base = instrument.base
    for point in getattr(metric, data).data_points:
        labels = {**resource, **values(point.attributes)}
        if kind == "histogram":
            counted = 0
            for bound, count in zip((*point.explicit_bounds, "+Inf"), point.bucket_counts, strict=True):
                counted += count
                yield f"{base}_bucket{_labels({**labels, 'le': bound})} {counted}"
            yield f"{base}_sum{_labels(labels)} {point.sum}"
            yield f"{base}_count{_labels(labels)} {point.count}"
        else:
            end = "_total" if kind == "counter" else ""
            number = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
            yield f"{base}{end}{_labels(labels)} {number}"


def _labels(labels: Mapping[str, Any]) -> str:
    shown = (f'{name.replace(".", "_")}="{value}"' for name, value in labels.items())
    return "{" + ",".join(shown) + "}"
