"""The audit log: what callers do is recorded with who they are, what must not be done unrecorded is not done, and no RPC is forgotten."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor

from parley.cli.commands.audit import AuditOptions, list_audit_entries
from parley.cli.errors import CommandError
from parley.client import DebateSpec, ParleyClient, ParleyError
from parley.orchestrator.audit.parts import AUDIT_LOGS, AuditLogs
from parley.orchestrator.audit.reading import AuditFilter, list_page
from parley.orchestrator.audit.trail import AuditTrail
from parley.orchestrator.audit.writer import AuditWriter
from parley.runtime.channel import channel
from parley.runtime.clock import SystemClock
from parley.runtime.server import ServerSettings, Service, start_server
from parley.runtime.tasks import background_task
from parley.storage.opening import Store, open_store
from parley.storage.ports import Record, StoreUnavailableError
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN, ACCESS_ROLE_READ
from parley.v1.audit_pb2 import (
    AUDIT_ACT_NONE,
    AUDIT_ACT_WATCH_DEBATE,
    AUDIT_OUTCOME_DONE,
    AUDIT_OUTCOME_REFUSED,
    AUDIT_OUTCOME_STARTED,
    AuditAct,
    AuditEntry,
    AuditOutcome,
    act,
    changes,
)
from tests.support.access import key_for, methods, stub_call
from tests.support.catching import catch_error
from tests.support.orchestration import Orchestrator, orchestrating, until, until_at_rest
from tests.support.passing_log import PassingLog
from tests.support.right_requests import RIGHT_REQUESTS
from tests.support.scripted_gateway import ScriptedGateway

QUESTION = "Is the merger with Initech off?"
SERVICE = "parley.v1.OrchestratorService"
OUTER = [each for each in methods() if each.containing_service.full_name == SERVICE]


@dataclass
class Audited:
    """An orchestrator that authenticates by key, and clients with different roles."""

    store: Store
    admin: ParleyClient
    reader: ParleyClient
    other: ParleyClient
    address: str = ""
    token: str = ""
    """The administrator's."""

    async def entries(self, tenant: str = "acme") -> list[AuditEntry]:
        """All entries, oldest first, as they are stored by now."""
        page = await list_page(
            AuditLogs(self.store.log, self.store.documents), tenant, AuditFilter(), None, 200
        )
        return list(reversed(page.entries))


@asynccontextmanager
async def run_audited(folder: Path) -> AsyncIterator[Audited]:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(f"sqlite:///{folder}", "orchestrator"))
        gateway = await stack.enter_async_context(ScriptedGateway().served())
        served: Orchestrator = await stack.enter_async_context(
            orchestrating(folder, gateway, over_sockets=True, auth="key")
        )
        clients: list[ParleyClient] = []
        tokens: list[str] = []
        for tenant, role in (
            ("acme", ACCESS_ROLE_ADMIN),
            ("acme", ACCESS_ROLE_READ),
            ("other", ACCESS_ROLE_ADMIN),
        ):
            ((_, bearer),) = await key_for(store.documents, tenant, {role})
            tokens.append(bearer.removeprefix("Bearer "))
            client = ParleyClient(served.server.address, token=tokens[-1], patience=0)
            clients.append(await stack.enter_async_context(client))
        admin, reader, other = clients
        yield Audited(store, admin, reader, other, served.server.address, tokens[0])


def list_told(entries: Sequence[AuditEntry]) -> list[tuple[str, str]]:
    """What each entry says was done, and how far it came."""
    return [
        (each.method, AuditOutcome.Name(each.outcome).removeprefix("AUDIT_OUTCOME_").lower())
        for each in entries
    ]


