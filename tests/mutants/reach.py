"""Which tests run which line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

from tests.mutants.copy import Copy
from tests.mutants.mutant import Mutant


@dataclass(frozen=True, slots=True)
class Reach:
    """The tests of a room.

    Attributes:
        lines: The tests that run each line of a file that any of them runs. An empty name: it ran, and who ran it is not known.
        tests: All of them.
        seconds: What all of them took.
    """

    lines: dict[Path, dict[int, set[str]]]
    tests: frozenset[str]
    seconds: float

    def of(self, mutant: Mutant) -> frozenset[str]:
        """Return the tests that may notice a mutant."""
        lines = self.lines.get(mutant.path, {})
        if not mutant.lines:
            return self.tests if lines else frozenset()
        found = frozenset(test for line in mutant.lines for test in lines.get(line, ()))
        return self.tests if "" in found else found


def measure(copy: Copy, room: str, tests: Sequence[str]) -> Reach:
    """Run the tests of a room once, unchanged.

    Raises:
        RuntimeError: They fail as they are.
    """
    measured = copy.folder / ".coverage"
    measured.unlink(missing_ok=True)
    config = copy.folder / "coverage.ini"
    config.write_text("[run]\n")  # the project's own measures every room, branches and processes
    covered = [
        f"--cov=services/parley/{room}",
        f"--cov-config={config}",
        "--cov-context=test",
        "--cov-report=",
    ]
    ran = copy.run([*covered, *tests], seconds=1800)
    if not ran.green:
        raise RuntimeError(f"the tests of {room} fail as they are:\n{ran.told}")
    data = CoverageData(str(measured))
    data.read()
    lines: dict[Path, dict[int, set[str]]] = {}
    for file in data.measured_files():
        path = Path(file).relative_to(copy.folder)
        lines[path] = {
            line: {context.partition("|")[0] for context in contexts}
            for line, contexts in data.contexts_by_lineno(file).items()
        }
    known = {test for by_line in lines.values() for tests in by_line.values() for test in tests}
    return Reach(lines, frozenset(known - {""}), ran.seconds)
