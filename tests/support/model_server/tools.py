"""Tools in a request, the same for both APIs: which are offered, and what those called so far have answered."""

from collections.abc import Iterator, Mapping
from typing import Any


def tools_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the tools that a request describes; Chat has each in a `function` of its own."""
    given = body.get("tools")
    described = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    return tuple(str(each.get("function", each).get("name", "")) for each in described)


def tool_results_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of `function_call_output` items and of messages of the role `tool`, in order."""
    return tuple(_results(body))


def has_reasoning(body: Mapping[str, Any]) -> bool:
    """Return whether reasoning is sent back: as an item of its own, or in a message."""
    given = [*_mappings(body.get("input")), *_mappings(body.get("messages"))]
    return any(each.get("type") == "reasoning" or "reasoning_content" in each for each in given)


def _mappings(given: Any) -> list[Mapping[str, Any]]:
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []


def _results(body: Mapping[str, Any]) -> Iterator[str]:
    for given in (body.get("messages"), body.get("input")):
        for item in given if isinstance(given, list) else ():
            if isinstance(item, Mapping) and item.get("type") == "function_call_output":
                yield str(item.get("output"))
            elif isinstance(item, Mapping) and item.get("role") == "tool":
                yield str(item.get("content"))
