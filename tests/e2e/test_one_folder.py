"""Who may use a data folder at a time: services as processes of their own, or one process with all of them."""

import re
from pathlib import Path

import pytest

from parley.storage.data_folder import STORING
from parley.storage.folder_lock import is_shared
from tests.e2e.harness import model_server as models
from tests.support.command import Command
from tests.support.ports import free_ports
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(300)  # a start takes its time on a machine that is busy


def serve(folder: Path, service: str) -> Command:
    return Command(["serve", service], folder, {"PARLEY_PORT": "0", "OPENAI_API_KEY": "k"})


def test_services_share_a_folder_and_a_command_beside_them_says_who_has_it(tmp_path: Path) -> None:
    ratings, orchestrator = serve(tmp_path, "ratings"), serve(tmp_path, "orchestrator")
    for each in (ratings, orchestrator):
        each.wait_for("serving")
    ended = Command(["list"], tmp_path).end()
    assert (ended.code, ended.out, len(ended.err)) == (4, "", 1)
    assert f"parley serve ratings (process {ratings.process.pid})" in ended.err[0]
    assert f"parley serve orchestrator (process {orchestrator.process.pid})" in ended.err[0]
    assert "--server" in ended.err[0]


@pytest.mark.parametrize("service", ["orchestrator", "memory"])
def test_an_orchestrator_or_a_memory_is_alone_on_its_folder_and_the_next_waits_for_its_end(
    tmp_path: Path, service: str
) -> None:
    first = serve(tmp_path, service)
    first.wait_for("serving")
    second = serve(tmp_path, service).end()
    assert (second.code, len(second.err)) == (4, 1)
    assert f"is in use by process {first.process.pid}" in second.err[0]
    third = serve(tmp_path, service)
    until(lambda: str(third.process.pid) in (tmp_path / "data/parley.lock").read_text())
    first.process.kill()
    third.wait_for("serving")


@pytest.mark.parametrize("service", STORING)
def test_a_service_does_not_take_an_empty_url_for_a_folder_of_its_own(service: str, tmp_path: Path) -> None:
    ended = Command(["serve", service], tmp_path, {"PARLEY_STORE": "", "OPENAI_API_KEY": "k"}).end()
    assert ended.code == 4
    assert ended.err[-1].startswith("PARLEY_STORE: is empty; name a store"), ended.err


@pytest.mark.long
def test_a_service_does_not_start_beside_a_whole_system(tmp_path: Path) -> None:
    first = next(free_ports())
    with models() as url:
        up = Command(["up", "--port", str(first)], tmp_path, {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"})
        up.wait_for("Debates are kept in")
        assert not is_shared(tmp_path / "data")
        for service in ("orchestrator", "gateway", "ratings", "memory"):
            ended = serve(tmp_path, service).end()
            assert (ended.code, len(ended.err)) == (4, 1), ended.err
            assert re.search(rf"in use by process {up.process.pid};.* stop that first", ended.err[0])
