"""What a page or a feed says, read in a process of its own: a parser may take for ever, or all memory."""

import json
from typing import Final

from msgspec import Struct

from parley.orchestrator.research.errors import FetchError
from parley.orchestrator.research.fetcher import Page
from parley.orchestrator.research.reader_process import run_reader

_SECONDS: Final = 5
"""Of processor time; on a machine that is busy it may take `_WHEN_BUSY` times as long."""
_WHEN_BUSY: Final = 4
MAX_TITLE: Final = 200
SHOWN_CHARACTERS: Final = 12_000
"""Characters of one source that are shown at most."""
MAX_TEXT: Final = 200_000
"""Characters that are read of a page, so that what is shown can be chosen."""


class Reading(Struct, frozen=True):
    """What was read: a title in one line, which may be empty, and a text."""

    title: str
    text: str


async def parse(page: Page, *, feed: bool = False) -> Reading:
    """Return what a page says, or the newest entries of a feed; at most `MAX_TEXT` characters of a page, and `SHOWN_CHARACTERS` of a feed.

    Raises:
        FetchError: it could not be read within the limits, or says nothing.
    """
    given = {
        "kind": "feed" if feed else "page",
        "charset": page.charset,
        "content_type": page.content_type,
        "url": page.url,
        "characters": SHOWN_CHARACTERS if feed else MAX_TEXT,
    }
    found = await run_reader(
        "parse.py",
        "trafilatura",
        json.dumps(given).encode() + b"\n" + page.body,
        cpu_seconds=_SECONDS,
        seconds=_WHEN_BUSY * _SECONDS,
        missing="what reads pages is not installed; it comes with the extra `research`",
        late=f"it was not parsed within {_WHEN_BUSY * _SECONDS} s",
        unreadable="it could not be parsed",
    )
    title, text = str(found.get("title", "")), str(found.get("text", ""))
    if not text.strip():
        raise FetchError("it says nothing that can be read")
    return Reading(" ".join(clean_text(title).split())[:MAX_TITLE], clean_text(text).strip())


def clean_text(text: str) -> str:
    """Return a text without control characters and halves of characters, which no message can hold."""
    kept = "".join(each if each.isprintable() or each in "\n\t" else " " for each in text)
    return kept.encode("utf-8", "replace").decode()
