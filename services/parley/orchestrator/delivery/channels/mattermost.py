"""Mattermost, by an incoming webhook: https://developers.mattermost.com/integrate/webhooks/incoming."""

from typing import Any, Final

from parley.orchestrator.delivery.channels.chat_text import Links, fit, split_text

_MAX_TITLE: Final = 200
_MAX_TEXT: Final = 3_500
"""Old servers take 4,000 characters in all, others 16,383."""
_ESCAPES: Final = {
    **{each: f"\\{each}" for each in "\\`|[]"},
    "&": "&amp;",
    "<": "&lt;",  # Slack's mentions and links are read too
    ">": "&gt;",
    "@": "@\u200b",  # a name is mentioned behind a backslash too
}
"""Mattermost reads Markdown. Its emphasis, lists and headings stay; links, images, mentions and code go."""


def mattermost_body(text: str, links: Links) -> dict[str, Any]:
    """Return the body for a text."""
    title, rest = split_text(text)
    parts = [f"**{fit(title, _MAX_TITLE, _ESCAPES)}**" if title else "", fit(rest, _MAX_TEXT, _ESCAPES)]
    parts.append("\n".join(f"[{shown}](<{url}>)" for shown, url in links))
    return {"text": "\n\n".join(filter(None, parts))}
