"""Keys that are created and revoked at the store itself, without a server, are in the audit log of their tenant."""

from datetime import UTC, datetime
from pathlib import Path

from parley.orchestrator.audit.key_store import open_keys
from parley.orchestrator.audit.parts import AuditLogs
from parley.orchestrator.audit.reading import AuditFilter, list_page
from parley.storage.encryption.wrapping import NO_KEYS
from parley.storage.opening import open_store
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN
from parley.v1.audit_pb2 import AUDIT_OUTCOME_DONE, AUDIT_OUTCOME_STARTED

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


async def test_who_creates_and_revokes_a_key_at_the_store_is_recorded_first(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}"
    async with open_keys(url, NO_KEYS) as keys:
        key, text = await keys.add("acme", "ci", frozenset({ACCESS_ROLE_ADMIN}), NOW)
        assert await keys.revoke(key.id, NOW)
        assert not await keys.revoke("0" * 12, NOW)
    async with open_store(url, "orchestrator") as store:
        page = await list_page(AuditLogs(store.log, store.documents), "acme", AuditFilter(), None, 50)
    entries = list(reversed(page.entries))
    assert [(each.method, each.outcome, each.target) for each in entries] == [
        ("keys add", AUDIT_OUTCOME_STARTED, f"key {key.id}"),
        ("keys add", AUDIT_OUTCOME_DONE, f"key {key.id}"),
        ("keys revoke", AUDIT_OUTCOME_STARTED, f"key {key.id}"),
        ("keys revoke", AUDIT_OUTCOME_DONE, f"key {key.id}"),
    ]
    assert [each.started_sequence for each in entries] == [0, 1, 0, 3]
    assert {each.subject for each in entries} == {key.creator}
    assert key.creator.endswith("at the store")
    assert text.encode() not in b"".join(each.SerializeToString() for each in entries)
