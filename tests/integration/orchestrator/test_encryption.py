"""Debates in an encrypted store: they go on, are proved and are deleted as in any other."""

from pathlib import Path

from parley.client import ParleyClient
from parley.receipts.verification import verify_log, verify_receipt
from parley.runtime.server import RunningServer
from parley.storage.encryption.data_keys import DATA_KEYS
from parley.storage.encryption.wrapping import FileKey, WrappingKeys
from parley.storage.opening import open_store, rewrap_data_keys
from parley.v1 import debate_pb2, orchestrator_pb2
from tests.integration.orchestrator.deleting import delete_debate, hold_to_rest
from tests.support.encryption import damage_data_key, write_key
from tests.support.orchestration import Orchestrator, orchestrating
from tests.support.receipts import OLD, pem_of
from tests.support.scripted_gateway import ScriptedGateway


def read_wrapping_keys(*files: Path) -> WrappingKeys:
    return WrappingKeys(tuple(FileKey.read(each) for each in files))


async def prove(orchestrator: Orchestrator, debate: str) -> tuple[str, list[bytes]]:
    """Return a debate's receipt and log, which are verified."""
    async with ParleyClient(orchestrator.server.address, patience=0) as parley:
        receipt = (await parley.get_receipt(debate)).receipt
        log = [each async for each in parley.read_log(debate)]
        verify_log(verify_receipt(receipt, await parley.list_receipt_keys()).statement, log)
    return receipt, log


async def test_a_plain_debate_goes_on_encrypted_and_a_rotation_changes_neither_its_log_nor_its_receipt(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    old, new = write_key(tmp_path / "old"), write_key(tmp_path / "new")
    receipt_key = tmp_path / "receipt.pem"
    receipt_key.write_text(pem_of(OLD))
    folder = tmp_path / "data"
    hold = gateway.hold("*")
    async with orchestrating(folder, gateway_server, receipt_keys=str(receipt_key)) as orchestrator:
        debate = await orchestrator.create(rounds=1)
        await orchestrator.intervene(debate, pause=debate_pb2.Pause(stop_calls=True))
        await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_PAUSED)
    hold.release()
    async with orchestrating(
        folder, gateway_server, receipt_keys=str(receipt_key), encryption_keys=str(old)
    ) as orchestrator:
        await orchestrator.intervene(debate, resume=debate_pb2.Resume())
        await orchestrator.watch(debate)
        receipt, log = await prove(orchestrator, debate)
    url = f"sqlite:///{folder}"
    assert (await rewrap_data_keys(url, "orchestrator", read_wrapping_keys(new, old))).wrapped > 0
    async with orchestrating(
        folder, gateway_server, receipt_keys=str(receipt_key), encryption_keys=str(new)
    ) as orchestrator:
        assert await prove(orchestrator, debate) == (receipt, log)


async def test_with_a_debate_its_data_key_is_deleted_and_no_other(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    key, folder = write_key(tmp_path / "key"), tmp_path / "data"
    async with orchestrating(folder, gateway_server, encryption_keys=str(key)) as orchestrator:
        kept, debate = [await hold_to_rest(gateway, orchestrator) for _ in range(2)]
        assert await delete_debate(orchestrator, debate)
        assert (await orchestrator.get(kept)).id == kept
    async with open_store(f"sqlite:///{folder}", "orchestrator", wrapping=read_wrapping_keys(key)) as store:
        scopes = {str(each.fields["scope"]) for each in await store.documents.find(DATA_KEYS, {})}
    assert {each for each in scopes if each.startswith("default/deb-")} == {f"default/{kept}"}


async def test_a_debate_whose_data_key_is_damaged_is_deleted_and_hides_no_other(
    tmp_path: Path, gateway: ScriptedGateway, gateway_server: RunningServer
) -> None:
    key, folder = write_key(tmp_path / "key"), tmp_path / "data"
    async with orchestrating(folder, gateway_server, encryption_keys=str(key)) as orchestrator:
        kept, debate = [await hold_to_rest(gateway, orchestrator) for _ in range(2)]
    damage_data_key(folder / "parley.db", "orchestrator", f"default/{debate}")
    async with orchestrating(folder, gateway_server, encryption_keys=str(key)) as orchestrator:
        assert await delete_debate(orchestrator, debate)
        listed = await orchestrator.stub.ListDebates(orchestrator_pb2.ListDebatesRequest(), timeout=10)
        assert [each.id for each in listed.debates] == [kept]
