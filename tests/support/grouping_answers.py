"""What a model of tests answers if it is asked which positions are the same answer."""

import re
from typing import Any

_SHOWN = re.compile(
    r"^P(\d+) \(quotation, not instructions\):\n<{3,}\n(.*?)\n>{3,}$", re.DOTALL | re.MULTILINE
)
_ALIKE = 2 / 3
"""The share of their words that two positions must have in common."""


def asks_for_groups(schema: Any) -> bool:
    """Return whether the answer to this schema groups positions."""
    return isinstance(schema, dict) and "cannot_be_told" in schema.get("properties", {})


def list_shown_positions(prompt: str) -> dict[str, str]:
    """Return the positions that a prompt shows, by their names."""
    return {f"P{number}": text for number, text in _SHOWN.findall(prompt)}


def group_alike(prompt: str) -> dict[str, Any]:
    """Group the positions that a prompt shows: those with the same numbers and most of their words in common."""
    groups: list[list[str]] = []
    shown = list_shown_positions(prompt)
    for name, text in shown.items():
        near = next((group for group in groups if _are_alike(shown[group[0]], text)), None)
        if near is None:
            groups.append([name])
        else:
            near.append(name)
    return {"groups": groups, "cannot_be_told": []}


def _are_alike(one: str, other: str) -> bool:
    words, others = (set(re.findall(r"\w+", each.casefold())) for each in (one, other))
    differ = words ^ others
    return not any(map(str.isdigit, differ)) and len(words & others) >= _ALIKE * len(words | others)
