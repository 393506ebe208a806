"""Modules of ours as trees: each is parsed once in a process of tests, however many rules are about it."""

import ast
from functools import cache
from pathlib import Path


@cache
def parse_module(file: Path) -> ast.Module:
    """Return the tree of a module."""
    return ast.parse(file.read_text("utf-8"))


def parse_folder(folder: Path) -> list[ast.Module]:
    """Return the trees of the modules in a folder and below it."""
    return [parse_module(each) for each in sorted(folder.rglob("*.py"))]