async def test_who_did_what_is_in_the_log_when_the_server_has_stopped(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        async with run_audited(tmp_path) as here:
            debate = await here.admin.create_debate(DebateSpec(question=QUESTION), request_id="first")
            async for _ in here.admin.watch(debate):
                pass
            with pytest.raises(ParleyError, match="has ended"):
                await here.admin.pause(debate)
            await here.reader.get_report(debate)
            async for _ in here.reader.read_log(debate):
                pass
            key = await here.admin.create_key("ci", [ACCESS_ROLE_READ])
            await here.admin.revoke_key(key.key.id)
            await until_at_rest(store, "acme", debate)
            await here.admin.delete(debate)
            async for _ in here.admin.list():
                pass
        entries = await Audited(store, here.admin, here.reader, here.other).entries()
    assert list_told(entries) == [
        ("CreateDebate", "started"),
        ("CreateDebate", "done"),
        ("WatchDebate", "done"),
        ("Intervene", "started"),
        ("Intervene", "failed"),
        ("StreamReport", "done"),
        ("ReadLog", "done"),
        ("CreateKey", "started"),
        ("CreateKey", "done"),
        ("RevokeKey", "started"),
        ("RevokeKey", "done"),
        ("DeleteDebate", "started"),
        ("DeleteDebate", "done"),
    ]
    started, created = entries[:2]
    assert (started.debate_id, created.debate_id, created.request_id) == ("", debate, "first")
    assert created.started_sequence == started.sequence
    assert all(each.peer == "127.0.0.1" and each.subject.startswith("test") for each in entries)
    assert {
        each.debate_id for each in entries if each.method in ("WatchDebate", "ReadLog", "DeleteDebate")
    } == {debate}
    steered = next(each for each in entries if each.reason)
    assert (steered.target, steered.reason) == ("pause", "DEBATE_ENDED")
    assert {each.target for each in entries if each.method == "RevokeKey"} == {f"key {key.key.id}"}
    assert [each.target for each in entries if each.method == "CreateKey"] == ["", f"key {key.key.id}"]
    stored = b"".join(each.SerializeToString() for each in entries)
    assert b"merger" not in stored
    assert key.text.split("_", 2)[2].encode() not in stored


async def test_refused_calls_are_entries_of_those_who_are_known_and_a_caller_fills_no_log(
    tmp_path: Path,
) -> None:
    async with run_audited(tmp_path) as here:
        for _ in range(40):
            with pytest.raises(ParleyError, match="role"):
                await here.reader.create_debate(DebateSpec(question=QUESTION))
        with pytest.raises(ParleyError, match="not found"):
            await here.other.get("deb-20260101-000000-aaaaaaaa")

        async def list_with_reason(client: ParleyClient, count: int) -> list[AuditEntry]:
            found = [each async for each in client.list_audit_entries() if each.reason]
            return found if len(found) >= count else []

        found = await until(partial(list_with_reason, here.admin, 30), "refused calls are in the log")
        (other,) = await until(partial(list_with_reason, here.other, 1), "what was not found is in the log")
    assert len(found) == 30
    assert {(each.outcome, each.reason) for each in found} == {(AUDIT_OUTCOME_REFUSED, "ROLE_MISSING")}
    assert (other.outcome, other.reason) == (AUDIT_OUTCOME_REFUSED, "DEBATE_NOT_FOUND")
    assert other.debate_id == "deb-20260101-000000-aaaaaaaa"


async def test_an_administrator_reads_the_log_of_its_tenant_and_nobody_else_does(tmp_path: Path) -> None:
    async with run_audited(tmp_path) as here:
        await here.admin.create_debate(DebateSpec(question=QUESTION))
        with pytest.raises(ParleyError, match="role"):
            await anext(here.reader.list_audit_entries())
        assert [each.method async for each in here.other.list_audit_entries()] == []
        found = [each async for each in here.admin.list_audit_entries(debate_id="", subject="")]
        assert found[-1].method == "CreateDebate"
        verified = await here.admin.verify_audit_log()
        assert verified.problem == ""
        assert verified.last >= 1


async def test_the_command_lists_who_did_what_once_for_each_act_and_says_whether_the_chain_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_audited(tmp_path) as here:
        monkeypatch.setenv("PARLEY_TOKEN", here.token)
        debate = await here.admin.create_debate(DebateSpec(question=QUESTION))

        async def is_told() -> bool:
            return list_told(await here.entries()) == [("CreateDebate", "started"), ("CreateDebate", "done")]

        await until(is_told, "how it ended is in the log")
        await list_audit_entries(here.address, AuditOptions(50, acts=("create-debate",)), as_json=False)
        shown = capsys.readouterr()
        heading, line = shown.out.splitlines()
        assert heading.split() == ["TIME", "SUBJECT", "ACT", "OUTCOME", "FROM", "ABOUT"]
        assert line.split("  ")[-1].strip() == debate
        assert "create-debate  done" in line
        assert "Older entries" not in shown.err
        assert "The chain is whole: entries 1 to " in shown.err
        await list_audit_entries(here.address, AuditOptions(50, debate_id=debate), as_json=True)
        found = json.loads(capsys.readouterr().out)
        assert [each["act"] for each in found["entries"]] == ["create_debate"]
        assert found["chain"]["problem"] == ""
        with pytest.raises(CommandError, match="'fly' is no act; known: none, create-debate, "):
            await list_audit_entries(here.address, AuditOptions(50, acts=("fly",)), as_json=False)
        end = shown.err.split()[-1].rstrip(".")
        capsys.readouterr()
        await list_audit_entries(here.address, AuditOptions(1, noted_hash=end), as_json=False)
        shown = capsys.readouterr()
        assert len(shown.out.splitlines()) == 2
        assert "Older entries are left out; --limit N shows more, --before TIME older ones." in shown.err
        with pytest.raises(CommandError, match="has no entry with the hash fff"):
            await list_audit_entries(here.address, AuditOptions(1, noted_hash="f" * 64), as_json=False)
        await here.store.log.delete("acme/audit/1")
        entry = AuditEntry(sequence=1, tenant="acme")
        await here.store.log.append("acme/audit/1", Record(1, "x", (entry.SerializeToString(),)))
        with pytest.raises(
            CommandError, match="the audit log was changed: entry 1 is not as it was recorded"
        ):
            await list_audit_entries(here.address, AuditOptions(50), as_json=False)


async def test_a_log_of_which_all_was_removed_is_whole_from_there_on(tmp_path: Path) -> None:
    async with run_audited(tmp_path) as here:
        await here.admin.create_debate(DebateSpec(question=QUESTION))
        logs, later = AuditLogs(here.store.log, here.store.documents), SystemClock().now() + timedelta(days=1)
        head = await logs.get_head("acme")
        assert head is not None
        kept = await logs.remove_before(head, later, later)
        verified = await here.admin.verify_audit_log()
        assert (verified.first, verified.problem) == (kept.first_sequence, "")

        async def goes_on() -> bool:
            return (await here.admin.verify_audit_log()).last >= kept.first_sequence

        await until(goes_on, "what was read is in the log")
        assert (await here.admin.verify_audit_log()).problem == ""


async def test_a_changed_entry_is_found_and_its_place_is_said(tmp_path: Path) -> None:
    async with run_audited(tmp_path) as here:
        for number in range(3):
            await here.admin.create_debate(DebateSpec(question=QUESTION), request_id=str(number))
        assert (await here.admin.verify_audit_log()).problem == ""
        (record, *_) = await here.store.log.read("acme/audit/1", 1, 1)
        await here.store.log.delete("acme/audit/1")
        forged = AuditEntry.FromString(record.entries[0])
        forged.subject = "somebody else"
        first = await here.store.log.read("acme/audit/1", 0, 1)
        assert not first
        await here.store.log.append("acme/audit/1", Record(1, "x", (forged.SerializeToString(),)))
        verified = await here.admin.verify_audit_log()
    assert verified.problem == "entry 1 is not as it was recorded, or does not follow from entry 0"
    assert verified.last == 0


async def test_a_watch_is_one_entry_for_each_stream_and_a_read_that_repeats_is_one_a_minute(
    tmp_path: Path,
) -> None:
    async with run_audited(tmp_path) as here:
        debate = await here.admin.create_debate(DebateSpec(question=QUESTION))
        for _ in range(2):
            async for _ in here.admin.watch(debate):
                pass
        for _ in range(5):
            await here.reader.get_summary(debate)
            await here.admin.get_summary(debate)
        store = here.store
        await wait_until_told(here, ("GetDebate", "done"), 2)
        entries = await Audited(store, here.admin, here.reader, here.other).entries()
    assert sum(each.act == AUDIT_ACT_WATCH_DEBATE for each in entries) == 2
    assert sum(each.method == "GetDebate" for each in entries) == 2


async def wait_until_told(here: Audited, what: tuple[str, str], count: int) -> None:
    async def is_told() -> bool:
        return list_told(await here.entries()).count(what) >= count

    await until(is_told, f"{what} is in the log {count} times")


class BrokenLog(PassingLog):
    """A log that takes nothing while it is `broken`."""

    broken = False

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        if self.broken:
            raise StoreUnavailableError("the store is away")
        await super().append(log, record, **beside)


@dataclass
class Served:
    """All RPCs of the orchestrator, each of which only notes that it was reached, before an audit log."""

    log: BrokenLog
    writer: AuditWriter
    logs: AuditLogs
    connected: grpc.aio.Channel
    reached: list[str]

    async def call(self, method: MethodDescriptor) -> None:
        request = RIGHT_REQUESTS[method.input_type.name][0]
        await stub_call(self.connected, method, (("parley-tenant", "acme"),), request)

    async def entries(self) -> list[AuditEntry]:
        await self.writer.flush()
        page = await list_page(self.logs, "acme", AuditFilter(), None, 500)
        return list(reversed(page.entries))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    reached: list[str] = []
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await store.documents.prepare(AUDIT_LOGS)
        log = BrokenLog(store.log)
        logs = AuditLogs(log, store.documents)
        writer = AuditWriter(logs, SystemClock())
        service = Service(SERVICE, partial(_register, reached), acts=AuditTrail(writer).record_call)
        async with (
            background_task("recording acts", writer.run()),
            start_server([service], ServerSettings(grace_seconds=0)) as running,
            channel(running.address) as connected,
        ):
            yield Served(log, writer, logs, connected, reached)


def _register(reached: list[str], server: grpc.aio.Server) -> None:
    handlers = {each.name: _handler(each, reached) for each in OUTER}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))


