"""Change the code of each room a little, at a seeded sample of places, run the tests that reach the place, and print the
changes that none of them notices, with file, line and difference.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from tests.mutants.copy import Copy, warm_up
from tests.mutants.explained import explanations
from tests.mutants.mutant import Mutant, mutants_of
from tests.mutants.reach import Reach, measure

_PROJECT: Final = Path(__file__).parents[2]
_ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "convergence": ("tests/unit/convergence",),
    "gateway": ("tests/unit/gateway",),
    "memory": ("tests/unit/memory", "tests/integration/memory"),
    "orchestrator": (
        "tests/unit/orchestrator",
        "tests/contract/test_feedback_store.py",
        "tests/contract/test_waiting_debates.py",
    ),
    "ratings": ("tests/unit/ratings",),
    "storage": (
        "tests/unit/storage",
        "tests/contract",
        "-k",
        "not mongodb and not replica",
    ),  # servers take minutes
}


def main() -> int:
    """Return 0 if no mutant survived but those that are explained."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(_ROOMS)}; default: all")
    parser.add_argument("--number", type=int, default=20, help="mutants of a room (default: 20)")
    parser.add_argument(
        "--minutes", type=float, default=10, help="for a room, after its tests ran once (default: 10)"
    )
    parser.add_argument("--seed", type=int, default=1, help="which sample (default: 1)")
    parser.add_argument(
        "--under", default="", help="only files whose path begins so, seen from the room's folder"
    )
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.rooms) - set(_ROOMS))
    if unknown:
        parser.error(f"unknown room {unknown[0]}; rooms: {', '.join(_ROOMS)}")
    warm_up()
    unexplained = 0
    with tempfile.TemporaryDirectory(prefix="parley-mutants-") as folder:
        copy = Copy.of(_PROJECT, Path(folder))
        for room in arguments.rooms or _ROOMS:
            counts = try_room(copy, room, arguments)
            unexplained += counts["survived"]
            print(f"{room}: " + ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts)), flush=True)
    return 1 if unexplained else 0


def try_room(copy: Copy, room: str, arguments: argparse.Namespace) -> "Counter[str]":
    """Make mutants of a room until number or time is used up, and count what came of them."""
    reach = measure(copy, room, _ROOMS[room])
    ends = time.monotonic() + arguments.minutes * 60
    counts: Counter[str] = Counter()
    chosen = sample(copy, room, arguments.under, arguments.seed)
    for mutant in chosen:
        tests = reach.of(mutant)
        if not tests:
            counts["in code that these tests never run"] += 1
            continue
        came = outcome(copy, mutant, tests, reach)
        counts[came] += 1
        if sum(counts.values()) - counts["in code that these tests never run"] == arguments.number:
            break
        if time.monotonic() > ends:
            break
    return counts


def sample(copy: Copy, room: str, under: str, seed: int) -> list[Mutant]:
    """Return one mutant of each place in a room, in an order that the seed decides."""
    dice = random.Random(seed)
    here = copy.folder / "services/parley" / room
    places: dict[tuple[Path, tuple[int, int]], list[Mutant]] = {}
    for file in sorted(here.rglob("*.py")):
        if str(file.relative_to(here)).startswith(under):
            for mutant in mutants_of(file.relative_to(copy.folder), file.read_text()):
                places.setdefault((mutant.path, mutant.place), []).append(mutant)
    chosen = [dice.choice(each) for each in places.values()]
    dice.shuffle(chosen)
    return chosen


def outcome(copy: Copy, mutant: Mutant, tests: frozenset[str], reach: Reach) -> str:
    """Run the tests over a mutant and say what came of it; a survivor is printed."""
    file = copy.folder / mutant.path
    source = file.read_text()
    listed = copy.folder / "chosen-tests"
    listed.write_text("\n".join(sorted(tests)))
    file.write_text(mutant.code(source))
    try:
        ran = copy.run(["--timeout=60", f"@{listed.name}"], seconds=60 + 3 * reach.seconds)
    finally:
        file.write_text(source)
    sys.stderr.write("." if not ran.green else "S")
    sys.stderr.flush()
    if not ran.green:
        return "killed"
    diff = mutant.diff(source)
    for each in explanations():
        if each.fits(mutant.path, diff):
            return "explained"
    print(
        f"\n{mutant.path}:{mutant.place[0]} ({mutant.name}; {len(tests)} tests)",
        *diff,
        "",
        sep="\n",
        flush=True,
    )
    return "survived"


if __name__ == "__main__":
    sys.exit(main())
