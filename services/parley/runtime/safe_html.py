"""Markdown that others wrote as HTML which cannot run or load anything."""

from typing import Final

import nh3
from markdown_it import MarkdownIt

from parley.runtime.printable import printable

_TAGS: Final = frozenset(
    [
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "s",
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
_ATTRIBUTES: Final = {"a": {"href", "title"}, "ol": {"start"}}
_parser: Final = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def render_markdown(text: str) -> str:
    """Return HTML of the text without scripts, styles, images, and links but to the web and to mail.

    Tags in the text are shown as they are written.
    """
    return nh3.clean(
        _parser.render(printable(text)),
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
    )
