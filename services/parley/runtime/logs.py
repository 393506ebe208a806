"""Structured logs on stderr: JSON for machines, readable text on a terminal, with trace, tenant and debate."""

import io
import logging
import sys
import time
from typing import Any, Final, Literal, TextIO, cast

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry._logs import get_logger as get_otel_logger
from opentelemetry.context import get_current

from parley.runtime.labels import labels
from parley.runtime.late_packages import hide_package
from parley.runtime.lossy_stream import LossyStream
from parley.runtime.printable import printable, printable_json

with hide_package("rich"):  # for tracebacks that we do not print
    import structlog
    from structlog.typing import EventDict, ExcInfo, FilteringBoundLogger, Processor, WrappedLogger

Level = Literal["debug", "info", "warning", "error"]

_SEVERITIES: Final = {
    "debug": SeverityNumber.DEBUG,
    "info": SeverityNumber.INFO,
    "warning": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
    "critical": SeverityNumber.FATAL,
}
_STANDARD_FIELDS: Final = frozenset({"event", "level", "timestamp", "exc_info", "trace_id", "span_id"})
"""Entries for which OpenTelemetry's record has a field of its own."""


def get_logger(name: str) -> FilteringBoundLogger:
    """Return a logger whose lines name the module; safe to create at import time."""
    logger: FilteringBoundLogger = structlog.get_logger(module=name)
    return logger


def configure_logging(level: Level = "info", *, stream: TextIO | None = None) -> None:
    """Send our logs, and the warnings of every library, to stderr (or `stream`), never to stdout."""
    output = _Stderr() if stream is None else LossyStream(stream)
    terminal = output.isatty()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_labels,
        _add_trace,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _export,
    ]
    renderer: list[Processor] = (
        # Plain: a prettier traceback would print local variables, and with them keys and prompts.
        [
            _make_printable,
            structlog.dev.ConsoleRenderer(colors=True, exception_formatter=_printable_traceback),
        ]
        if terminal
        else [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
            _printable_json,
        ]
    )
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(file=output),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )
    _route_library_logs(output, shared, renderer)


def _route_library_logs(
    output: "LossyStream | _Stderr", shared: list[Processor], renderer: list[Processor]
) -> None:
    handler = logging.StreamHandler(cast("TextIO", output))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)


class _Stderr:
    """The current sys.stderr, so that a redirected stderr is followed; there may be none."""

    def write(self, text: str) -> int:
        return LossyStream(sys.stderr).write(text) if sys.stderr is not None else len(text)

    def flush(self) -> None:
        if sys.stderr is not None:
            LossyStream(sys.stderr).flush()

    def isatty(self) -> bool:
        return sys.stderr is not None and LossyStream(sys.stderr).isatty()


def _add_labels(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for name, value in labels().items():
        event.setdefault(name, value)
    return event


def _export(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Pass a line to OpenTelemetry, which drops it unless it exports log lines."""
    source = str(event.get("module") or event.get("logger") or "")
    if source.startswith("opentelemetry"):
        return event  # a failing exporter logs that, and its line would be exported again
    level = str(event["level"])
    record = LogRecord(
        timestamp=time.time_ns(),
        context=get_current(),
        severity_text=level,
        severity_number=_SEVERITIES.get(level),
        body=str(event.get("event", "")),
        attributes={
            name: str(event[name]) for name in event.keys() - _STANDARD_FIELDS if not name.startswith("_")
        },
        exception=_exception_of(event.get("exc_info")),
    )
    get_otel_logger(source).emit(record)
    return event


def _make_printable(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Remove control sequences from texts of others, such as an endpoint's error."""
    return {
        name: value if name == "exc_info" or isinstance(value, int | float) else printable(str(value))
        for name, value in event.items()
    }


def _printable_traceback(stream: TextIO, info: ExcInfo) -> None:
    traceback_text = io.StringIO()
    structlog.dev.plain_traceback(traceback_text, info)
    stream.write(printable(traceback_text.getvalue()))


def _printable_json(_logger: WrappedLogger, _method: str, line: Any) -> str:
    return printable_json(str(line))


def _exception_of(info: object) -> BaseException | None:
    if isinstance(info, tuple):
        info = info[1]
    if isinstance(info, BaseException):
        return info
    return sys.exc_info()[1] if info else None


def _add_trace(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event
