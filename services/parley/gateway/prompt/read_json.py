"""Finding the JSON in what a model wrote: among words, in fences, and repaired if it is nearly JSON."""

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, Final

from parley.gateway.prompt.sanitizer import to_line
from parley.runtime.python_process import python_command, run_filter

_MAX_FENCES: Final = 4
"""Fences that are looked into, so that a text of nothing but fences is not read again and again."""
_MAX_FAILURES: Final = 8
"""Braces that begin no object, before only fences are looked into: each may have the whole text read."""
_MAX_OBJECTS: Final = 64
_MAX_AROUND: Final = 60
"""Characters of words around an object that introduce it, such as `Here is my answer:`, and say nothing themselves."""
_MEND_SECONDS: Final = 5.0
"""Of processor time; on a machine that is busy it may take `_WHEN_BUSY` times as long."""
_WHEN_BUSY: Final = 3
_EMPTY: Final = re.compile(r"""([\"'`])\s*\1|“\s*”""")
_FENCE: Final = re.compile(r"^[ \t]*```", re.MULTILINE)
_FENCE_LINE: Final = re.compile(r"^[ \t]*```.*$", re.MULTILINE)
_MEND: Final = """
import resource, runpy, sys
sys.path.append({library!r})
seconds = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
runpy.run_module("json_repair", run_name="__main__", alter_sys=True)
"""
"""Repairs in so many seconds of processor time: it ends itself even if its parent is gone."""


def _find_library() -> str:
    """Return the folder of the mender: an isolated Python does not look where PYTHONPATH or the user put it."""
    found = find_spec("json_repair")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parents[1])


_MENDER: Final = (*python_command("-I", "-X", "utf8", "-c"), _MEND.format(library=_find_library()))


class NotJson(ValueError):  # noqa: N818 (said of a text)
    """The text holds no JSON that can be read."""


def decode(text: str) -> Any:
    """Return the value of a JSON text. Raise NotJson."""
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise NotJson(to_line(str(error))) from None


def find_values(text: str) -> Iterator[tuple[Any, bool]]:
    """Yield the JSON values that the text holds, each with whether the text says next to nothing else. Raise NotJson if it holds none.

    The likeliest come first: the last one, which follows drafts, to the first, then all as one list.
    """
    try:
        yield decode(text), True
    except NotJson as error:
        problem = error
    else:
        return
    found = _find_objects(text)
    if not found:
        raise problem
    words = _count_words(text)
    for value, length in reversed(found):
        yield value, words - length <= _MAX_AROUND
    if len(found) > 1:
        joined = sum(length for _, length in found)
        yield [value for value, _ in found], words - joined <= _MAX_AROUND


def _find_objects(text: str) -> list[tuple[Any, int]]:
    """Return the objects of a text in order, each with its length. After some braces that begin none, only fences are looked into."""
    found: list[tuple[Any, int]] = []
    fences = [text.find("{", fence.end()) for fence in islice(_FENCE.finditer(text), _MAX_FENCES)]
    place, failures = text.find("{"), 0
    while place >= 0 and len(found) < _MAX_OBJECTS:
        try:
            value, end = _decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            failures += 1
            end = place + 1
        else:
            found.append((value, end - place))
        later = [each for each in fences if each >= end]
        place = text.find("{", end) if failures < _MAX_FAILURES else min(later, default=-1)
    return found


def _count_words(text: str) -> int:
    """Return the characters of a text without those of its fences."""
    return len(_FENCE_LINE.sub("", text).strip())


def is_alone(text: str) -> bool:
    """Return whether a text that is nearly JSON says next to nothing before its object."""
    return _count_words(text[: max(text.find("{"), 0)]) <= _MAX_AROUND


async def repair(text: str, seconds: float = _MEND_SECONDS) -> Any:
    """Return the value of a text that is nearly JSON, with its quotes, commas and brackets put right. Raise NotJson.

    The work is done in a process of its own, which is ended in time: some texts take minutes, and nothing else stops it.
    It gets nothing of this process's environment.
    """
    starts = _find_starts(text)
    if not starts:
        raise NotJson("it holds no object")
    first_fence = _FENCE.search(text)
    begins = next((each for each in starts if first_fence and each > first_fence.end()), starts[0])
    command = (*_MENDER, str(ceil(seconds)), "--ensure_ascii", "--indent", "0")
    try:
        output = await run_filter(command, text[begins:].encode("utf-8", "replace"), _WHEN_BUSY * seconds)
    except TimeoutError:
        raise NotJson("it takes too long to be mended") from None
    value = decode(output.decode())
    return value if _EMPTY.search(text) else _drop_empty_texts(value)


def _drop_empty_texts(value: Any) -> Any:
    """Leave out what the mender put in place of missing values: the model did not write it."""
    if isinstance(value, dict):
        return {key: _drop_empty_texts(each) for key, each in value.items() if each != ""}
    if isinstance(value, list):
        return [_drop_empty_texts(each) for each in value if each != ""]
    return value


def _find_starts(text: str) -> list[int]:
    """Return the places where an object may begin: at the first brace, and at the first one after each of the first fences."""
    fences = islice(_FENCE.finditer(text), _MAX_FENCES)
    found = {text.find("{"), *(text.find("{", fence.end()) for fence in fences)}
    return sorted(found - {-1})


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Not strict: a line end inside of a text should be escaped, but models forget it, and the sanitizer makes LF of U+2028.
_decoder: Final = json.JSONDecoder(parse_constant=_refuse_constant, strict=False)
