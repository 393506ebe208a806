"""Markdown that others wrote as one HTML file that needs nothing else: it runs nothing and fetches nothing, wherever it is opened."""

import base64
import hashlib
import html
import re
from importlib import resources
from typing import Final

from parley.runtime.printable import printable_line
from parley.runtime.safe_html import render_report

_STYLE: Final = resources.files("parley.runtime").joinpath("html_page.css").read_text("utf-8")
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
PAGE_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
)
"""The Content-Security-Policy of every page: a browser takes our styles, and nothing else, in case the cleaning ever fails."""
FORM_POLICY: Final = PAGE_POLICY.replace("form-action 'none'", "form-action 'self'")
"""The same for a page with a form, which is sent to where the page came from."""
_HEADING: Final = re.compile(r"<h1>(.*?)</h1>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]*>")
_MAX_TITLE: Final = 200
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="{referrer}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}</main>
</body>
</html>
"""


def render_page(markdown: str) -> str:
    """Return the whole file; its title is the first heading of the first level. A megabyte may take seconds."""
    body = render_report(markdown)
    return _PAGE.format(
        policy=PAGE_POLICY, referrer="no-referrer", title=_find_title(body), style=_STYLE, body=body
    )


def render_form_page(body: str) -> str:
    """Return a page whose body, clean HTML, may hold a form. Its title is found as `render_page` finds it."""
    # With `no-referrer` a browser would send the form with the origin `null`, as if another site had.
    return _PAGE.format(
        policy=FORM_POLICY, referrer="same-origin", title=_find_title(body), style=_STYLE, body=body
    )


def _find_title(body: str) -> str:
    """Return the title of a page's clean HTML, as HTML."""
    heading = _HEADING.search(body)
    text = html.unescape(_TAG.sub("", heading.group(1))) if heading else ""
    return html.escape(printable_line(text)[:_MAX_TITLE]) or "Report"
