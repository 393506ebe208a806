"""README and the guides, as they are written: their commands and programs run against `parley up` on its own ports."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.harness import model_server
from tests.support.command import Command
from tests.support.guides import ROOT, Block, find_blocks, is_program, list_pages
from tests.support.warm_start import write_command

RUN_SECONDS: Final = 90
NOT_RUN: Final = {
    '$ .venv/bin/parley debate "Should we use Redis': "asks a person: tests/e2e/test_moderated.py",
    "for lock in build": "builds images: tests/deploy",
    "$ docker build": "builds an image: tests/deploy",
    "$ make wheel": "needs pipx and its packages: tests/e2e/test_wheel.py",
    "make images": "needs a cluster: tests/deploy/test_install_guide.py",
    "helm install": "needs a cluster: tests/deploy/test_install_guide.py",
    "umask 077": "six processes of their own: tests/e2e/test_processes_guide.py",
    "cat > common.env": "as above",
    "start() {": "as above",
    "PARLEY_STORE=sqlite:///$PWD/data": "as above",
    "for service in edge": "as above",
    ".venv/bin/python -m tests.deploy.chart": "needs the tools of make check: tests/deploy/test_chart.py",
    "kubectl ": "needs a cluster: tests/deploy/test_install_guide.py",
    "$ mongodump": "the server's own tools",
    "$ make run LOCAL_MODEL": "fetches 470 MB",
    "$ .venv/bin/python -P -m parley.gateway.local_model.fetch": "fetches 470 MB",
    "$ cd examples/node": "installs from npm: tests/integration/orchestrator/test_examples_of_clients.py",
    'cat > "$(dirname "$(llm': "needs llm: tests/integration/edge/test_chat_clients.py",
    "cat > debate.mjs": "installs from npm: tests/integration/edge/test_chat_clients.py",
    "#!/bin/sh\n# A key that never": "asks AWS: tests/unit/storage/encryption/test_wrapping.py",
    "$ sudo useradd": "needs root: tests/unit/test_processes_guide.py",
    "$ (cd / && sudo": "needs root and a user of its own",
    "$ parley serve edge": "runs until it is stopped; the newcomer has one in `parley up`",
    ".venv/bin/python -m tests.support.kept_logs": "writes into the checkout: tests/unit/orchestrator/log",
}
"""The blocks that this walk leaves out, by how they begin, and why."""
TESTS: Final = re.compile(r"^make (?:check|test|contract|bench|mutants)\b.*\n", re.MULTILINE)
"""Commands that run tests, of which this is one. `tests/unit/test_guides.py` looks for what they name."""
WRITTEN: Final = [
    block
    for page in list_pages()
    for block in find_blocks(page)
    if (block.language in {"sh", "console"} and TESTS.sub("", block.script))
    or (block.language == "python" and is_program(block))
]
BLOCKS: Final = [block for block in WRITTEN if not block.text.startswith(tuple(NOT_RUN))]
TOKEN: Final = next(block for block in BLOCKS if block.text.startswith("PORT="))
SHOWN: Final = {
    "OrchestratorService/CreateDebate": r'"debateId": *"deb-',
    "OrchestratorService/GetAnswer": r'"markdown": *"',
    "/v1/models": r'"id": *"panel"',
    "/v1/chat/completions": r'"object": *"chat.completion"',
    "from openai import": r"^### Round 1 of",
    "/events": r"event: end\ndata: \{\}",
    "SyncParleyClient, event_kind": r"^(\d+ )?closed$",
    "ParleyClient, ParleyError, event_payload": r"^[1-3] of 3 rounds: .",  # it may be over before its rounds are ended
    "call() {": r'"closed": \{\}(.*\n)*.*"markdown": "',
    'parley debate "Should this service': r"^- \*\*Confidence:\*\*",
}
"""What some blocks print, by a part of them."""
EDGE: Final = "http://localhost:7400/v1"
PLACEHOLDERS: Final = ("deb-20261122-…", "deb-20261123-…", "deb-20261124-…")
"""Ids of debates as the guides write them; the first two are deleted by one."""
ROLE: Final = """aliases: counsel

# system
You are a lawyer.

