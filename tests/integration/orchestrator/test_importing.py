"""Debates of another system, kept here: verified first, read like any other, and changed by nobody."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from parley.cli.__main__ import run
from parley.client import ParleyClient
from parley.orchestrator.log.deletions import DeletionStore
from parley.orchestrator.log.imported_receipts import ImportedReceiptStore
from parley.orchestrator.log.index import DebateIndex
from parley.receipts.chain import HASH_BYTES, HASH_FIELD, chain_hash
from parley.receipts.log_file import frame
from parley.receipts.verification import verify_receipt
from parley.runtime.errors import ParleyError
from parley.runtime.server import RunningServer
from parley.storage.ports import StoreUnavailableError
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, Approve, Intervention
from parley.v1.event_pb2 import CheckpointClosed, Event
from parley.v1.orchestrator_pb2 import SubmitFeedbackRequest
from parley.v1.receipt_pb2 import ReceiptKey
from tests.support.orchestration import Orchestrator, failure_of, orchestrating
from tests.support.receipts import NEW, OLD, pem_of, ring, sign_debate


@dataclass(frozen=True)
class Foreign:
    """A debate of another system, as it is imported."""

    name: str = "panel@1-voting"

    @property
    def debate_id(self) -> str:
        return Event.FromString(sign_debate(self.name).entries[0]).debate_id

    async def send(
        self,
        parley: ParleyClient,
        *,
        receipt: str | None = None,
        keys: Sequence[ReceiptKey] | None = None,
        log: bytes | None = None,
    ) -> bool:
        """Import it, with these parts in place of its own; return whether it was here."""
        debate = sign_debate(self.name)
        given = await parley.import_debate(
            receipt or debate.receipt,
            ring(OLD).keys if keys is None else keys,
            debate.log_file if log is None else log,
        )
        assert given.debate_id == self.debate_id
        return given.existed


@pytest.fixture
async def parley(orchestrator: Orchestrator) -> AsyncIterator[ParleyClient]:
    async with ParleyClient(orchestrator.server.address, patience=0) as client:
        yield client


@pytest.mark.parametrize("name", ["panel@1-voting", "arena@1-adversarial", "moderated@1-steered"])
async def test_an_imported_debate_is_read_listed_and_watched_like_any_other(
    name: str, parley: ParleyClient
) -> None:
    foreign, debate = Foreign(name), sign_debate(name)
    assert not await foreign.send(parley)
    found = await parley.get(foreign.debate_id)
    assert found.status == DEBATE_STATUS_COMPLETED
    assert found.outcome.description == debate.answer
    assert found.imported.key_id == ring(OLD).keys[0].id
    (summary,) = [each async for each in parley.list()]
    assert (summary.id, summary.imported) == (foreign.debate_id, True)
    assert summary.create_time == found.create_time
    assert [each async for each in parley.read_log(foreign.debate_id)] == list(debate.entries)
    watched = [each async for each in parley.watch(foreign.debate_id)]
    assert len(watched) == len(debate.entries)
    assert "Imported: from another system on " in await parley.get_report(foreign.debate_id)
    assert (await parley.get(foreign.debate_id)).imported == found.imported, "the second reading too"


async def test_the_same_import_again_changes_nothing(parley: ParleyClient) -> None:
    assert not await Foreign().send(parley)
    before = await parley.get(Foreign().debate_id)
    assert await Foreign().send(parley)
    assert await parley.get(Foreign().debate_id) == before


async def test_two_imports_of_a_debate_at_once_keep_it_once(parley: ParleyClient) -> None:
    await asyncio.gather(Foreign().send(parley), Foreign().send(parley))
    assert [each.id async for each in parley.list()] == [Foreign().debate_id]
    assert [each async for each in parley.read_log(Foreign().debate_id)] == list(DEBATE.entries)
    await parley.delete(Foreign().debate_id)
    assert not await Foreign().send(parley)


async def test_it_is_the_debate_of_the_tenant_that_imported_it_alone(orchestrator: Orchestrator) -> None:
    address, debate = orchestrator.server.address, Foreign().debate_id
    async with (
        ParleyClient(address, "acme", patience=0) as acme,
        ParleyClient(address, "other", patience=0) as other,
    ):
        await Foreign().send(acme)
        for _ in range(2):  # the second is answered by what the first has read
            assert (await acme.get(debate)).outcome.description == DEBATE.answer
        for refused in (other.get(debate), other.get_receipt(debate)):
            with pytest.raises(ParleyError) as unknown:
                await refused
            assert unknown.value.code is grpc.StatusCode.NOT_FOUND
        assert not await Foreign().send(other), "each tenant has its own"


async def test_its_receipt_is_the_one_that_it_came_with(parley: ParleyClient) -> None:
    await Foreign().send(parley)
    signed = await parley.get_receipt(Foreign().debate_id)
    assert signed.receipt == sign_debate().receipt
    assert verify_receipt(signed.receipt, [signed.key]).debate_id == Foreign().debate_id


async def test_nobody_steers_it_or_gives_feedback_on_it(
    orchestrator: Orchestrator, parley: ParleyClient
) -> None:
    debate = Foreign().debate_id
    await Foreign().send(parley)
    with pytest.raises(ParleyError) as steered:
        await parley.pause(debate)
    assert steered.value.reason == "DEBATE_ENDED"
    request = SubmitFeedbackRequest(debate_id=debate, request_id="one", value=1)
    refused = await failure_of(orchestrator.stub.SubmitFeedback(request))
    assert refused.reason == "DEBATE_IMPORTED"
    assert len([each async for each in parley.read_log(debate)]) == len(sign_debate().entries)


async def test_it_is_deleted_with_its_receipt_and_can_come_again(parley: ParleyClient) -> None:
    await Foreign().send(parley)
    await parley.delete(Foreign().debate_id)
    with pytest.raises(ParleyError) as gone:
        await parley.get_receipt(Foreign().debate_id)
    assert gone.value.code is grpc.StatusCode.NOT_FOUND


async def test_one_that_came_again_says_when_it_came_last(parley: ParleyClient) -> None:
    await Foreign().send(parley)
    before = (await parley.get(Foreign().debate_id)).imported
    await parley.delete(Foreign().debate_id)
    await Foreign().send(parley)
    after = (await parley.get(Foreign().debate_id)).imported
    assert after.import_time.ToDatetime() > before.import_time.ToDatetime()


def swap_entries(entries: Sequence[bytes]) -> bytes:
    changed = list(entries)
    changed[3], changed[4] = changed[4], changed[3]
    return b"".join(map(frame, changed))


DEBATE = sign_debate()


def with_end(*events: Event) -> bytes:
    """The log with these events before its last one, chained as anyone can chain them."""
    *entries, last = DEBATE.entries
    for event in (*events, Event.FromString(last[:-HASH_BYTES])):
        event.sequence, event.debate_id = len(entries) + 1, Foreign().debate_id
        body = event.SerializeToString()
        entries.append(body + HASH_FIELD + chain_hash(entries[-1][-32:], body))
    return b"".join(map(frame, entries))


def change_reply() -> Event:
    """A step of the debate with another reply than it had."""
    events = map(Event.FromString, DEBATE.entries)
    step = next(each for each in events if each.step_succeeded.HasField("reply"))
    step.step_succeeded.reply.text = "what nobody said"
    step.ClearField("hash")
    return step


def add_step() -> Event:
    step = change_reply()
    step.key = "rounds/9/nobody"
    return step


REFUSED = {
    "swapped events": ({"log": swap_entries(DEBATE.entries)}, "log: event 5 stands where event 4 should be"),
    "a changed byte": ({"log": DEBATE.log_file[:-40] + b"x" + DEBATE.log_file[-39:]}, "log: "),
    "no log": ({"log": b""}, "log: the file is empty"),
    "the log of another": ({"log": sign_debate("panel@1-merge").log_file}, "log: it is the log of"),
    "a log that is not closed": (
        {"log": b"".join(map(frame, DEBATE.entries[:-1]))},
        "log: the debate is not closed; export it again",
    ),
    "an approval that nobody gave": (
        {
            "log": with_end(
                Event(
                    key="gate/1",
                    checkpoint_closed=CheckpointClosed(
                        intervention=Intervention(approve=Approve(approved=True))
                    ),
                )
            )
        },
        "log: what follows the answer is not signed, and changes its approvals",
    ),
    "a contribution in place of another": (
        {"log": with_end(change_reply())},
        "log: what follows the answer is not signed, and changes its contributions",
    ),
    "a contribution more": (
        {"log": with_end(add_step())},
        "log: what follows the answer is not signed, and adds to its contributions",
    ),
    "another receipt": ({"receipt": sign_debate("panel@1-merge").receipt}, "log: it is the log of"),
    "no receipt": ({"receipt": "{}"}, "receipt: it is no signed envelope"),
    "another key": ({"keys": ring(NEW).keys}, "receipt: it names the key"),
    "no key": ({"keys": []}, "keys: must be 1 to 100 keys"),
    "a key under another's name": (
        {"keys": [ReceiptKey(id=ring(OLD).keys[0].id, public_key=ring(NEW).keys[0].public_key)]},
        "keys[0]: is named",
    ),
    "what is no key": ({"keys": [ReceiptKey(id="a", public_key=b"short")]}, "keys[0]: is no Ed25519 key"),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_is_not_as_it_was_signed_is_refused_and_nothing_is_kept(
    what: str, parley: ParleyClient
) -> None:
    parts, why = REFUSED[what]
    with pytest.raises(ParleyError) as refused:
        await Foreign().send(parley, **parts)  # type: ignore[arg-type]
    assert refused.value.code is grpc.StatusCode.INVALID_ARGUMENT
    (violation,) = refused.value.violations
    assert f"{violation.field}: {violation.description}".startswith(why)
    assert [each async for each in parley.list()] == []


def rewritten() -> bytes:
    """The debate's log with another end, chained as a writer would chain it."""
    *before, last = DEBATE.entries
    closed = Event.FromString(last[:-34])
    closed.key = "other"
    body = closed.SerializeToString()
    return b"".join(map(frame, [*before, body + HASH_FIELD + chain_hash(before[-1][-32:], body)]))


