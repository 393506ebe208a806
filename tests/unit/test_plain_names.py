"""Async functions and methods are named by what they do: a verb in the imperative, and no participle.

`make check-python` runs this too.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import parley
from tests.support.parsed_modules import parse_module

ROOT = Path(parley.__file__).parent

ROOMS = (
    "cli",
    "client",
    "config",
    "convergence",
    "edge",
    "example",
    "gateway",
    "local.py",
    "local_services.py",
    "mcp",
    "memory",
    "moment_rules.py",
    "orchestrator",
    "ratings",
    "receipts",
    "role_file.py",
    "runtime",
    "storage",
)
"""Folders and modules of `services/parley`, without what is generated."""

IMPERATIVES = frozenset({"embed", "shed"})
"""Verbs in the imperative that end in -ed."""

EXCEPTIONS = {
    "parley.runtime.client_interceptors.StreamCall.cancelled": "the name is grpc.aio's",
    "parley.runtime.client_interceptors.StreamCall.done": "the name is grpc.aio's",
    "parley.runtime.client_interceptors.StreamCall.done_writing": "the name is grpc.aio's",
    "parley.runtime.direct.calls.DirectCall.cancelled": "the name is grpc.aio's",
    "parley.runtime.direct.calls.DirectCall.done": "the name is grpc.aio's",
    "parley.runtime.direct.calls.DirectCall.done_writing": "the name is grpc.aio's",
    "parley.runtime.direct.context.DirectContext.cancelled": "the name is grpc.aio's",
    "parley.runtime.direct.context.DirectContext.done": "the name is grpc.aio's",
}
"""Names that others chose, each with the reason why it stays."""

_IRREGULAR = """
begun bought brought built caught chosen done drawn driven fed found given gone grown heard held hung
kept known laid led left lent lost made meant met paid said seen sent shown sought spent spoken stood
taken taught thought thrown told torn understood won worn written
"""
IRREGULAR = frozenset(_IRREGULAR.split())
"""Participles that do not end in -ed and are no imperative at the same time, as `read`, `run`, `set` and `split` are."""


def is_participle(name: str) -> bool:
    """Return whether a function's name begins with a past participle."""
    first = name.strip("_").split("_")[0].lower()
    return first not in IMPERATIVES and (first in IRREGULAR or bool(re.search(r"(?<!e)ed$", first)))


def _functions(
    node: ast.AST, prefix: str, *, in_class: bool
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"{prefix}.{child.name}", child, in_class
                yield from _functions(child, f"{prefix}.{child.name}", in_class=False)
            case ast.ClassDef():
                yield from _functions(child, f"{prefix}.{child.name}", in_class=True)
            case _:
                yield from _functions(child, prefix, in_class=in_class)


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(each) for each in function.decorator_list)


def participles(file: Path, source: str | None = None) -> list[str]:
    """Return the async functions and the methods of a module that are named by a participle."""
    tree = parse_module(file) if source is None else ast.parse(source)
    return [
        name
        for name, function, in_class in _functions(tree, _name_module(file), in_class=False)
        if (in_class or isinstance(function, ast.AsyncFunctionDef))
        and not _is_property(function)
        and is_participle(function.name)
        and name not in EXCEPTIONS
    ]


def _name_module(file: Path) -> str:
    return ".".join(("parley", *file.relative_to(ROOT).with_suffix("").parts))


def _modules(room: str) -> list[Path]:
    path = ROOT / room
    found = [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))
    return [each for each in found if not each.name.endswith(("_pb2.py", "_pb2_grpc.py"))]


@pytest.mark.parametrize("room", ROOMS)
def test_no_async_function_and_no_method_is_named_by_a_participle(room: str) -> None:
    modules = _modules(room)
    assert modules, f"{room} is no room of services/parley"
    found = [name for module in modules for name in participles(module)]
    assert not found, f"name these by a verb in the imperative: {', '.join(found)}"


def test_every_room_is_checked() -> None:
    rooms = {each.name for each in ROOT.iterdir() if each.suffix == ".py" or (each / "__init__.py").exists()}
    assert rooms - {"__init__.py", "v1"} == {*ROOMS}


def test_every_exception_is_a_function_that_is_there() -> None:
    names = {
        name
        for file in ROOT.rglob("*.py")
        if not file.name.endswith(("_pb2.py", "_pb2_grpc.py"))
        for name, _, _ in _functions(parse_module(file), _name_module(file), in_class=False)
    }
    assert not set(EXCEPTIONS) - names


def test_a_participle_is_found_in_functions_methods_and_what_stands_in_them() -> None:
    source = (
        "async def _held(): ...\n"
        "def kept(): ...\n"
        "class Store:\n"
        "    def written(self):\n"
        "        async def _started(): ...\n"
        "    @property\n"
        "    def closed(self): ...\n"
        "    def read(self): ...\n"
        "    async def embed(self): ...\n"
    )
    found = participles(ROOT / "example.py", source)
    assert [each.removeprefix("parley.example.") for each in found] == [
        "_held",
        "Store.written",
        "Store.written._started",
    ]
