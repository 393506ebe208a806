"""`parley open` takes the console of the system that runs on its data folder."""

import re
from pathlib import Path

import pytest

from parley.cli.commands.console import open_console
from parley.cli.errors import CommandError
from parley.client import DebateSpec, ParleyClient
from parley.local import LocalOptions, Ports, local_system
from tests.support.ports import free_ports

LINK = r"http://{}/login\?next=/#ticket=\S+\n"


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path / 'data'}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PARLEY_LOCAL_MODEL", "off")


async def test_it_is_found_at_any_port(capsys: pytest.CaptureFixture[str]) -> None:
    async with local_system(LocalOptions(ports=Ports(edge=0))) as system:
        await open_console(None, None, None, only_print=True)
        said = capsys.readouterr()
        assert re.fullmatch(LINK.format(system.edge_address), said.out)
        assert said.err == ""


async def test_the_beginning_of_an_id_leads_to_the_whole_one(capsys: pytest.CaptureFixture[str]) -> None:
    async with local_system(LocalOptions(ports=Ports(edge=0))) as system:
        async with ParleyClient(system.orchestrator_address) as parley:
            debate_id = await parley.create_debate(DebateSpec(question="One service or several?"))
        await open_console(None, None, debate_id[:12], only_print=True)
        assert f"/login?next=/debates/{debate_id}#ticket=" in capsys.readouterr().out
        with pytest.raises(CommandError, match="no debate's id begins with deb-2001"):
            await open_console(None, None, "deb-2001", only_print=True)


@pytest.mark.parametrize(
    ("edge", "said"),
    [
        ("http://127.0.0.1:1", r"no orchestrator answers at 127\.0\.0\.1:2 \(connection refused\)"),
        ("https://parley.example", r"--server: name the orchestrator of https://parley\.example, or write"),
    ],
)
async def test_where_the_beginning_of_an_id_cannot_be_looked_up_that_is_said(edge: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        await open_console(edge, None, "deb-12", only_print=True)


async def test_an_edge_alone_is_signed_in_to_by_the_token_of_the_orchestrator_at_the_next_port(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = next(free_ports())
    ports = Ports(orchestrator=first, edge=first - 1)
    async with local_system(LocalOptions(purpose="records", ports=ports)) as system:
        await open_console(f"http://{system.edge_address}", None, None, only_print=True)
        assert re.fullmatch(LINK.format(system.edge_address), capsys.readouterr().out)


async def test_an_edge_that_refuses_is_said_to_need_its_orchestrators_address() -> None:
    async with local_system(LocalOptions(purpose="records", ports=Ports(edge=0))) as system:
        with pytest.raises(CommandError, match=r"gives no link: .*; name its orchestrator with --server"):
            await open_console(f"http://{system.edge_address}", "127.0.0.1:1", None, only_print=True)


async def test_no_edge_is_asked_beside_a_command_that_has_none() -> None:
    async with local_system(LocalOptions()):
        with pytest.raises(
            CommandError, match=r"a command that has no console, such as parley debate; .*--server"
        ):
            await open_console(None, None, None, only_print=True)


async def test_where_nothing_runs_on_the_folder_that_is_said_before_another_system_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.cli.commands.console._DEFAULT_SERVER", "127.0.0.1:2")
    with pytest.raises(
        CommandError, match=r"127\.0\.0\.1:1 is no console .* \(connection refused\); .*--server"
    ):
        await open_console(None, None, None, only_print=True)
    assert (
        capsys.readouterr().err
        == "No parley up runs on your data folder; trying the Parley at 127.0.0.1:2.\n"
    )
