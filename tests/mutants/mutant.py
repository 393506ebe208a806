"""What a mutant is, and all of a file."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from tests.mutants.operators import NAMES, operator

_UNMUTATED_ARGUMENTS = {"exc_info", "frozen", "kw_only", "repr", "slots", "strict"}
_STATEMENTS = {"simple_stmt", "if_stmt", "for_stmt", "while_stmt", "with_stmt", "try_stmt", "async_stmt"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: The file, from the project's folder.
        name: Of the operator.
        occurrence: Which of the places that the operator finds in the file, from 0.
        place: Line, from 1, and column of the change.
        lines: What runs if the changed code runs: one line of these at least. Empty for code that is run by an import.
    """

    path: Path
    name: str
    occurrence: int
    place: tuple[int, int]
    lines: range

    def code(self, source: str) -> str:
        """Return the file with the change.

        Raises:
            LookupError: The file has no such place.
        """
        changed: str | None = mutate_code(source, operator(self.name), self.occurrence)
        if changed is None:
            raise LookupError(f"{self.path} has no place {self.occurrence} for {self.name}")
        return changed

    def diff(self, source: str) -> list[str]:
        """Return the lines that the change takes out and puts in, with `-` or `+` before each."""
        lines = difflib.unified_diff(source.splitlines(), self.code(source).splitlines(), n=0, lineterm="")
        return [line for line in lines if line[0] in "-+" and not line.startswith(("---", "+++"))]


def mutants_of(path: Path, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a file; annotations, decorators and arguments that change no behaviour are left alone."""
    nodes = list(ast_nodes(get_ast(source)))
    for name in NAMES:
        places = ((node, place) for node in nodes for place in operator(name).mutation_positions(node))
        for occurrence, (node, (start, _)) in enumerate(places):
            if not _idle(node):
                yield Mutant(path, name, occurrence, start, _lines(node))


def _idle(node: Any) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.type in {"annassign", "decorator", "tfpdef"}:
            return parent.type != "annassign" or "=" not in _list_before(parent, node)
        if parent.type == "funcdef" and node.type in {"operator", "expr"}:
            return True  # what it returns
        if parent.type == "parameters" and node.type == "operator":
            return True  # the `*` between them
        if parent.type == "argument" and parent.children[0].get_code().strip() in _UNMUTATED_ARGUMENTS:
            return True
        node, parent = parent, parent.parent
    return False


def _list_before(parent: Any, node: Any) -> set[str]:
    return {child.get_code().strip() for child in parent.children if child.start_pos < node.start_pos}


def _lines(node: Any) -> range:
    line = node.start_pos[0]
    first, inner = None, node
    while inner is not None and inner.type != "funcdef":
        if first is None and inner.type in _STATEMENTS:
            first = inner.start_pos[0] if inner.type == "simple_stmt" else line
        if inner.type in {"classdef", "parameters"}:
            return range(0)
        inner = inner.parent
    return range(0) if inner is None or first is None else range(first, line + 1)
