"""From positioned values to checked entries, with errors that name file, line and key."""

import dataclasses
import difflib
import functools
import json
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import ErrorDetails

from parley.config.entries import BY_WORD, ID_PATTERN, PASSED_OVER, RENAMED, FileEntry, ProviderEntry
from parley.config.errors import ConfigError
from parley.config.places import Places
from parley.config.tree import Branch, Items, Leaf, Tree

_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "dataclass_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "tuple_type": "must be a list",
    "string_type": "must be text (in quotes, if it looks like a number or a yes)",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
}
_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than_equal": ("least", "ge"),
    "less_than_equal": ("most", "le"),
}
_SHAPES: Final[Mapping[str, str]] = {
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "string_type": "text",
}
_SHAPE_OF: Final[Mapping[type, str]] = {dict: "a mapping", list: "a list", str: "text"}
_PATTERNS: Final[Mapping[str, str]] = {
    ID_PATTERN: "must be up to 32 of a-z, 0-9 and `-`, and not begin with `-`",
    r"^[^\x00-\x1f\x7f]+$": "must be one line of text",
    r"^[\x20-\x7e]*$": "must be one line of ASCII text",
    r"^https?://[^\s@]+$": "must begin with http:// or https:// and hold no space and no @",
    r"^[A-Za-z_][A-Za-z0-9_]{0,127}$": "must be the name of a variable",
}
_NEAR: Final = 0.7
"""How like two words are, 0 to 1, if one may be meant by the other."""
_AGENTS: Final = "agents"
_EVALUATORS: Final = "evaluators"
_SECRETS: Final = frozenset({"api_key", "key", "token", "secret", "password"})


def join_path(path: Sequence[str | int]) -> str:
    """Return `agents[1].role` of its parts, in one line whatever the keys are."""
    text = ""
    for part in path:
        shown = part if isinstance(part, int) or part.isprintable() else ascii(part)
        text += f"[{shown}]" if isinstance(part, int) else f".{shown}" if text else str(shown)
    return text


def is_evaluators_file(tree: Tree) -> bool:
    """Return whether a file is one of evaluators alone: its agents have no role, and it says nothing of debates."""
    agents = tree.entries.get(_AGENTS) if isinstance(tree, Branch) else None
    if not isinstance(tree, Branch) or not isinstance(agents, Items) or not agents.items:
        return False
    if tree.entries.keys() & {"judge", "debate", _EVALUATORS}:
        return False
    return all(isinstance(each, Branch) and "role" not in each.entries for each in agents.items)


def check_tree(tree: Tree, name: str, *, of_evaluators: bool) -> tuple[FileEntry, Places, tuple[str, ...]]:
    """Return the entries of a file, where they stand, and notices about keys that were passed over.

    `of_evaluators`: what it calls agents are evaluators.
    """
    walk = _Walk(name, {FileEntry: {_AGENTS: _EVALUATORS}} if of_evaluators else {})
    if not isinstance(tree, Branch) and getattr(tree, "value", tree) is not None:
        raise ConfigError(
            f"{name}:{tree.line}: must be a mapping of agents, judge, debate, providers, routes and roles"
        )
    plain = walk.convert(tree, FileEntry, ()) if isinstance(tree, Branch) else {}
    places = Places(name, walk.lines, walk.spelled)
    problems = list(walk.problems)
    entry = None
    try:
        entry = _adapter().validate_json(json.dumps(plain), strict=True)
    except ValidationError as error:
        problems += [_describe_problem(each, walk) for each in error.errors(include_url=False)]
    if problems or entry is None:
        raise ConfigError(*(f"{name}:{line}: {text}" for line, text in sorted(set(problems))))
    return entry, places, tuple(walk.notices)


@functools.cache
def _adapter() -> TypeAdapter[FileEntry]:
    return TypeAdapter(FileEntry)


def _describe_problem(error: ErrorDetails, walk: "_Walk") -> tuple[int, str]:
    text = _MESSAGES.get(error["type"]) or error["msg"]
    if error["type"] in _BOUNDS:
        word, bound = _BOUNDS[error["type"]]
        text = f"must be at {word} {error['ctx'][bound]:.15g}"
    if error["type"] == "string_pattern_mismatch":
        text = _PATTERNS.get(error["ctx"]["pattern"], text) if error["input"] else "must not be empty"
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        near = find_nearest(error["input"], re.findall("'([^']+)'", error["ctx"]["expected"]))
        text += f"; did you mean '{near}'?" if near else ""
    if error["type"] in _SHAPES and isinstance(error["input"], dict | list | str):
        example = ", such as `role: architect`" if _is_name_of_agent(error) else ""
        text = f"must be {_SHAPES[error['type']]}{example}, not {_SHAPE_OF[type(error['input'])]}"
    for theirs, ours in (
        ("Input should ", "must "),
        ("String should ", "must "),
        ("Tuple should ", "must "),
        (" after validation", ""),
    ):
        text = text.replace(theirs, ours)
    return walk.line(error["loc"]), f"{walk.spell_path(error['loc'])}: {text}"


