"""Formal statements: what holds, what does not and for which values, and nothing that takes for ever or all memory."""

from importlib.metadata import files
from pathlib import Path

import pytest
from google._upb import _message

from parley.orchestrator.model.smt_lib import SmtLibError, negate_claim
from parley.orchestrator.peers import solver
from parley.orchestrator.peers.solver import check_statement
from parley.v1.analysis_pb2 import (
    FORMAL_RESULT_REFUTED,
    FORMAL_RESULT_UNCHECKED,
    FORMAL_RESULT_UNKNOWN,
    FORMAL_RESULT_VALID,
    FormalCheck,
    FormalStatement,
)

BUDGET = "(declare-const nodes Int)(declare-const cost Int)(assert (= cost (* 3 nodes)))(assert (<= nodes 4))"
ENDLESS = (
    "(declare-const x Int)(declare-const y Int)(declare-const z Int)"
    "(assert (not (= (+ (* x x x) (* y y y) (* z z z)) 114)))"
)
HUNGRY = "(declare-const x (_ BitVec 30000))(declare-const y (_ BitVec 30000))(assert (= (bvurem (bvmul x y) #b{}) (bvmul y y)))"


async def check_text(text: str, language: str = "smt2") -> FormalCheck:
    return await check_statement(FormalStatement(language=language, text=text))


@pytest.mark.parametrize(
    ("text", "result", "detail"),
    [
        (f"{BUDGET}(assert (<= cost 12)) ; the claim", FORMAL_RESULT_VALID, ""),
        (f"{BUDGET}(assert (< cost 12))", FORMAL_RESULT_REFUTED, "(define-fun nodes () Int 4)"),
        (f"{BUDGET}(assert (not (<= cost 12)))(check-sat)(get-model)", FORMAL_RESULT_VALID, ""),
        (f"{BUDGET}(assert (not (< cost 12)))(check-sat)", FORMAL_RESULT_REFUTED, "nodes () Int 4"),
        (
            "(declare-const x Int)(assert (> x 1))(assert (< x 1))(assert (= x 7))",
            FORMAL_RESULT_UNKNOWN,
            "its assumptions contradict each other",
        ),
        ("(assert (> y 2))", FORMAL_RESULT_UNKNOWN, "unknown constant y"),
        ("water is wet", FORMAL_RESULT_UNKNOWN, "'water' stands where a command begins"),
        ('(include "/etc/passwd")', FORMAL_RESULT_UNKNOWN, "the command 'include', which is not allowed"),
        ('(set-option :regular-output-channel "x")(assert true)', FORMAL_RESULT_UNKNOWN, "'set-option'"),
        ("(declare-const x Int)", FORMAL_RESULT_UNKNOWN, "it asserts nothing"),
        ("(assert (= 1 1)", FORMAL_RESULT_UNKNOWN, "a parenthesis is not closed"),
    ],
)
async def test_a_statement_in_smt_lib_is_checked_whatever_lies_in_the_folder(
    text: str, result: int, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in (each for each in files("z3-solver") or () if each.match("z3/lib/libz3*")):
        tmp_path.joinpath(library.name).symlink_to(_message.__file__)  # it can be loaded, and is no solver
    monkeypatch.chdir(tmp_path)
    found = await check_text(text)
    assert (found.result, detail in found.detail) == (result, True), found.detail


async def test_one_that_takes_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "_SECONDS", 1)
    monkeypatch.setattr(solver, "_WHEN_BUSY", 300)  # however busy the machine is
    found = await check_text(ENDLESS)
    assert found.result == FORMAL_RESULT_UNKNOWN
    assert "within 1 s of processor time" in found.detail


async def test_one_that_takes_all_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "_MEMORY_BYTES", 256 << 20)
    found = await check_text(HUNGRY.format("1" * 30_000))
    assert (found.result, found.detail) == (FORMAL_RESULT_UNKNOWN, "out of memory")


async def test_without_the_solver_it_says_that_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "find_spec", lambda _name: None)
    found = await check_text("(assert true)")
    assert (found.result, "z3-solver is not installed" in found.detail) == (FORMAL_RESULT_UNCHECKED, True)


async def test_lean_is_not_checked() -> None:
    assert (await check_text("theorem t : 1 = 1 := rfl", "lean")).result == FORMAL_RESULT_UNCHECKED


def test_what_looks_like_a_command_in_a_text_or_a_comment_is_none() -> None:
    text = '; (exit\n(declare-const |a (b| String)(assert (= |a (b| "say ""(x"""))'
    claim, assumptions = negate_claim(text)
    assert claim.endswith('(assert (not  ( = |a (b| "say ""(x""" ) ))')
    assert not assumptions
    with pytest.raises(SmtLibError, match="not closed"):
        negate_claim("(assert true)(")
