"""`parley up` and a configuration that it found in its folder: what is taken of a change while it runs."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.harness import model_server as models
from tests.support.command import Command
from tests.support.ports import free_ports

pytestmark = pytest.mark.timeout(300)  # a start takes its time on a machine that is busy

HARMLESS = "agents: [{role: architect, id: before}]\n"


@dataclass
class Up:
    """A running `parley up`, and the file that it found or was given."""

    command: Command
    file: Path
    server: str

    def change(self, text: str) -> str:
        """Change the file; once the log has a line about it, return what agents and routes there are."""
        self.file.write_text(text)
        self.command.wait_for("agents file ")
        return Command(["agents", "--server", self.server], self.file.parent).end().out


def start(folder: Path, url: str, *options: str, **variables: str) -> Up:
    first = next(free_ports())
    given = {
        "OPENAI_BASE_URL": url,
        "PARLEY_MODEL": "test",
        "PARLEY_LOG_LEVEL": "info",
        **make_variables(folder),
    }
    command = Command(["up", "--port", str(first), *options], folder, {**given, **variables})
    command.wait_for("Ctrl-C stops")
    return Up(command, folder / "parley.yaml", f"127.0.0.1:{first}")


def make_variables(folder: Path) -> dict[str, str]:
    return {"PARLEY_TRUST_CONFIG": "", "XDG_STATE_HOME": str(folder / "state")}


def write_provider(url: str, name: str) -> str:
    return (
        f"providers: [{{name: {name}, base_url: '{url}'}}]\n"
        f"routes: [{{provider: {name}, model: test}}]\n"
        "agents: [{role: architect, id: after}]\n"
    )


@pytest.mark.parametrize("is_trusted_at_start", [False, True])
def test_a_change_that_needs_a_yes_is_not_taken_whatever_was_trusted_at_the_start(
    is_trusted_at_start: bool, tmp_path: Path
) -> None:
    with models() as url, models() as other:
        text = write_provider(url, "own").replace("after", "before") if is_trusted_at_start else HARMLESS
        (tmp_path / "parley.yaml").write_text(text)
        if is_trusted_at_start:
            assert Command(["roles", "--trust-config"], tmp_path, make_variables(tmp_path)).end().code == 0
        up = start(tmp_path, url)
        listed = up.change(write_provider(other, "thief"))
        up.command.process.kill()
    assert "before" in listed
    assert "after" not in listed
    assert "thief" not in listed
    (line,) = [each for each in up.command.end().err if "agents file " in each]
    assert "not taken over" in line
    assert (
        f"parley.yaml has changed and is not trusted as it is now: parley.yaml:1: providers[0]: {other}"
        in line
    )
    assert "parley up --config parley.yaml, or with --trust-config" in line


def test_a_change_that_needs_no_yes_is_taken(tmp_path: Path) -> None:
    (tmp_path / "parley.yaml").write_text(HARMLESS)
    with models() as url:
        assert "after" in start(tmp_path, url).change(HARMLESS.replace("before", "after"))


@pytest.mark.parametrize("trusted_by", ["--config", "--trust-config", "PARLEY_TRUST_CONFIG"])
def test_any_change_is_taken_of_a_file_that_was_given_or_is_trusted_whatever_it_says(
    trusted_by: str, tmp_path: Path
) -> None:
    (tmp_path / "parley.yaml").write_text(HARMLESS)
    options = {"--config": ["--config", "parley.yaml"], "--trust-config": ["--trust-config"]}
    variables = {"PARLEY_TRUST_CONFIG": "true"} if trusted_by == "PARLEY_TRUST_CONFIG" else {}
    with models() as url, models() as other:
        listed = start(tmp_path, url, *options.get(trusted_by, []), **variables).change(
            write_provider(other, "new")
        )
    assert "after" in listed
    assert "new/test" in listed
    assert not (tmp_path / "state/parley/trusted.json").exists()  # no person saw what it says now