def _is_name_of_agent(error: ErrorDetails) -> bool:
    """Return whether a name stands where an agent is described."""
    return len(error["loc"]) == 2 and error["loc"][0] == _AGENTS and isinstance(error["input"], str)


class _Walk:
    """Goes through values and declarations together: names become snake_case, unknown keys are collected."""

    def __init__(self, name: str, renamed: Mapping[type, Mapping[str, str]]) -> None:
        self.lines: dict[str, int] = {}
        self.spelled: dict[str, str] = {}
        self.problems: list[tuple[int, str]] = []
        self.notices: list[str] = []
        self._name = name
        self._renamed = {**RENAMED, **renamed}
        self._spelling: dict[str, str] = {}

    def convert(self, tree: Tree, kind: Any, path: tuple[str | int, ...]) -> Any:
        kind = _unwrap_type(kind)
        tree = _wrap_word(tree, kind)
        self.lines.setdefault(join_path(path), tree.line)
        if isinstance(tree, Items):
            inner = get_args(kind)[0] if get_origin(kind) is tuple else None
            items = [_unwrap_name(each) if _is_choice(inner) else each for each in tree.items]
            return [self.convert(each, inner, (*path, number)) for number, each in enumerate(items)]
        if not isinstance(tree, Branch):
            return tree.value
        if dataclasses.is_dataclass(kind):
            return self._convert_entry(tree, kind, path)
        return {key: self._convert_value(tree, key, None, (*path, key)) for key in tree.entries}

    def _convert_entry(self, tree: Branch, kind: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
        hints = get_type_hints(kind, include_extras=True)
        found: dict[str, Any] = {}
        for written, line in tree.lines.items():
            spelled = to_snake(written) if written.isidentifier() else written
            key = self._renamed.get(kind, {}).get(spelled, spelled)
            here = join_path((*self._as_written(path), written))
            if key in found:
                self.problems.append(
                    (line, f"{here}: is here twice, once as {self._spelling[join_path((*path, key))]}")
                )
            elif key in hints and written in {spelled, to_camel(spelled)}:
                self._spelling[join_path((*path, key))] = written
                if self.spell_path((*path, key)) != join_path((*path, key)):
                    self.spelled[join_path((*path, key))] = self.spell_path((*path, key))
                found[key] = self._convert_value(tree, written, hints[key], (*path, key))
            elif key in PASSED_OVER.get(kind, ()):
                self.notices.append(f"{self._name}:{line}: {here}: has no effect here and is passed over")
            elif not (written == "$schema" and kind is FileEntry):
                self.problems.append((line, f"{here}: {_describe_unknown(key, written, kind, hints)}"))
        return {key: value for key, value in found.items() if value is not None}

    def _convert_value(self, tree: Branch, written: str, kind: Any, path: tuple[str | int, ...]) -> Any:
        self.lines[join_path(path)] = tree.lines[written]
        return self.convert(tree.entries[written], kind, path)

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of the value at `path`, or of the find_nearest one around it."""
        for end in range(len(path), -1, -1):
            line = self.lines.get(join_path(path[:end]))
            if line is not None:
                return line
        return 1

    def spell_path(self, path: Sequence[str | int]) -> str:
        """Return the path as its keys are spelled in the file."""
        return join_path(self._as_written(path))

    def _as_written(self, path: Sequence[str | int]) -> list[str | int]:
        return [
            part if isinstance(part, int) else self._spelling.get(join_path(path[: number + 1]), part)
            for number, part in enumerate(path)
        ]


def _wrap_word(tree: Tree, kind: Any) -> Tree:
    """Return a word that stands for an entry as that entry; anything else as it is."""
    if kind not in BY_WORD or not isinstance(tree, Leaf) or not isinstance(tree.value, str):
        return tree
    key = BY_WORD[kind]
    return Branch({key: tree}, {key: tree.line}, tree.line)


def _unwrap_name(tree: Tree) -> Tree:
    """Return what `{name: file_read}` names; anything else as it is. Other tools write lists of names so."""
    if isinstance(tree, Branch) and tree.entries.keys() == {"name"}:
        return tree.entries["name"]
    return tree


def _is_choice(kind: Any) -> bool:
    return get_origin(_unwrap_type(kind)) is Literal


def _describe_unknown(key: str, written: str, kind: Any, hints: Mapping[str, Any]) -> str:
    if kind is ProviderEntry and key in _SECRETS:
        return "a key does not belong in a file; put it into a variable and name that with api_key_env"
    near = find_nearest(key, hints)
    near = to_camel(near) if near and written != key else near
    if near:
        return f"unknown key; did you mean {near}?"
    return f"unknown key; known keys: {', '.join(sorted(hints))}"


def _unwrap_type(kind: Any) -> Any:
    """Return the type inside Annotated[…] and `… | None`."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif get_origin(kind) in {Union, types.UnionType}:
            kind = next(each for each in get_args(kind) if each is not type(None))
        else:
            return kind


def find_nearest(written: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like the one written; None if none is like it."""
    return next(iter(difflib.get_close_matches(written.lower(), known, 1, _NEAR)), None)
