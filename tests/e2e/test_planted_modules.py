"""A folder full of modules that somebody else wrote: no process that Parley starts in it imports one."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

import pytest

from parley.gateway.local_model.catalogue import QWEN
from parley.gateway.local_model.model import why_unavailable
from tests.e2e.harness import SERVICES
from tests.e2e.harness import model_server as models
from tests.support.ports import free_ports

pytestmark = pytest.mark.timeout(300)  # a start takes its time on a machine that is busy

ROOT: Final = Path(__file__).parents[2]
PARLEY: Final = str(Path(sys.executable).with_name("parley"))
OWN: Final = ROOT / "services/parley"
PLANTED: Final = (
    "import sys\nopen({folder!r} + '/' + __name__, 'w').close()\nsys.stderr.write('PLANTED\\n')\n"
)
REPAIR: Final = """
import asyncio
from parley.gateway.prompt.read_json import repair
print(asyncio.run(repair("{'one': 1,}")))
"""
TYPED: Final = re.compile(r"\bpython3?,? (?P<options>.*)-m,? parley\.")


@pytest.fixture(scope="module")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module for each name that anything imports; each leaves a file in `imported` when it is imported."""
    around = tmp_path_factory.mktemp("planted")
    folder, markers = around / "cloned", around / "imported"
    folder.mkdir()
    names = {
        each.partition(".")[0] for each in (*sys.stdlib_module_names, *packages_distributions(), *sys.modules)
    }
    own = [each.relative_to(OWN.parent).with_suffix("") for each in OWN.rglob("*.py")]
    for path in [*map(Path, names | {"pip", "sitecustomize", "usercustomize"} - {"parley"}), *own]:
        file = folder / path.with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PLANTED.format(folder=str(markers)))
    (folder / "pip").mkdir()
    for name in ("__init__.py", "__main__.py"):
        (folder / "pip" / name).write_text(PLANTED.format(folder=str(markers)))
    return folder


@pytest.fixture
def planted(cloned: Path) -> Path:
    """That folder, of which nothing is imported yet, and no data of another test around it."""
    for name in ("imported", "data", "cache"):
        shutil.rmtree(cloned.parent / name, ignore_errors=True)
    (cloned.parent / "imported").mkdir()
    return cloned


def list_imported(folder: Path) -> list[str]:
    return sorted(each.name for each in (folder.parent / "imported").iterdir())


def environment(folder: Path, **variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "PYTHON"))}
    data = folder.parent / "data"
    return {
        **kept,
        "PARLEY_STORE": f"sqlite:///{data}",
        "PARLEY_VECTORS": f"edge:{data / 'vectors'}",
        "PARLEY_LOCAL_SERVERS": "off",
        "XDG_CACHE_HOME": str(folder.parent / "cache"),
        **variables,
    }


def run(command: Sequence[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(folder, **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_until(text: str, command: Sequence[str], folder: Path, **variables: str) -> None:
    """Run a process until it writes this text, then stop it."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder, **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        written = []
        try:
            for line in process.stderr:
                written.append(line)
                if text in line:
                    break
        finally:
            process.send_signal(signal.SIGTERM)
    assert any(text in line for line in written), "".join(written)


def test_what_is_planted_is_found_by_a_python_that_looks_into_the_folder(planted: Path) -> None:
    run([sys.executable, "-m", "parley.gateway"], planted)
    assert list_imported(planted) != []


@pytest.mark.parametrize(
    "service",
    [pytest.param(name, marks=[] if name == "orchestrator" else [pytest.mark.long]) for name in SERVICES],
)
def test_a_service_imports_nothing_of_the_folder_it_is_started_in(service: str, planted: Path) -> None:
    with models() as url:
        port = str(next(free_ports()))
        given = {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test", "PARLEY_PORT": port}
        run_until("serving", [PARLEY, "serve", service], planted, **given)
    assert list_imported(planted) == []


@pytest.mark.model
def test_the_small_model_imports_nothing_of_the_folder(planted: Path) -> None:
    port = str(next(free_ports()))
    run_until(
        "a small model on this machine answers", [PARLEY, "serve", "gateway"], planted, PARLEY_PORT=port
    )
    assert list_imported(planted) == []


def test_a_debate_in_one_process_imports_nothing_of_the_folder(planted: Path) -> None:
    with models() as url:
        asked = [PARLEY, "debate", "Which?", "--agents", "architect,security", "--rounds", "1"]
        ended = run(asked, planted, OPENAI_BASE_URL=url, PARLEY_MODEL="test")
    assert ended.returncode == 0, ended.stderr
    assert list_imported(planted) == []


def test_the_system_in_one_process_imports_nothing_of_the_folder(planted: Path) -> None:
    with models() as url:
        up = [PARLEY, "up", "--port", str(next(free_ports()))]
        run_until("Ctrl-C stops", up, planted, OPENAI_BASE_URL=url, PARLEY_MODEL="test")
    assert list_imported(planted) == []


def test_the_repair_of_an_answer_imports_nothing_of_the_folder(planted: Path) -> None:
    assert run([sys.executable, "-P", "-c", REPAIR], planted).stdout == "{'one': 1}\n"
    assert list_imported(planted) == []


def test_the_command_that_fetches_a_model_imports_nothing_of_the_folder_and_nor_does_pip(
    planted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(planted.parent / "cache"))
    hint = why_unavailable(QWEN)
    assert hint is not None
    ended = run(
        shlex.split(hint.rpartition("with: ")[2]), planted, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull
    )
    assert "No matching distribution" in ended.stderr
    assert "error: pip could not download the parts of" in ended.stderr
    assert list_imported(planted) == []


def test_processes_of_those_processes_do_not_look_into_the_folder_either(planted: Path) -> None:
    program = "from parley.runtime.python_process import safe_environment as e; print(e()['PYTHONSAFEPATH'])"
    assert run([sys.executable, "-P", "-c", program], planted).stdout == "1\n"


def test_one_module_alone_says_how_python_is_started() -> None:
    found = [file for file in OWN.rglob("*.py") if "sys.executable" in file.read_text()]
    assert found == [OWN / "runtime/python_process.py"]


def test_what_people_are_to_type_does_not_look_into_the_folder() -> None:
    files = [
        *(ROOT / name for name in ("Makefile", "README.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "charts").rglob("*.yaml"),
        *OWN.rglob("*.py"),
    ]
    commands = [found for file in files for found in TYPED.finditer(file.read_text())]
    assert commands
    assert [found[0] for found in commands if found["options"] not in {"-P ", "-P, "}] == []
