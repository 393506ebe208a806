"""What embeds tells nobody of it."""

import os
import subprocess
import sys
from pathlib import Path


def test_a_process_that_embeds_leaves_nothing_that_names_this_machine(tmp_path: Path) -> None:
    """Where onnxruntime's telemetry is on, it keeps a number of the device and what it would send below the home."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ORT_"))}
    embed = "from parley.convergence.models import MiniLm; MiniLm().embed('a')"
    subprocess.run([sys.executable, "-c", embed], env=known | {"HOME": str(tmp_path)}, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []
