"""How code is changed: what cosmic-ray offers, the sharpest change of each kind, and two changes of our own.

Its operators have no types: a node is one of parso's.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Protocol

from cosmic_ray.plugins import get_operator
from parso.python.tree import Name, Number

Place = tuple[tuple[int, int], tuple[int, int]]


class Operator(Protocol):
    """Finds places in a tree and changes one of them: an operator of cosmic-ray's, or like one."""

    def mutation_positions(self, node: Any) -> Iterator[Place]:
        """Yield start and end of each change that can be made to a node itself."""
        ...

    def mutate(self, node: Any, index: int) -> Any:
        """Return what stands there instead."""
        ...


class LeaveOut:
    """Leaves out a call whose result nobody takes, and an `if` without an `else`: its guard lets everything pass."""

    def mutation_positions(self, node: Any) -> Iterator[Place]:
        """Yield the statement itself."""
        call = node.type == "simple_stmt" and node.children[0].type in {"atom_expr", "power"}
        guard = node.type == "if_stmt" and not {"else", "elif"} & {
            child.value for child in node.children if child.type == "keyword"
        }
        if call or guard:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Return `pass`."""
        return Name("pass\n", node.start_pos, prefix=node.get_first_leaf().prefix)


class NearFraction:
    """Makes a fraction a third smaller or larger; cosmic-ray adds one to it, which anything notices."""

    def mutation_positions(self, node: Any) -> Iterator[Place]:
        """Yield a fraction twice."""
        if node.type == "number" and "." in node.value:
            yield node.start_pos, node.end_pos
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Return another fraction."""
        return Number(str(float(node.value) * (0.7, 1.3)[index]), node.start_pos, prefix=node.prefix)


_OURS: Final[dict[str, type[Operator]]] = {"LeaveOut": LeaveOut, "NearFraction": NearFraction}
_CORE: Final = (
    *(
        f"ReplaceBinaryOperator_{pair}"
        for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul")
    ),
    *(
        f"ReplaceBinaryOperator_{pair}"
        for pair in ("Mod_Mul", "BitOr_BitAnd", "BitAnd_BitOr", "LShift_RShift")
    ),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
    *(
        f"ReplaceComparisonOperator_{pair}"
        for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_Gt", "Gt_Lt")
    ),
    *(f"ReplaceUnaryOperator_{pair}" for pair in ("Delete_Not", "Delete_USub")),
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ZeroIterationForLoop",
)
NAMES: Final = (*_OURS, *_CORE)
"""Every kind of change that is made."""


@cache
def operator(name: str) -> Operator:
    """Return the operator of a name in `NAMES`."""
    made: Operator = (_OURS.get(name) or get_operator(f"core/{name}"))()
    return made
