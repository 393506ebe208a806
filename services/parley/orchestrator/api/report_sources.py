"""The sources of a debate with who cited them, and citations of sources that do not exist."""

from collections.abc import Iterable, Iterator
from typing import Final

from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.model.short_text import to_line
from parley.orchestrator.model.source_uses import list_source_uses
from parley.orchestrator.model.sources import describe_missing, place_of
from parley.orchestrator.model.times import time_of
from parley.runtime.agent_names import join_words
from parley.runtime.safe_markdown import inline, list_item, moment, table
from parley.v1.source_pb2 import Source, SourceUse

_MAX_TEXT: Final = 200
_MAX_MISSING: Final = 20
"""Numbers without a source that are named one by one."""
_HASH_DIGITS: Final = 12
_HEAD: Final = ("No.", "Source", "Found at", "Read", "SHA-256", "Cited by")


def sources_section(page: ReportPage) -> Iterator[str]:
    """Yield the section of a debate that has sources, or that cites some that do not exist."""
    blocks = list(source_blocks(page))
    yield from ["## Sources", *blocks] if blocks else []


def source_blocks(page: ReportPage) -> Iterator[str]:
    """Yield the sources, and a warning for what was cited and does not exist; nothing if there is neither."""
    sources = page.debate.sources
    uses: dict[int, list[SourceUse]] = {each.number: [] for each in sources}
    missing: dict[int, list[SourceUse]] = {}
    for use in list_source_uses(page.debate):
        (uses if use.source in uses else missing).setdefault(use.source, []).append(use)
    if sources:
        yield table(_HEAD, (_cells(page, each, uses[each.number]) for each in sources))
    if missing:
        yield "\n".join(map(list_item, _describe_missing(page, missing)))


def _cells(page: ReportPage, source: Source, uses: Iterable[SourceUse]) -> tuple[str, ...]:
    return (
        f"S{source.number}",
        to_line(source.title, _MAX_TEXT),
        to_line(place_of(source), _MAX_TEXT),
        moment(time_of(source.read_at)),
        source.sha256[:_HASH_DIGITS],
        _describe_uses(page, uses) or "no agent",
    )


def _describe_uses(page: ReportPage, uses: Iterable[SourceUse]) -> str:
    """Return who cited a source and where, such as `Ada (round 1, round 2, answer), Bo (round 1)`."""
    places: dict[str, dict[str, None]] = {}
    for each in uses:
        places.setdefault(each.agent_id, {})[_name_place(each)] = None
    return ", ".join(
        f"{page.names.of(agent)} ({', '.join(where)})" if agent else "the answer"
        for agent, where in places.items()
    )


def _name_place(use: SourceUse) -> str:
    if use.in_answer:
        return "answer"
    return f"round {use.round}" if use.round else use.phase


def _describe_missing(page: ReportPage, missing: dict[int, list[SourceUse]]) -> Iterator[str]:
    for number, uses in sorted(missing.items())[:_MAX_MISSING]:
        yield f"**Warning:** {describe_missing(number)} It was cited by {inline(_describe_uses(page, uses))}."
    if more := sorted(missing)[_MAX_MISSING:]:
        numbers = join_words([f"S{more[0]}", f"S{more[-1]}"][: len(more)], "to")
        yield f"**Warning:** {len(more)} more were cited that do not exist, {numbers}."
