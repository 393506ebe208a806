"""What a page or a feed says, read in a process of its own: a parser may take for ever, or all memory."""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from parley.orchestrator.research.fetcher import Page
from parley.orchestrator.research.web_address import FetchError
from parley.runtime.python_process import python_command, run_filter

_LIBRARY: Final = "trafilatura"
_SECONDS: Final = 5
"""Of processor time; on a machine that is busy it may take `_WHEN_BUSY` times as long."""
_WHEN_BUSY: Final = 4
_MEMORY_BYTES: Final = 1 << 30
MAX_TITLE: Final = 200
MAX_TEXT: Final = 12_000
"""Characters that are kept of one source."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: a title in one line, which may be empty, and a text."""

    title: str
    text: str


async def parse(page: Page, *, feed: bool = False) -> Reading:
    """Return what a page says, or the newest entries of a feed; at most `MAX_TEXT` characters.

    Raises:
        FetchError: it could not be read within the limits, or says nothing.
    """
    given = {
        "kind": "feed" if feed else "page",
        "charset": page.charset,
        "content_type": page.content_type,
        "url": page.url,
        "characters": MAX_TEXT,
    }
    found = await _run(json.dumps(given).encode() + b"\n" + page.body)
    title, text = str(found.get("title", "")), str(found.get("text", ""))
    if not text.strip():
        raise FetchError("it says nothing that can be read")
    return Reading(" ".join(clean_text(title).split())[:MAX_TITLE], clean_text(text).strip())


async def _run(given: bytes) -> dict[str, str]:
    found = find_spec(_LIBRARY)
    if found is None or found.origin is None:
        raise FetchError("what reads pages is not installed; it comes with the extra `research`")
    script, library = str(Path(__file__).with_name("parse.py")), str(Path(found.origin).parents[1])
    command = python_command("-I", "-X", "utf8", script, library, str(_SECONDS), str(_MEMORY_BYTES))
    try:
        output = await run_filter(command, given, _WHEN_BUSY * _SECONDS)
    except TimeoutError:
        raise FetchError(f"it was not parsed within {_WHEN_BUSY * _SECONDS} s") from None
    try:
        read: dict[str, str] = json.loads(output)
    except ValueError:
        raise FetchError("it could not be parsed") from None
    return read


def clean_text(text: str) -> str:
    """Return a text without control characters and halves of characters, which no message can hold."""
    kept = "".join(each if each.isprintable() or each in "\n\t" else " " for each in text)
    return kept.encode("utf-8", "replace").decode()
