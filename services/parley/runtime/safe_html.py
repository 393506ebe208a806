"""Markdown that others wrote as HTML which cannot run or load anything."""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

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
_FOLD: Final = re.compile(r"<details>\n<summary>[^<>\n]*</summary>|</details>")
_parser: Final = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def render_markdown(text: str) -> str:
    """Return HTML of the text without scripts, styles, images, and links but to the web and to mail.

    Tags in the text are shown as they are written.
    """
    return _clean(_parser.parse(printable(text)), _TAGS)


def render_report(text: str) -> str:
    """Return HTML of a report, as above; what `safe_markdown.fold` yields in it can be folded up, and is at first.

    Only lines that stand by themselves count: texts of agents stand in block quotes and list items.
    """
    tokens = _parser.parse(printable(text))
    for place, token in enumerate(tokens):
        if token.type == "inline" and token.level == 1 and _FOLD.fullmatch(token.content):
            is_paragraph = tokens[place - 1].type == "paragraph_open"
            if is_paragraph:
                tokens[place - 1].hidden = tokens[place + 1].hidden = True
                tokens[place] = Token("html_block", "", 0, content=f"{token.content}\n")
    return _clean(tokens, _TAGS | {"details", "summary"})


def _clean(tokens: Sequence[Token], tags: AbstractSet[str]) -> str:
    return nh3.clean(
        _parser.renderer.render(tokens, _parser.options, {}),
        tags=set(tags),
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
    )
