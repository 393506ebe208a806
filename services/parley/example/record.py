"""The recorded events of the example, and the debate and the report that they give."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from parley.orchestrator.api import report
from parley.orchestrator.api.conversion import with_answer
from parley.orchestrator.api.folding import fold
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.envelope import GENESIS, Envelope, open_entry
from parley.v1.debate_pb2 import Debate
from parley.v1.event_pb2 import Event

LOG: Final = Path(__file__).with_name("debate.log")
"""The stored bytes of the debate's log in base64, an event a line."""


class ExampleDebate(Struct, frozen=True):
    """A debate that has ended.

    Attributes:
        events: In order; it is played at their times.
        debate: Its state after them.
        report: The same as a Markdown report.
    """

    events: tuple[Event, ...]
    debate: Debate
    report: str


def read_example() -> ExampleDebate:
    """Return the example, read like the log of every debate."""
    events = tuple(read_events())
    debate = fold(events)
    debate_format = all_formats().get(debate.spec.format)
    return ExampleDebate(
        events=tuple(each.message for each in events),
        debate=with_answer(debate, debate_format),
        report=report.render_report(debate, debate_format),
    )


def read_events() -> Iterator[Envelope]:
    """Yield the events of the log; each is checked against the hash of the one before."""
    before = GENESIS
    for line in LOG.read_text("ascii").splitlines():
        event = open_entry(base64.b64decode(line), before)
        before = event.hash
        yield event
