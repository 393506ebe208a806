"""Markdown of others as HTML: what it shows, and what it cannot do."""

from html.parser import HTMLParser

import pytest

from parley.runtime.safe_html import render_markdown


def test_markdown_becomes_html() -> None:
    page = render_markdown("## Why\n\n- **one**\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert "<h2>Why</h2>" in page
    assert "<li><strong>one</strong></li>" in page
    assert "<td>2</td>" in page


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "<img src=x onerror=alert(1)>",
        "![x](https://evil.example/pixel.png)",
        "<a href='#' onclick='alert(1)'>x</a>",
        "[x](https://ok.example 'a\" onmouseover=\"alert(1)')",
        "<svg><a xlink:href='javascript:alert(1)'>x</a></svg>",
        "<style>*{display:none}</style>",
        "<javascript:alert(1)>",
        "[x](/v1/debates)",
        "[x](//evil.example)",
    ],
)
def test_nothing_in_it_runs_or_loads(text: str) -> None:
    found = _Reader()
    found.feed(render_markdown(text))
    assert found.tags <= {"p", "a", "em", "code"}
    assert found.attributes <= {"href", "title", "rel"}
    assert all(each.startswith(("https:", "mailto:")) for each in found.links)


class _Reader(HTMLParser):
    """Tags, names of attributes, and links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name == "href"]


def test_marks_that_turn_or_hide_text_are_left_out() -> None:
    assert render_markdown("a\u202eb\u2066c\x1b[31md") == "<p>abcd</p>\n"
