"""Reads what a page or a feed says from its bytes. Runs by its path, in a process of its own that may take little time and memory.

Arguments: the folder of the libraries, and the processor time in seconds and the memory in bytes that it may take. On stdin, a line of
JSON (`kind`, `charset`, `content_type`, `url`, `characters`), then the bytes; on stdout, JSON with `title` and `text`.
"""

import io
import json
import re
import resource
import sys
from typing import Any

_MOST_ENTRIES = 20
_TAG = re.compile(r"<[^>]{0,500}>")


def read_page(body: bytes, given: dict[str, Any]) -> tuple[str, str]:
    """Return the title and the text of a page."""
    if "html" not in given["content_type"]:
        return "", _decode(body, given["charset"])
    import trafilatura

    page = _decode(body, given["charset"]) if given["charset"] else body
    found = trafilatura.bare_extraction(page, url=given["url"], with_metadata=True, include_comments=False)
    if found is None or isinstance(found, dict) or not found.text:
        return "", trafilatura.html2txt(page)
    return found.title or "", found.text


def read_feed(body: bytes, given: dict[str, Any]) -> tuple[str, str]:
    """Return the title of a feed, and a paragraph for each of its newest entries."""
    import feedparser

    headers = {"content-type": given["content_type"], "content-location": given["url"]}
    # A stream: feedparser takes bytes for the name of a file, and a text for an address to ask.
    found = feedparser.parse(io.BytesIO(body), response_headers=headers)
    if not found.version:
        raise ValueError("it is no feed of RSS or Atom")
    entries = [
        "\n".join(
            filter(
                None, (_read_plain(each, "title"), each.get("published", ""), _read_plain(each, "summary"))
            )
        )
        for each in found.entries[:_MOST_ENTRIES]
    ]
    return found.feed.get("title", ""), "\n\n".join(entries)


def _read_plain(entry: Any, name: str) -> str:
    return " ".join(_TAG.sub(" ", entry.get(name, "")).split())[:1000]


def _decode(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset or "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def main(library: str, seconds: int, memory: int) -> None:
    """Read stdin and write stdout, within limits."""
    sys.path.append(library)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    given = json.loads(sys.stdin.buffer.readline())
    read = {"page": read_page, "feed": read_feed}[given["kind"]]
    title, text = read(sys.stdin.buffer.read(), given)
    # JSON in ASCII: half of a surrogate pair would be no UTF-8.
    print(json.dumps({"title": title, "text": text[: given["characters"]]}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
