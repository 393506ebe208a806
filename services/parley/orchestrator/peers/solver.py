"""Z3, in a process of its own with limits of time and memory: some statements take for ever, or all memory."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from parley.orchestrator.model.smt_lib import SmtLibError, negate_claim
from parley.runtime.python_process import python_command, run_filter
from parley.v1.analysis_pb2 import (
    FORMAL_RESULT_REFUTED,
    FORMAL_RESULT_UNCHECKED,
    FORMAL_RESULT_UNKNOWN,
    FORMAL_RESULT_VALID,
    FormalCheck,
    FormalResult,
    FormalStatement,
)

_SECONDS: Final = 5
"""Of processor time; on a machine that is busy it may take `_WHEN_BUSY` times as long."""
_WHEN_BUSY: Final = 4
_MEMORY_BYTES: Final = 1 << 30
_MAX_DETAIL: Final = 2000
_SOLVE: Final = """
import json, resource, sys
sys.path.append({library!r})
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import z3
def solve(script):
    solver = z3.Solver()
    solver.from_string(script)
    found = solver.check()
    detail = solver.model().sexpr() if found == z3.sat else solver.reason_unknown() if found == z3.unknown else ""
    return str(found), detail
claim, assumptions = json.load(sys.stdin)
try:
    if assumptions and solve(assumptions)[0] == "unsat":
        print(json.dumps(["unknown", "its assumptions contradict each other"]))
    else:
        print(json.dumps(solve(claim)))
except z3.Z3Exception as error:
    said = error.value.decode("utf-8", "replace") if isinstance(error.value, bytes) else str(error.value)
    print(json.dumps(["unknown", "it cannot be read: " + said if "error" in said else said]))
except MemoryError:
    print(json.dumps(["unknown", "out of memory"]))
"""
_RESULTS: Final[dict[str, FormalResult.ValueType]] = {
    "unsat": FORMAL_RESULT_VALID,
    "sat": FORMAL_RESULT_REFUTED,
}


async def check_statement(statement: FormalStatement) -> FormalCheck:
    """Return whether a statement holds. What is not SMT-LIB is not checked, and neither is anything if Z3 is not installed."""
    if statement.language != "smt2":
        return FormalCheck(
            statement=statement, result=FORMAL_RESULT_UNCHECKED, detail="nothing here checks Lean"
        )
    found = find_spec("z3")
    if found is None or found.origin is None:
        missing = "z3-solver is not installed; it comes with the extra `formal`"
        return FormalCheck(statement=statement, result=FORMAL_RESULT_UNCHECKED, detail=missing)
    try:
        scripts = negate_claim(statement.text)
    except SmtLibError as error:
        return FormalCheck(statement=statement, result=FORMAL_RESULT_UNKNOWN, detail=str(error))
    result, detail = await _solve(str(Path(found.origin).parents[1]), scripts)
    return FormalCheck(
        statement=statement,
        result=_RESULTS.get(result, FORMAL_RESULT_UNKNOWN),
        detail=" ".join(detail.split())[:_MAX_DETAIL],
    )


async def _solve(library: str, scripts: tuple[str, str]) -> tuple[str, str]:
    """Return what Z3 says, `sat`, `unsat` or `unknown`, with the model or the reason."""
    program = _SOLVE.format(library=library, seconds=_SECONDS, memory=_MEMORY_BYTES)
    command = python_command("-I", "-X", "utf8", "-c", program)
    try:
        output = await run_filter(command, json.dumps(scripts).encode(), _WHEN_BUSY * _SECONDS)
    except TimeoutError:
        return "unknown", f"it was not decided in {_WHEN_BUSY * _SECONDS} s"
    try:
        result, detail = json.loads(output)
    except ValueError:
        limits = f"{_SECONDS} s of processor time or {_MEMORY_BYTES >> 20} MiB of memory"
        return "unknown", f"it was not decided within {limits}"
    return str(result), str(detail)
