import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from opentelemetry import context, trace

from parley.runtime import logs, telemetry
from parley.runtime.labels import label_scope, labels
from tests.support.hostile_services import HOSTILE

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_labels_trace_and_module() -> None:
    stream = io.StringIO()
    logs.configure_logging("info", stream=stream)
    token = context.attach(telemetry.extract({"traceparent": TRACEPARENT}))
    try:
        with label_scope(tenant="acme"), label_scope(debate="deb-1"):
            logs.get_logger("parley.part").info("began", round=2)
    finally:
        context.detach(token)
    (line,) = lines(stream)
    assert line.pop("timestamp")
    assert line == {
        "event": "began",
        "level": "info",
        "module": "parley.part",
        "round": 2,
        "tenant": "acme",
        "debate": "deb-1",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": "b7ad6b7169203331",
    }


def test_lines_below_the_level_are_left_out() -> None:
    stream = io.StringIO()
    logs.configure_logging("warning", stream=stream)
    logs.get_logger("x").info("quiet")
    logs.get_logger("x").warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_a_librarys_warnings_come_in_the_same_form_and_its_chatter_does_not() -> None:
    stream = io.StringIO()
    logs.configure_logging("info", stream=stream)
    library = logging.getLogger("some.library")
    library.info("chatter")
    library.warning("trouble with %s", "it")
    (line,) = lines(stream)
    assert (line["event"], line["level"], line["logger"]) == ("trouble with it", "warning", "some.library")


def test_an_exception_is_one_json_line_with_its_traceback() -> None:
    stream = io.StringIO()
    logs.configure_logging("info", stream=stream)
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError:
        logs.get_logger("x").exception("failed")
    (line,) = lines(stream)
    assert "ZeroDivisionError: division by zero" in line["exception"]


def test_a_terminal_gets_readable_text() -> None:
    stream = Terminal()
    logs.configure_logging("info", stream=stream)
    logs.get_logger("x").info("began")
    logging.getLogger("some.library").warning("trouble")
    text = stream.getvalue()
    assert "began" in text
    assert "trouble" in text
    assert not text.startswith("{")


def test_nothing_is_written_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure_logging("debug")
    logs.get_logger("x").debug("ours")
    logging.getLogger("some.library").warning("theirs")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "ours" in captured.err
    assert "theirs" in captured.err


def test_labels_end_with_their_block() -> None:
    with label_scope(tenant="acme"):
        assert labels() == {"tenant": "acme"}
    assert labels() == {}


def test_a_trace_goes_out_as_it_came_in() -> None:
    carried = telemetry.extract({"traceparent": TRACEPARENT})
    assert telemetry.inject(carried) == {"traceparent": TRACEPARENT}


def test_a_carrier_without_a_trace_does_not_take_over_the_current_one() -> None:
    token = context.attach(telemetry.extract({"traceparent": TRACEPARENT}))
    try:
        assert not trace.get_current_span(telemetry.extract({})).get_span_context().is_valid
    finally:
        context.detach(token)


def test_a_traceback_on_a_terminal_shows_no_local_variables() -> None:
    stream = Terminal()
    logs.configure_logging("info", stream=stream)

    def fail(secret: str) -> None:
        raise ValueError("it went wrong")

    try:
        fail("sk-" + "never-shown")
    except ValueError as error:
        logs.get_logger("x").error("call failed", exc_info=error)
        logging.getLogger("library").exception("theirs failed")
    assert stream.getvalue().count("ValueError: it went wrong") == 2
    assert "sk-never-shown" not in stream.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_an_endpoint_wrote_does_nothing_to_a_terminal(stream: io.StringIO) -> None:
    logs.configure_logging("info", stream=stream)
    said = HOSTILE
    logs.get_logger("x").warning(said, error=said, parts=[said])
    logging.getLogger("library").warning(said)
    try:
        int(b"\x1b[2J")
    except ValueError:
        logs.get_logger("x").exception("broke")
    shown = stream.getvalue()
    if stream.isatty():
        shown = re.sub("\x1b\\[[0-9]{1,2}m", "", shown)  # the colors of our own
    assert "gone" in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u206f]", shown)
