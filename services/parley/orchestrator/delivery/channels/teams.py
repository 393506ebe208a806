"""Microsoft Teams, by a workflow that takes webhooks: an Adaptive Card, https://adaptivecards.io/explorer/RichTextBlock.html."""

from typing import Any, Final

from parley.orchestrator.delivery.channels.chat_text import Links, fit, split_text

_MAX_TITLE: Final = 200
_MAX_TEXT: Final = 4_000
_MAX_LINES: Final = 60
"""Teams takes 28 KB a message: 4,000 units of UTF-16 are 12 KB of UTF-8 at most, and each line takes 100 bytes besides."""


def teams_body(text: str, links: Links) -> dict[str, Any]:
    """Return the body for a text. It stands in text runs, which know no Markdown and no mention, one for each line."""
    title, rest = split_text(text)
    lines = fit(rest, _MAX_TEXT).splitlines()
    shown = [*lines[: _MAX_LINES - 1], " ".join(lines[_MAX_LINES - 1 :])]
    runs = [_line(fit(title, _MAX_TITLE), weight="Bolder", size="Medium")] if title else []
    runs += [_line(each) for each in shown if each.strip()]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": runs,
    }
    if links:
        card["actions"] = [{"type": "Action.OpenUrl", "title": shown, "url": url} for shown, url in links]
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _line(text: str, **style: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}
