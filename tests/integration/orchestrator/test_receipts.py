"""Receipts over gRPC: signed by the operator's keys, or by a key that a system on one machine makes for itself."""

import asyncio
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.client import ParleyClient
from parley.orchestrator.settings import OrchestratorSettings
from parley.receipts.key_files import OWN_KEY
from parley.receipts.keys import key_id_of
from parley.receipts.verification import verify_log, verify_receipt
from parley.runtime.errors import ConfigurationError, ParleyError
from parley.runtime.server import RunningServer
from tests.support.openssl import needs_openssl
from tests.support.orchestration import Orchestrator, orchestrating
from tests.support.receipts import NEW, OLD, pem_of
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def key_files(tmp_path: Path) -> dict[str, str]:
    found = {}
    for name, content in (
        ("old", pem_of(OLD)),
        ("new", pem_of(NEW)),
        ("retired", pem_of(OLD, private=False)),
    ):
        (tmp_path / f"{name}.pem").write_text(content)
        found[name] = str(tmp_path / f"{name}.pem")
    return found


def client_of(orchestrator: Orchestrator) -> ParleyClient:
    return ParleyClient(orchestrator.server.address, patience=0)


async def hold_debate(orchestrator: Orchestrator) -> str:
    debate = await orchestrator.create(rounds=1)
    await orchestrator.watch(debate)
    return debate


async def test_a_receipt_verifies_with_the_servers_keys_and_log_also_after_a_rotation(
    tmp_path: Path, gateway_server: RunningServer, key_files: dict[str, str]
) -> None:
    store = tmp_path / "data"
    async with orchestrating(store, gateway_server, receipt_keys=key_files["old"]) as orchestrator:
        debate = await hold_debate(orchestrator)
        async with client_of(orchestrator) as parley:
            receipt = (await parley.get_receipt(debate)).receipt
            assert (await parley.get_receipt(debate)).receipt == receipt, (
                "the same debate has the same receipt"
            )
            found = verify_receipt(receipt, await parley.list_receipt_keys())
            verify_log(found.statement, [each async for each in parley.read_log(debate)])
            assert found.statement.receipt.debate_id == debate
            assert not found.statement.receipt.machine_only
    keys = f"{key_files['new']},{key_files['retired']}"
    async with (
        orchestrating(store, gateway_server, receipt_keys=keys) as orchestrator,
        client_of(orchestrator) as parley,
    ):
        trusted = await parley.list_receipt_keys()
        assert verify_receipt(receipt, trusted).key.id == key_id_of(OLD.public_key())
        after = verify_receipt((await parley.get_receipt(debate)).receipt, trusted)
        assert after.key.id == key_id_of(NEW.public_key())
        assert after.statement == found.statement


async def test_only_a_completed_debate_has_a_receipt(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer, key_files: dict[str, str]
) -> None:
    gateway.hold("round/1/propose/*")
    async with (
        orchestrating(tmp_path / "data", gateway_server, receipt_keys=key_files["old"]) as orchestrator,
        client_of(orchestrator) as parley,
    ):
        debate = await orchestrator.create(rounds=1)
        with pytest.raises(ParleyError, match="only a completed one has a receipt") as refused:
            await parley.get_receipt(debate)
        assert refused.value.reason == "DEBATE_NOT_COMPLETED"
        with pytest.raises(ParleyError) as unknown:
            await parley.get_receipt("deb-20260101-000000-aaaaaaaa")
        assert unknown.value.reason == "DEBATE_NOT_FOUND"


async def test_a_server_without_keys_says_so(orchestrator: Orchestrator) -> None:
    debate = await hold_debate(orchestrator)
    async with client_of(orchestrator) as parley:
        assert not await parley.list_receipt_keys()
        with pytest.raises(ParleyError, match="sets PARLEY_RECEIPT_KEYS") as refused:
            await parley.get_receipt(debate)
    assert refused.value.reason == "NO_RECEIPT_KEY"


def test_revoked_keys_without_keys_are_refused_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match="PARLEY_RECEIPT_REVOKED needs PARLEY_RECEIPT_KEYS"):
        OrchestratorSettings(receipt_revoked="abc").receipt_key_source(None)


@pytest.fixture
async def held(tmp_path: Path, gateway_server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A debate in the data folder of this user."""
    async with orchestrating(tmp_path / "data", gateway_server) as orchestrator:
        debate = await hold_debate(orchestrator)
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path / 'data'}")
    monkeypatch.chdir(tmp_path)
    return debate


async def parley(*words: str) -> int:
    """Run a command, which starts the system of this folder."""
    return await asyncio.to_thread(run, list(words))


async def test_a_system_on_one_machine_makes_its_key_and_says_that_it_vouches_for_itself_alone(
    held: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await parley("receipt", held, "-o", "r.json") == 0
    assert stat.S_IMODE((tmp_path / "data" / OWN_KEY).stat().st_mode) == 0o600
    capsys.readouterr()
    assert await parley("verify", "r.json") == 0
    out, err = capsys.readouterr()
    assert "events that were signed are as they were" in out
    assert "vouches for that machine alone" in err
    assert await parley("receipt", held) == 0
    assert capsys.readouterr().out == await asyncio.to_thread(Path("r.json").read_text)


async def test_a_folders_key_that_cannot_be_used_is_said(
    held: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data" / OWN_KEY).write_text("no key")
    assert await parley("receipt", held) == 1
    assert (
        f"the key of this folder's receipts, {OWN_KEY}, cannot be used: there is no key"
        in capsys.readouterr().err
    )


def run_script(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run what an auditor types."""
    words = ["sh", "-euc", script]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@needs_openssl
async def test_an_exported_debate_is_verified_by_openssl_as_its_readme_says_and_by_the_command(
    held: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await parley("export", held) == 0
    assert await parley("export", held, "-o", "again.zip") == 0
    archive, again = tmp_path / f"{held}.zip", tmp_path / "again.zip"
    assert archive.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path / "out")
    folder = tmp_path / "out" / held
    names = {each.name for each in folder.iterdir()}
    assert {"answer.md", "report.md", "report.html", "events.jsonl", "log.pb", "log-after.pb"} < names
    script = (folder / "README.md").read_text().partition("```sh\n")[2].partition("```")[0]
    done = await asyncio.to_thread(run_script, script, folder)
    assert done.returncode == 0, done.stderr
    assert "Signature Verified Successfully" in done.stdout + done.stderr
    assert "answer.md: OK" in done.stdout
    capsys.readouterr()
    assert await parley("verify", str(archive), "--keys", str(folder / "key.pem")) == 0
    assert "the text is the answer that was signed" in capsys.readouterr().out


async def test_a_receipt_verifies_where_the_debate_is_gone(
    held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await parley("receipt", held, "-o", "r.json") == 0
    (tmp_path / "empty").mkdir()
    (tmp_path / "data" / OWN_KEY).rename(tmp_path / "empty" / OWN_KEY)
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path / 'empty'}")
    assert await parley("verify", "r.json") == 0
    assert f"this Parley has no debate {held}" in capsys.readouterr().err
