"""Text of a configuration file to plain values that remember their lines."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from parley.config.errors import ConfigError
from parley.config.tree import Branch, Items, Leaf, Tree
from parley.runtime.regular_files import read_start

MAX_BYTES: Final = 1024 * 1024
MAX_VALUES: Final = 20_000
"""Values in one file, those behind aliases counted every time: a few nested aliases can stand for billions."""

_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TAG: Final = "tag:yaml.org,2002:"

_EXPECTED: Final[Mapping[str, str]] = {
    "Expecting value": "a value must stand here",
    "Expecting property name enclosed in double quotes": "a key in double quotes must stand here",
    "Expecting ',' delimiter": "a comma must stand before this, or a bracket is not closed",
    "Expecting ':' delimiter": "a colon must stand between key and value",
    "Extra data": "something follows the end; remove it",
    "Unterminated string starting at": "the text that begins here has no closing quote",
    "Invalid control character at": "the text goes beyond its line; close it, or write \\n",
}
"""What Python's reader of JSON says, in words for a person."""


def read(path: Path) -> str:
    """Return the text of the file. Raise ConfigError if it cannot be read."""
    try:
        data = read_start(path, MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {_describe_error(error)}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8; save it as UTF-8") from None


def _describe_error(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file"
        case IsADirectoryError():
            return "is a folder; name a file in it"
        case _:
            return f"cannot be read: {error.strerror or error}"


def parse(text: str, name: str) -> Tree:
    """Return the values of YAML text, or of JSON if `name` ends in `.json`."""
    try:
        if name.lower().endswith(".json"):
            json.loads(text)
            text = text.replace("\t", " ")  # JSON may be indented with tabs, YAML not; strings hold none
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return Leaf(None, 1) if node is None else _Reader(name).read(node)
    except json.JSONDecodeError as error:
        what = _json_mistake(error) if text.strip() else "the file is empty; {} would do"
        raise ConfigError(f"{name}:{error.lineno}: is not JSON: {what}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{name}:{line}: holds a character that is not allowed") from None
    except yaml.MarkedYAMLError as error:
        what, mark = _yaml_mistake(error)
        place = name if mark is None else f"{name}:{mark.line + 1}"
        raise ConfigError(f"{place}: is not YAML: {what}") from None
    except yaml.YAMLError:
        raise ConfigError(f"{name}: is not YAML") from None
    except RecursionError:
        raise ConfigError(f"{name}: is nested too deeply") from None


def _json_mistake(error: json.JSONDecodeError) -> str:
    """Return what is wrong at a place in JSON, and what to do."""
    place = f"column {error.colno}"
    before, after = error.doc[: error.pos].rstrip(), error.doc[error.pos :]
    if before.endswith(",") and after.startswith(("]", "}")):
        return f"{place}: nothing follows the last comma; remove the comma"
    return f"{place}: {_EXPECTED.get(error.msg, error.msg)}"


_YAML_MISTAKES: Final = (
    ("'\\t'", "a tab stands here; indent with spaces"),
    ("found '<scalar>'", "text stands behind a closing quote or bracket"),
    ("<block end>, but found ','", "a comma stands behind a closing quote or bracket"),
    ("found ']'", "a bracket closes nothing"),
    ("found '}'", "a bracket closes nothing"),
    ("expected <block end>", "this line does not fit those before it; check how far each is indented"),
    (
        "mapping values are not allowed here",
        "a second `:` stands in this line, or it is indented too far; text with `: ` needs quotes",
    ),
    ("cannot start any token", "text that begins with such a character needs quotes"),
)
"""What the parser says, and what it means to people."""


def _yaml_mistake(error: yaml.MarkedYAMLError) -> tuple[str, yaml.Mark | None]:
    """Return what is wrong in YAML, and where."""
    mark = error.problem_mark or error.context_mark
    if error.context == "while scanning a quoted scalar" and error.context_mark is not None:
        return "the text that begins here has no closing quote", error.context_mark
    if error.context == "while scanning a simple key" and error.context_mark is not None:
        return "a key without `:` stands here", error.context_mark
    for said, what in _YAML_MISTAKES:
        if said in (error.problem or ""):
            return what, mark
    return " ".join((error.problem or error.context or "cannot be parsed").split()), mark


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def read(self, node: yaml.Node) -> Tree:
        self._count += 1
        line = node.start_mark.line + 1
        if self._count > MAX_VALUES:
            raise ConfigError(f"{self._name}:{line}: holds more than {MAX_VALUES} values, aliases included")
        if isinstance(node, yaml.MappingNode):
            return self._read_mapping(node, line)
        if isinstance(node, yaml.SequenceNode):
            return Items(tuple(self.read(each) for each in node.value), line)
        return Leaf(self._read_scalar(node, line), line)

    def _read_mapping(self, node: yaml.MappingNode, line: int) -> Branch:
        entries: dict[str, Tree] = {}
        lines: dict[str, int] = {}
        merged: list[Tree] = []
        for key_node, value_node in node.value:
            key_line = key_node.start_mark.line + 1
            if key_node.tag == f"{_TAG}merge":
                merged.append(self.read(value_node))
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(f"{self._name}:{key_line}: a key must be text")
            key = _join_surrogates(key_node.value)
            if key is None:
                raise ConfigError(f"{self._name}:{key_line}: holds a broken character")
            if key in entries:
                raise ConfigError(
                    f"{self._name}:{key_line}: {key}: is here twice, first on line {lines[key]}"
                )
            entries[key], lines[key] = self.read(value_node), key_line
        for each in merged:
            self._merge(each, entries, lines)
        return Branch(entries, lines, line)

    def _merge(self, merged: Tree, entries: dict[str, Tree], lines: dict[str, int]) -> None:
        for branch in merged.items if isinstance(merged, Items) else (merged,):
            if not isinstance(branch, Branch):
                raise ConfigError(f"{self._name}:{branch.line}: <<: only mappings can be merged")
            for key, value in branch.entries.items():
                if key not in entries:
                    entries[key], lines[key] = value, branch.lines[key]

    def _read_scalar(self, node: yaml.Node, line: int) -> str | int | float | bool | None:
        text = _join_surrogates(str(node.value))
        if text is None:
            raise ConfigError(f"{self._name}:{line}: holds a broken character")
        kind = node.tag.removeprefix(_TAG)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in {"yes", "true", "on"}
        # YAML 1.1 has numbers that no author means (1:30, 0o17, 1_000): only those that JSON knows count as such.
        if getattr(node, "style", None) is None and _NUMBER.fullmatch(text):
            return float(text) if any(mark in text for mark in ".eE") else _parse_whole(text)
        if node.tag.startswith("!"):
            raise ConfigError(f"{self._name}:{line}: tags such as {node.tag} have no meaning here")
        return text


def _parse_whole(text: str) -> int | float:
    return int(text) if len(text) <= 18 else float(text)


def _join_surrogates(text: str) -> str | None:
    """Return the text with surrogate pairs of JSON escapes joined; None if it has half of a pair or a NUL."""
    if "\0" in text:
        return None
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None
