"""Statements in SMT-LIB as a solver is to read them: what is claimed is negated, and no command reaches a file. Pure functions."""

import re
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(r'"(?:[^"]|"")*"|\|[^|]*\||;[^\n]*|[()]|[^\s()";|]+')
_HEAD: Final = re.compile(r"\(\s*([^\s()]+)")
_STATES: Final = frozenset(
    {
        "declare-const",
        "declare-datatype",
        "declare-datatypes",
        "declare-fun",
        "declare-sort",
        "define-const",
        "define-fun",
        "define-fun-rec",
        "define-funs-rec",
        "define-sort",
        "set-logic",
    }
)
_ASKS: Final = frozenset({"get-model", "get-value", "set-info", "exit"})
_CHECK: Final = "check-sat"


class SmtLibError(ValueError):
    """The text is no statement in SMT-LIB that is checked here; the message says why, in a line."""


def negate_claim(text: str) -> tuple[str, str]:
    """Return what holds for no values if a statement is valid, and its assumptions alone.

    Of a script that asks `(check-sat)` itself, it is all that it asserts: whoever writes one has negated the claim. Of any other,
    the last assertion is the claim, and those before it are its assumptions.

    Raises:
        SmtLibError: it asserts nothing, its parentheses do not match, or it has a command that is not allowed.
    """
    commands = [(_head_of(each), each) for each in _split_commands(text)]
    known = _STATES | _ASKS | {"assert", _CHECK}
    for head, _ in commands:
        if head not in known:
            raise SmtLibError(f"it has the command {head[:40]!r}, which is not allowed here")
    stated = [each for head, each in commands if head in _STATES]
    asserted = [each for head, each in commands if head == "assert"]
    if not asserted:
        raise SmtLibError("it asserts nothing")
    if any(head == _CHECK for head, _ in commands):
        return "\n".join(stated + asserted), ""
    claim = asserted.pop()
    inner = claim[claim.index("assert") + len("assert") : -1]
    before = "\n".join(stated + asserted)
    return f"{before}\n(assert (not {inner}))", before if asserted else ""


def _split_commands(text: str) -> Iterator[str]:
    """Yield the commands of a script without comments."""
    depth, tokens = 0, []
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token.startswith(";"):
            continue
        if not depth and token != "(":  # noqa: S105 - a parenthesis
            raise SmtLibError(f"{token[:40]!r} stands where a command begins")
        depth += {"(": 1, ")": -1}.get(token, 0)
        tokens.append(token)
        if not depth:
            yield " ".join(tokens)
            tokens = []
    if depth:
        raise SmtLibError("a parenthesis is not closed")


def _head_of(command: str) -> str:
    found = _HEAD.match(command)
    return found[1] if found else command
