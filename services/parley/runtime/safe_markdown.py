"""The pieces of a page in CommonMark that shows texts of others: none of their markup can reach out of its place.

Such a text has no headings, HTML, images, definitions of links, and links only to the web and to mail; the rest stays. What was a heading
is a line in bold, with blank lines around it unless it stands in a list or a quote. The text is meant for a block quote or a list item,
which also ends the fences that it leaves open. If only a parser could decide whether a piece is code, it counts as no code, and markup in
it is escaped: a backslash too many does no harm.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]<>|#~&]")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_HEADING: Final = re.compile(r"^([\s>*+\-\d.)]*)(#{1,6}(?:\s|$))")
_TITLE: Final = re.compile(
    r"^((?:[ \t]{0,3}(?:>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t])))*[ ]{0,3})#{1,6}[ \t]+(?=\S)([^*\\]+)$"
)
"""A heading with its title, which can be set in bold: it has no emphasis but bold, which is left out, and no escapes of its own.

No blank fits two of its places, else a title of thousands would be tried for hours.
"""
_BOLD: Final = re.compile(r"(?<![\w*])\*\*(?=[^\s*])([^*]+)(?<=\S)\*\*(?![\w*])")
_TOP_HEADING: Final = re.compile(r"^( {0,3})(#{1,6})(?=[ \t]|$)")
_UNDERLINE: Final = re.compile(r"^([ \t>]*)((?:=+|-+)[ \t]*)$")
_HTML: Final = r"(?<!\\)(?:\\\\)*<(?!https?://[^\s<>`]*>)(?=[A-Za-z/!?])"
"""The beginning of a tag or a comment, unless it is escaped already. Links in angle brackets are none."""
_IMAGE: Final = r"(?<!\\)(?:\\\\)*!(?=\[)"
"""The beginning of an image, which would be fetched from the address in the text; without its `!` it is a link."""
_LINK: Final = r"(?<!\\)(?:\\\\)*\](?=\((?![ \t]*(?:<https?://[^\s<>`]*>|(?i:https?|mailto):)))"
"""Where the address of a link begins that is none of the web or of mail: it could run something, or lead to a file of the reader."""
_MAY_DEFINE: Final = re.compile(r"^[\s>*+\-\d.)]*\[")
"""A line with which the definition of a link may begin: it would count on the whole page."""
_MARKS: Final = ("<", "![", "](")
"""One of these stands in a line with markup. To look for them takes a hundredth of what the patterns take, for texts of megabytes."""
_CODE: Final = r"(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
_CODE_SPAN: Final = re.compile(_CODE)
_MARKUP: Final = re.compile(f"{_HTML}|{_IMAGE}|{_LINK}")
_MARKUP_OR_CODE: Final = re.compile(f"(?P<code>{_CODE})|{_HTML}|{_IMAGE}|{_LINK}")
_FENCE: Final = re.compile(r"^(?:(`{3,})[^`]*|(~{3,}).*)$")
_FENCE_WITHIN: Final = re.compile(r"^[\s>*+\-\d.)]+(?:`{3}|~{3})")
_BEFORE_FENCE: Final = " \t>*+-0123456789.)"
_MAX_BACKTICKS: Final = 100
"""Of a line that is looked at for pairs: each run of another length is looked for in all of the rest, which holds the loop."""
_MAY_REACH_OUT: Final = ("<", "[", "]", "`", "~", "#", "\r")
_MAY_UNDERLINE: Final = re.compile(r"\n[ \t>]*[=\-]+[ \t]*$", re.MULTILINE)
"""A text without these is harmless, as most texts are: it has no tag, image, link, heading, fence, code, or line below a heading."""
_MAX_NAME: Final = 40
"""Characters of a short text, such as a name or a word of a table, which a page holds again and again."""
_PAIRED_OTHERWISE: Final = frozenset("[|\\")
"""Characters of links, tables and escapes, next to which backticks may pair in other ways."""


def inline(text: str) -> str:
    """Return text on one line in which nothing is markup."""
    if text.isalnum():  # such as numbers, of which a table has thousands
        return text
    return _inline_name(text) if len(text) <= _MAX_NAME else _inline(text)


def _inline(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", " ".join(text.split()))


_inline_name = lru_cache(2048)(_inline)


def quote(text: str) -> str:
    """Return text in a block quote, without the markup that would reach out of it; blank lines around it are left out."""
    quoted = to_safe_markdown(text).replace("\n", "\n> ")
    while "\n> \n" in quoted:  # twice, since one replacement takes every other of several blank lines
        quoted = quoted.replace("\n> \n", "\n>\n")
    return f"> {quoted}" if quoted else ">"


def list_item(text: str) -> str:
    """Return a list item, without the markup that would reach out of it; the lines after the first are indented."""
    first, _, rest = to_safe_markdown(text).partition("\n")
    if first and not first.strip("- \t"):
        first = f"\\{first}"  # after the item's own dash, nothing but dashes would be a line across the page
    if not rest:
        return f"- {first}"
    return "\n".join([f"- {first}", *[f"  {line}" if line.strip() else "" for line in rest.split("\n")]])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells hold no markup."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head))]
    lines += [f"| {' | '.join(map(inline, row))} |" for row in rows]
    return "\n".join(lines)


def fold(title: str, blocks: Iterable[str]) -> Iterator[str]:
    """Yield blocks that a reader of HTML can fold up, under a title in plain words; other readers see them all.

    No text in the blocks can end it: tags in texts are escaped, and stand in block quotes and list items.
    """
    yield f"<details>\n<summary>{html.escape(' '.join(title.split()))}</summary>"
    yield from blocks
    yield "</details>"


def moment(time: datetime) -> str:
    """Return a date and time in UTC, to the second."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float) -> str:
    """Return how long something took, such as `4.2 s` or `1 h 2 min 3 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


def to_safe_page(text: str) -> str:
    """Return a page without HTML, images, definitions of links, and links but to the web and to mail; its headings stay."""
    return to_safe_markdown(text, keeps_headings=True)


def lower_headings(text: str, highest: int) -> str:
    """Return a text whose headings (`#`) stand below those of the page: the highest at this level, and the others as far below it as before."""
    lines = _LINE_END.split(text)
    # What looks like a heading is code in a fence at the left edge, and in one of a list or a quote, which ends none at the left.
    within = [line.lstrip(_BEFORE_FENCE) if _FENCE_WITHIN.match(line) else line for line in lines]
    found = [
        None if any(is_fenced) else _TOP_HEADING.match(line)
        for line, *is_fenced in zip(lines, _in_fences(lines), _in_fences(within), strict=True)
    ]
    by = highest - min((len(each[2]) for each in found if each), default=highest)
    if by <= 0:
        return text
    lowered = [
        f"{each[1]}{'#' * min(6, len(each[2]) + by)}{line[each.end() :]}" if each else line
        for line, each in zip(lines, found, strict=True)
    ]
    return "\n".join(lowered)


def to_safe_markdown(text: str, *, keeps_headings: bool = False) -> str:
    """Return a text without the markup that would reach out of its place; blank lines around it are left out."""
    text = text.strip()
    if not _may_reach_out(text):
        return text
    lines = _LINE_END.split(text)
    has_nested_fences = any(map(_FENCE_WITHIN.match, lines))
    fenced = [False] * len(lines) if has_nested_fences else list(_in_fences(lines))
    heading = _escape_heading if has_nested_fences else _embolden_heading
    prose = [line for line, is_fenced in zip(lines, fenced, strict=True) if not is_fenced]
    markup = _MARKUP_OR_CODE if all(map(_pairs_its_backticks, prose)) else _MARKUP
    defines = any(map(_MAY_DEFINE.match, prose))
    shown = []
    before = ""
    for line, is_fenced in zip(lines, fenced, strict=True):
        shown.append(
            line
            if is_fenced
            else _escape_line(line, before, markup, None if keeps_headings else heading, defines=defines)
        )
        before = line
    if not keeps_headings and not has_nested_fences:
        shown = list(_set_headings_apart(lines, fenced, shown))
    return "\n".join(shown)


def _set_headings_apart(lines: Sequence[str], fenced: Sequence[bool], shown: Sequence[str]) -> Iterator[str]:
    """Yield the lines as they are shown, with blank ones around what was a heading: it would run into the text next to it."""
    before, was_heading = "", False
    for line, is_fenced, each in zip(lines, fenced, shown, strict=True):
        is_heading = not is_fenced and _TOP_HEADING.match(line) is not None
        if (is_heading or was_heading) and before.strip() and line.strip():
            yield ""
        yield each
        before, was_heading = line, is_heading


def _may_reach_out(text: str) -> bool:
    for mark in _MAY_REACH_OUT:  # `any` would take three times as long, for each text of a report
        if mark in text:
            return True
    return _MAY_UNDERLINE.search(text) is not None


def _escape_line(
    line: str, before: str, markup: re.Pattern[str], heading: Callable[[str], str] | None, *, defines: bool
) -> str:
    if before.strip(" \t") and heading is not None:  # else it is a line across the page
        line = _UNDERLINE.sub(r"\1\\\2", line)
    if any(each in line for each in _MARKS):
        line = markup.sub(_escape, line)
    if heading is not None:
        line = heading(line)
    return line.replace("]:", "]\\:") if defines else line


def _embolden_heading(line: str) -> str:
    """Return a heading as a line in bold, as far as its title allows that; any other line as it is."""
    found = _TITLE.match(line if "`" in line else _BOLD.sub(r"\1", line)) if "#" in line else None
    if found is None or not _pairs_its_backticks(found[2]):
        return _escape_heading(line)
    title = found[2].rstrip()
    inner = title.rstrip("#")  # marks at the end belong to the title unless a blank sets them off
    return f"{found[1]}**{inner.rstrip() if inner[-1:].isspace() else title}**"


def _escape_heading(line: str) -> str:
    return _HEADING.sub(r"\1\\\2", line)


def _escape(found: re.Match[str]) -> str:
    if found.groupdict().get("code"):
        return found[0]
    return f"{found[0][:-1]}\\{found[0][-1]}"


def _in_fences(lines: Sequence[str]) -> Iterator[bool]:
    """Yield of each line whether it belongs to a fence."""
    fence = ""
    for line in lines:
        if fence:
            yield True
            ends = line.rstrip(" \t")
            if ends.startswith(fence) and not ends.strip(fence[0]):
                fence = ""
        else:
            begun = _FENCE.match(line)
            fence = (begun[1] or begun[2]) if begun else ""
            yield bool(begun)


def _pairs_its_backticks(line: str) -> bool:
    if "`" not in line:
        return True
    few = line.count("`") <= _MAX_BACKTICKS
    return few and not _PAIRED_OTHERWISE.intersection(line) and "`" not in _CODE_SPAN.sub("", line)
