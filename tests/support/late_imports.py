"""Runs the command as `python -m parley.cli` does, and says on stderr which modules of Parley it has imported."""

import runpy
import sys

if __name__ == "__main__":
    before = set(sys.modules)
    try:
        runpy.run_module("parley.cli", run_name="__main__", alter_sys=True)
    finally:
        late = sorted(each for each in sys.modules.keys() - before if each.startswith("parley."))
        sys.stderr.write(f"late: {late}\n")
