"""Slack, by an incoming webhook: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks."""

from typing import Any, Final

from parley.orchestrator.delivery.channels.chat_text import Links, fit, split_text

_MAX_TITLE: Final = 150
"""Of a header."""
_MAX_TEXT: Final = 3_000
"""Of the text of a section."""
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""Mentions (`<!channel>`) and links (`<url|text>`) begin with `<`."""


def slack_body(text: str, links: Links) -> dict[str, Any]:
    """Return the body for a text. What agents wrote stands in plain text, in which Slack makes no link and no mention."""
    title, rest = split_text(text)
    blocks = [{"type": "header", "text": _create_plain_text(title, _MAX_TITLE)}] if title else []
    if rest:
        blocks.append({"type": "section", "text": _create_plain_text(rest, _MAX_TEXT)})
    for shown, url in links:
        linked = f"<{fit(url, _MAX_TEXT - 200, _ESCAPES)}|{shown}>"
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": linked}})
    return {
        "text": fit(title, _MAX_TITLE, _ESCAPES),  # what a notification shows
        "blocks": blocks,
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _create_plain_text(text: str, maximum: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": fit(text, maximum, _ESCAPES), "emoji": False}
