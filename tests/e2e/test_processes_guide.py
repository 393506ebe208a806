"""The guide on processes, as it is written: its commands set up six services, hold a debate over them and stop them."""

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Final

from tests.e2e.harness import model_server
from tests.support.guides import find_blocks
from tests.support.ports import free_ports
from tests.support.warm_start import write_command

SECONDS: Final = 300
SCRIPT: Final = "".join(
    block.text
    for block in find_blocks("docs/guides/processes.md")
    if block.language == "sh" and "tests.deploy.chart" not in block.text
)
PORT: Final = re.compile(r"\b74\d\d\b")


def test_six_processes_answer_a_debate_over_tls_with_a_key_and_end_with_0(tmp_path: Path) -> None:
    ports = dict(zip(sorted(set(PORT.findall(SCRIPT))), map(str, free_ports()), strict=False))
    script = PORT.sub(lambda found: ports[found[0]], SCRIPT).replace("sk-…", "sk-test")
    write_command(tmp_path / "parley")
    home = tmp_path / "home"
    home.mkdir()
    with model_server("--require-key", "sk-test") as models:
        shell = subprocess.Popen(
            ["bash", "-euc", script],
            cwd=home,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(home), "OPENAI_BASE_URL": models},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            said, errors = shell.communicate(timeout=SECONDS)
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGTERM)
                shell.communicate(timeout=60)
    logs = {each.stem: each.read_text() for each in (home / "parley").glob("*.log")}
    assert shell.returncode == 0, (said, errors, logs)
    assert "- **Confidence:**" in said, "the debate has an answer"
    assert "receipt  signed by the key" in said
    assert '"status": "DEBATE_STATUS_COMPLETED"' in said
    assert len(logs) == 6
    assert not any('"level": "error"' in log for log in logs.values()), logs
    private = [each for each in (home / "parley").rglob("*.*") if each.stat().st_mode & 0o077]
    assert private == []