def _handler(method: MethodDescriptor, reached: list[str]) -> Any:
    answer = message_factory.GetMessageClass(method.output_type)()

    async def answer_one(_request: object, _context: object) -> Any:
        reached.append(method.name)
        return answer

    async def stream(_request: object, _context: object) -> AsyncIterator[Any]:
        reached.append(method.name)
        yield answer
        yield answer

    kind = "unary_stream" if method.server_streaming else "unary_unary"
    return getattr(grpc, f"{kind}_rpc_method_handler")(
        stream if method.server_streaming else answer_one,
        request_deserializer=message_factory.GetMessageClass(method.input_type).FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def act_of(method: MethodDescriptor) -> AuditAct.ValueType:
    found: AuditAct.ValueType = method.GetOptions().Extensions[act]
    return found


def is_change(method: MethodDescriptor) -> bool:
    return bool(AuditAct.DESCRIPTOR.values_by_number[act_of(method)].GetOptions().Extensions[changes])


async def test_every_rpc_leaves_the_entries_that_the_contract_says(served: Served) -> None:
    for method in OUTER:
        await served.call(method)
    found: dict[str, list[tuple[int, int]]] = {}
    for each in await served.entries():
        found.setdefault(each.method, []).append((each.act, each.outcome))
    assert found == {
        each.name: [
            *([(act_of(each), AUDIT_OUTCOME_STARTED)] if is_change(each) else []),
            (act_of(each), AUDIT_OUTCOME_DONE),
        ]
        for each in OUTER
        if act_of(each) != AUDIT_ACT_NONE
    }


@pytest.mark.parametrize("method", [each for each in OUTER if is_change(each)], ids=lambda each: each.name)
async def test_nothing_is_changed_that_cannot_be_recorded(served: Served, method: MethodDescriptor) -> None:
    served.log.broken = True
    error = await catch_error(served.call(method))
    assert error.reason == "STORE_UNAVAILABLE"
    assert served.reached == []
    served.log.broken = False
    assert list_told(await served.entries()) == [(method.name, "started"), (method.name, "failed")]


async def test_what_only_reads_waits_for_no_audit_log(served: Served) -> None:
    served.log.broken = True
    method = next(each for each in OUTER if each.name == "GetDebate")
    await served.call(method)
    assert served.reached == ["GetDebate"]
    served.log.broken = False
    assert list_told(await served.entries()) == [("GetDebate", "done")]
