"""The report of a debate in which every text is hostile, as a reader of Markdown renders it to HTML."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from google.protobuf.message import Message
from markdown_it import MarkdownIt

from parley.orchestrator.api.decision import decision_of
from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.envelope import Envelope, create_event
from parley.orchestrator.log.feedback import Feedback
from parley.v1.event_pb2 import Event
from tests.support.kept_debates.kept_debate import KeptDebate
from tests.support.kept_logs import KEPT, read_log
from tests.unit.orchestrator.made_logs import log

HOSTILE = """
# Totals

Forged
======

![pixel](http://127.0.0.1/pixel.png) ![ref][pixel] ![pixel]
<img src="http://127.0.0.1/a.png"><script>alert(1)</script><!-- the rest

[pixel]: http://127.0.0.1/b.png "t"
[ ]: http://127.0.0.1/c
[run](javascript:alert(1)) [read](<file:///etc/passwd>) [here](../x "t") [coded](java&#115;cript:x) \\\\[twice\\\\](data:x)
[below](
javascript:x) [[in](vbscript:x)](HTTPS://127.0.0.1/) ![picture](ftp://x) [web](https://127.0.0.1/e) [mail]( mailto:a@b.example)
[odd](<mailto:x>) [odd](<HTTPS://x>) [odd](<https://x`y>) [odd](\u00a0https://x) [fine](<https://x>)
> ## Answer
- # Answer
[R1]:
  http://127.0.0.1/d
</blockquote><h1>Answer</h1>
| a | b |
```html
<iframe src=x>"""
HARMLESS = "\n".join("x" * len(line) for line in HOSTILE.split("\n"))
"""As many lines, each as long: a report has places of their own for long questions and for long dissent."""
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
ELEMENTS = HEADINGS | frozenset(
    [
        "a",
        "blockquote",
        "details",
        "summary",
        "br",
        "code",
        "em",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
"""What harms nobody: a link is followed by whoever clicks it, to where `LINKS` lead."""
LINKS = ("http://", "https://", "mailto:")
TEXTS = frozenset(
    {
        *("text", "rendered", "question", "name", "message", "description", "explanation", "reason", "title"),
        *("position", "quote", "path", "url", "topic", "recommendation", "implementation", "trade_offs"),
        *("challenge", "source", "partial_text", "arguments", "model", "route", "summary", "failure"),
        *(
            "caveats",
            "agreements",
            "guidance",
            "key_arguments",
            "trade_offs_accepted",
            "tradeoffs",
            "priorities",
        ),
        *("recommendations", "open_questions", "claims_to_cite", "rounds_ended_by", "ended_by"),
    }
)
"""Fields that hold what a model, a person or an endpoint wrote."""


class Page(HTMLParser):
    """A rendered page: its elements, its headings, what it fetches, and the links that it defines for all of itself."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.headings: list[str] = []
        self.folded = 0
        self.links: list[str] = []
        self.env: dict[str, Any] = {}
        reader = MarkdownIt("commonmark", {"html": True}).enable("table")
        reader.validateLink = lambda url: True  # type: ignore[method-assign]  # not every reader looks at addresses
        self.feed(reader.render(markdown, self.env))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.folded += tag == "details"
        if tag in HEADINGS:
            self.headings.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]


def add(message: Any, text: str) -> None:
    """Add a text to every text of a message."""
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for each in value if field.is_repeated else (value,):
                add(each, text)
        elif field.name in TEXTS and field.type == field.TYPE_STRING:
            if field.is_repeated:
                value[:] = [f"{each}{text}" for each in value]
            else:
                setattr(message, field.name, f"{value}{text}")


def copy_events(events: list[Envelope], *, poisoned: bool) -> Iterator[Event]:
    for event in events:
        if event.payload is None:
            continue
        payload: Message = type(event.payload)()
        payload.CopyFrom(event.payload)
        add(payload, HOSTILE if poisoned else HARMLESS)
        yield create_event(event.key, payload, event.attempt)


def pages(kept: KeptDebate, *, poisoned: bool) -> Iterator[Page]:
    state = fold(log(*copy_events(read_log(kept), poisoned=poisoned)))
    known = all_formats()
    is_shipped = state.spec.format.partition("@")[0] in known.names()
    debate_format = known.get(state.spec.format) if is_shipped else None
    said = f"Good.{HOSTILE if poisoned else ''}"
    feedback = Feedback("default", state.id, "r", 1, said, "2026-01-01", (), "")
    yield Page(render_report(state, debate_format, feedback))
    if state.outcome.HasField("moderated"):
        yield Page(decision_of(state, state.outcome.moderated, debate_format).markdown)


@pytest.mark.parametrize("name", KEPT)
def test_no_text_loads_anything_runs_anything_or_poses_as_a_part_of_the_report(name: str) -> None:
    for ours, theirs in zip(pages(KEPT[name], poisoned=False), pages(KEPT[name], poisoned=True), strict=True):
        assert theirs.headings == ours.headings
        assert theirs.elements <= ELEMENTS
        assert theirs.folded == ours.folded
        assert not theirs.env.get("references")
        assert all(each.lower().startswith(LINKS) for each in theirs.links)
        assert any(each.startswith("mailto:") for each in theirs.links)
