"""Discord, by a webhook: https://docs.discord.com/developers/resources/webhook#execute-webhook."""

from typing import Any, Final

from parley.orchestrator.delivery.channels.chat_text import Links, fit, split_text

_MAX_TITLE: Final = 256
_MAX_TEXT: Final = 4_096
"""Of an embed; all of its texts together may have 6,000."""
_ESCAPES: Final = {each: f"\\{each}" for each in "\\`|<[]"}
"""Discord reads Markdown. Its emphasis, lists and headings stay; links that show another text, mentions (`<@1>`) and what hides
text go. Code goes with them, since nothing can be escaped in it."""


def discord_body(text: str, links: Links) -> dict[str, Any]:
    """Return the body for a text: an embed, since links in one are not previewed, and one that may mention nobody."""
    title, rest = split_text(text)
    linked = "\n".join(f"[{shown}]({url})" for shown, url in links)
    room = _MAX_TEXT - len(linked) - 2
    parts = [fit(rest, room, _ESCAPES), linked]
    embed = {"title": fit(title, _MAX_TITLE, _ESCAPES), "description": "\n\n".join(filter(None, parts))}
    return {
        "embeds": [{name: part for name, part in embed.items() if part}],
        "allowed_mentions": {"parse": []},
    }