async def test_another_debate_with_the_same_id_is_refused_and_the_first_one_stays(
    parley: ParleyClient,
) -> None:
    assert not await Foreign().send(parley)
    with pytest.raises(ParleyError, match="with other events; nothing was changed") as refused:
        await Foreign().send(parley, log=rewritten())
    assert refused.value.reason == "DEBATE_EXISTS"
    assert [each async for each in parley.read_log(Foreign().debate_id)] == list(DEBATE.entries)


@pytest.mark.parametrize("step", ["insert", "remove"])
async def test_an_import_that_broke_off_is_sent_again(
    step: str, parley: ParleyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailableError("away")

    with monkeypatch.context() as broken:
        broken.setattr(
            *{"insert": (DebateIndex, "insert", fail), "remove": (DeletionStore, "remove", fail)}[step]
        )
        with pytest.raises(ParleyError) as away:
            await Foreign().send(parley)
        assert away.value.reason == "STORE_UNAVAILABLE"
    assert await Foreign().send(parley) == (step == "remove")
    assert (await parley.get(Foreign().debate_id)).outcome.description == DEBATE.answer


async def test_a_debate_that_is_being_deleted_here_is_not_imported_yet(
    parley: ParleyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailableError("away")

    await Foreign().send(parley)
    with monkeypatch.context() as broken:
        broken.setattr(ImportedReceiptStore, "delete", fail)
        assert not await parley.delete(Foreign().debate_id)
        with pytest.raises(ParleyError, match="is being deleted here") as refused:
            await Foreign().send(parley)
    assert refused.value.reason == "DEBATE_BEING_DELETED"


async def test_a_key_that_is_revoked_here_signs_no_import(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    for name, content in (("new", pem_of(NEW)), ("old", pem_of(OLD, private=False))):
        (tmp_path / f"{name}.pem").write_text(content)
    async with (
        orchestrating(
            tmp_path / "data",
            gateway_server,
            receipt_keys=f"{tmp_path / 'new.pem'},{tmp_path / 'old.pem'}",
            receipt_revoked=ring(OLD).keys[0].id,
        ) as orchestrator,
        ParleyClient(orchestrator.server.address, patience=0) as parley,
    ):
        with pytest.raises(ParleyError, match="was revoked"):
            await Foreign().send(parley)


async def command(*words: str) -> int:
    """Run a command, which starts the system of its folder."""
    return await asyncio.to_thread(run, list(words))


async def test_a_debate_goes_from_one_machine_to_another_by_export_and_import(
    tmp_path: Path,
    gateway_server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with orchestrating(tmp_path / "one", gateway_server) as orchestrator:
        debate = await orchestrator.create(rounds=1)
        await orchestrator.watch(debate)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path / 'one'}")
    assert await command("export", debate, "-o", "debate.zip") == 0
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path / 'two'}")
    capsys.readouterr()
    assert await command("import", "debate.zip") == 0
    out, err = capsys.readouterr()
    assert f"{debate} is here now, to be read" in out
    assert "the key is the archive's own" in err
    assert await command("import", "debate.zip") == 0
    assert f"{debate} is here already" in capsys.readouterr().out
    assert await command("list") == 0
    assert "completed, imported" in capsys.readouterr().out
    assert await command("show", debate) == 0
    assert "\nImported   " in capsys.readouterr().out
    # What was imported is exported, and verified, as it was where it was held.
    assert await command("export", debate, "-o", "again.zip") == 0
    assert await command("import", "again.zip") == 0
    assert f"{debate} is here already" in capsys.readouterr().out


async def test_an_archive_that_does_not_verify_is_refused_by_the_command_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "debate.zip").write_bytes(b"no archive")
    assert await command("import", "debate.zip") == 1
    assert "debate.zip: it is no archive that can be read" in capsys.readouterr().err
    assert await command("import", "none.zip") == 2
    assert "none.zip: cannot be read: No such file" in capsys.readouterr().err