# propose
Propose an answer that would hold in court.
"""


@dataclass(frozen=True)
class Newcomer:
    """Somebody with a checkout, a home, a model server, a running `parley up` with its edge, who types what is written.

    Attributes:
        debates: The ids of debates that ended, one for each placeholder.
    """

    checkout: Path
    home: Path
    models: str
    debates: tuple[str, ...] = ()

    def read(self, text: str) -> str:
        """Return text with what a reader puts in: addresses, keys and ids of their own."""
        text = text.replace("http://localhost:11434/v1", self.models).replace("sk-…", "sk-test")
        for written, own in zip(PLACEHOLDERS, self.debates, strict=False):
            text = text.replace(written, own)
        return text

    def run(self, *command: str, **variables: str) -> str:
        """Run a command that has to end well, and return its stdout."""
        kept = {
            name: os.environ[name] for name in ("LANG", "TMPDIR", "XDG_RUNTIME_DIR") if name in os.environ
        }
        path = os.pathsep.join([str(self.checkout / ".venv" / "bin"), os.environ.get("PATH", os.defpath)])
        own = {"PATH": path, "HOME": str(self.home), "PARLEY_TRUST_CONFIG": "true"}
        done = subprocess.run(
            [self.read(each) for each in command],
            cwd=self.checkout,
            env={**kept, **own, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-3000:]}"
        return done.stdout


def _fill(checkout: Path) -> None:
    """Make a checkout in which everything is installed, with a role of its own."""
    for each in ("Makefile", "pyproject.toml", "requirements", "services", "docs"):
        (checkout / each).symlink_to(ROOT / each)
    venv = checkout / ".venv"
    (venv / "bin").mkdir(parents=True)
    for each in ("lib", "pyvenv.cfg"):
        (venv / each).symlink_to(Path(sys.prefix) / each)
    for program in Path(sys.executable).parent.iterdir():
        (venv / "bin" / program.name).symlink_to(program)
    (venv / "bin" / "parley").unlink()
    write_command(venv / "bin" / "parley")
    for installed in (
        ".made",
        ".run",
        ".all",
    ):  # newer than what they are made from: make installs nothing into bin
        (venv / installed).touch()
    (checkout / "roles").mkdir()
    (checkout / "roles" / "lawyer.md").write_text(ROLE, encoding="utf-8")
    (checkout / "parley.yaml").write_text("judge: {role: generalist}\n", encoding="utf-8")


@pytest.fixture(scope="module")
def newcomer(fixed_ports: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    home, checkout = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("checkout")
    _fill(checkout)
    with model_server() as url:
        store = f"sqlite:///{home / '.local' / 'share' / 'parley'}"  # where it is without the variable
        variables = {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test", "HOME": str(home), "PARLEY_STORE": store}
        try:
            Command(["up"], home, variables).wait_for("Ctrl-C stops")
            someone = Newcomer(checkout, home, url)
            for _ in PLACEHOLDERS:
                someone.run("parley", "debate", "One service or several?", "--rounds", "1")
            found = re.findall(r'"(deb-[0-9a-z-]+)"', someone.run("parley", "list", "--json"))
            yield Newcomer(checkout, home, url, tuple(found))
        finally:
            Command.kill_all()


def test_what_is_left_out_or_shown_is_written_somewhere() -> None:
    assert [each for each in NOT_RUN if not any(block.text.startswith(each) for block in WRITTEN)] == []
    assert [each for each in SHOWN if not any(each in block.text for block in BLOCKS)] == []


@pytest.mark.parametrize("block", [pytest.param(each, id=each.place) for each in BLOCKS])
def test_what_is_written_works(block: Block, newcomer: Newcomer) -> None:
    if "from openai import" in block.text:
        script = f'{TOKEN.script}OPENAI_API_KEY=$TOKEN exec "$0" -c "$1"'
        printed = newcomer.run("sh", "-euc", script, sys.executable, block.text, OPENAI_BASE_URL=EDGE)
    elif block.language == "python":
        printed = newcomer.run(sys.executable, "-c", block.text, newcomer.debates[0])
    elif block.text.startswith("$ parley restore"):  # on a machine without debates
        printed = newcomer.run("sh", "-euc", block.script, PARLEY_STORE=f"sqlite:///{newcomer.home / 'new'}")
    else:
        needed = TOKEN.script if "$TOKEN" in block.script else ""
        script = needed + TESTS.sub("", block.script)
        # The others are deleted by blocks that may come before.
        printed = newcomer.run("sh", "-euc", script, DEBATE=newcomer.debates[-1])
    for part, shown in SHOWN.items():
        if part in block.text:
            assert re.search(shown, printed, re.MULTILINE)
