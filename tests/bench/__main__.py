"""Run benchmarks, each in a process of its own: all of them, or those that are named."""

import argparse
import subprocess
import sys
from pathlib import Path

_PREFIX = "bench_"


def main() -> int:
    """Return 0 if every benchmark ran."""
    here = Path(__file__).parent
    known = sorted(each.stem.removeprefix(_PREFIX) for each in here.glob(f"{_PREFIX}*.py"))
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, for a first look")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(known))
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}; known benchmarks: {', '.join(known)}")
    failed = 0
    for name in arguments.names or known:
        print(f"\n## {name}\n", flush=True)
        command = [sys.executable, "-m", f"tests.bench.{_PREFIX}{name}", *["--quick"] * arguments.quick]
        failed += subprocess.run(command, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
