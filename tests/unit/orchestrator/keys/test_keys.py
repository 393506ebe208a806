from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from parley.orchestrator.keys.authenticator import CACHE_SECONDS, ApiKeyAuthenticator
from parley.orchestrator.keys.store import KEYS, KeyStore
from parley.orchestrator.keys.uses import KeyUses
from parley.runtime.errors import ParleyError
from parley.runtime.identity.guard import Credentials, RefusedCallerError
from parley.runtime.identity.identity import Identity
from parley.storage.opening import open_store
from parley.storage.ports import Documents, StoreUnavailableError
from parley.v1.access_pb2 import ACCESS_ROLE_READ
from tests.support.manual_clock import ManualClock

READ = frozenset({ACCESS_ROLE_READ})


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[Documents]:
    async with open_store(f"sqlite:///{tmp_path}", "keys") as store:
        await store.documents.prepare(KEYS)
        yield store.documents


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def keys(documents: Documents) -> KeyStore:
    return KeyStore(documents)


async def identify(authenticator: ApiKeyAuthenticator, text: str) -> Identity | None:
    return await authenticator.identify(Credentials(text, "", "", dict))


async def test_a_key_is_its_tenants_and_only_its_hash_is_kept(
    keys: KeyStore, documents: Documents, clock: ManualClock
) -> None:
    key, text = await keys.add("acme", "ci", READ, clock.now())
    assert await identify(ApiKeyAuthenticator(keys, clock, KeyUses(keys, clock)), text) == Identity(
        "acme", f"ci (key {key.id})", READ
    )
    stored = await documents.get(KEYS, key.id)
    secret = text.split("_", 2)[2]
    assert stored is not None
    assert secret not in str(stored.fields) + str(key.visible_fields())
    assert (
        await identify(ApiKeyAuthenticator(keys, clock, KeyUses(keys, clock)), f"parley_{key.id}_{'A' * 43}")
        is None
    )
    assert await identify(ApiKeyAuthenticator(keys, clock, KeyUses(keys, clock)), text[:-1]) is None


async def test_a_key_that_was_revoked_lets_nobody_in_some_seconds_later(
    keys: KeyStore, clock: ManualClock
) -> None:
    key, text = await keys.add("acme", "ci", READ, clock.now())
    authenticator = ApiKeyAuthenticator(keys, clock, KeyUses(keys, clock))
    assert await identify(authenticator, text) is not None
    assert await keys.revoke(key.id, clock.now())
    assert not await keys.revoke(key.id, clock.now())
    with pytest.raises(ParleyError, match="not known here, or was revoked"):
        await identify(ApiKeyAuthenticator(keys, clock, KeyUses(keys, clock)), text)
    clock.advance(CACHE_SECONDS)
    with pytest.raises(RefusedCallerError) as refused:
        await identify(authenticator, text)
    assert refused.value.reason == "BAD_CREDENTIALS"
    assert refused.value.identity == Identity("acme", f"ci (key {key.id})", READ)
    assert await identify(authenticator, f"parley_{key.id}_{'A' * 43}") is None, "only its holder is named"
    assert [each.revoked != "" for each in await keys.list_all("acme")] == [True]


async def test_a_key_that_is_known_needs_no_store_and_a_guess_costs_it_one_look(
    keys: KeyStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = await keys.add("acme", "ci", READ, clock.now())
    authenticator = ApiKeyAuthenticator(keys, clock, KeyUses(keys, clock))
    guess = f"parley_000000000000_{'A' * 43}"
    assert await identify(authenticator, text) is not None
    assert await identify(authenticator, guess) is None

    async def fail_as_away(_: str) -> None:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(keys, "get", fail_as_away)
    assert await identify(authenticator, text) is not None
    assert await identify(authenticator, guess) is None
    with pytest.raises(ParleyError, match="the store is unavailable"):
        await identify(authenticator, f"parley_111111111111_{'A' * 43}")


async def test_a_list_is_of_one_tenant_or_of_all_oldest_first(keys: KeyStore, clock: ManualClock) -> None:
    for tenant in ("b", "a", "b"):
        await keys.add(tenant, "x", READ, clock.now())
        clock.advance(1)
    assert [each.tenant for each in await keys.list_all()] == ["b", "a", "b"]
    assert [each.tenant for each in await keys.list_all("a")] == ["a"]


async def test_a_key_that_cannot_be_read_ends_no_page(keys: KeyStore, documents: Documents) -> None:
    clock = ManualClock()
    made = []
    for name in ("one", "two", "three"):
        made.append((await keys.add("acme", name, READ, clock.now()))[0])
        clock.advance(1)
    await documents.update(KEYS, made[1].id, {"roles": "all"})
    first = await keys.list_page("acme", "", 2)
    assert [each.name for each in first] == ["one", "three"]
    assert [each.name for each in await keys.list_page("acme", first[0].created, 2)] == ["three"]


async def test_a_key_that_expires_is_refused_from_then_on_and_says_so(
    keys: KeyStore, clock: ManualClock
) -> None:
    expires = clock.now() + timedelta(seconds=60)
    key, text = await keys.add("acme", "ci", READ, clock.now(), expires=expires)
    authenticator = ApiKeyAuthenticator(keys, clock, KeyUses(keys, clock))
    assert await identify(authenticator, text) is not None
    clock.advance(60)
    with pytest.raises(RefusedCallerError) as refused:
        await identify(authenticator, text)
    assert refused.value.reason == "EXPIRED_CREDENTIALS"
    assert refused.value.identity.subject == f"ci (key {key.id})"


async def test_the_last_use_of_a_key_is_stored_once_a_minute_and_not_by_the_call(
    keys: KeyStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    store_use = keys.set_last_use

    async def set_last_use(key_id: str, used: datetime) -> None:
        written.append(key_id)
        await store_use(key_id, used)

    monkeypatch.setattr(keys, "set_last_use", set_last_use)
    key, text = await keys.add("acme", "ci", READ, clock.now())
    uses = KeyUses(keys, clock)
    authenticator = ApiKeyAuthenticator(keys, clock, uses)
    assert await identify(authenticator, f"parley_{key.id}_{'A' * 43}") is None
    await uses.store()
    for _ in range(5):
        assert await identify(authenticator, text) is not None
        clock.advance(1)
    assert not written
    await uses.store()
    await uses.store()
    assert written == [key.id]
    (stored,) = await keys.list_all("acme")
    assert datetime.fromisoformat(stored.last_used) == clock.now() - timedelta(seconds=1)


async def test_uses_that_cannot_be_stored_are_stored_later(
    keys: KeyStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, text = await keys.add("acme", "ci", READ, clock.now())
    uses = KeyUses(keys, clock)
    assert await identify(ApiKeyAuthenticator(keys, clock, uses), text) is not None

    async def fail_as_away(*_: object) -> None:
        raise StoreUnavailableError("away")

    with monkeypatch.context() as patched:
        patched.setattr(keys, "set_last_use", fail_as_away)
        with pytest.raises(StoreUnavailableError):
            await uses.store()
    await uses.store()
    found = await keys.get(key.id)
    assert found is not None
    assert found.last_used


async def test_a_key_from_before_these_fields_is_read(keys: KeyStore, documents: Documents) -> None:
    fields = {
        "tenant": "acme",
        "name": "old",
        "roles": ["read"],
        "hash": "0",
        "made": "2026-01-01T00:00:00.000000+00:00/0",
        "revoked": "",
    }
    await documents.insert(KEYS, "0" * 12, fields)
    (old,) = await keys.list_all("acme")
    assert (old.creator, old.last_used, old.expires) == ("", "", "")
    await keys.set_last_use(old.id, ManualClock().now())
    assert (await keys.list_all("acme"))[0].last_used


async def test_a_key_with_a_time_that_cannot_be_read_is_passed_over(
    keys: KeyStore, documents: Documents
) -> None:
    for number, made in enumerate(("2026-13-45/0", "2026-01-01T00:00:00.000000+00:00/1")):
        fields = {"tenant": "acme", "name": "n", "roles": ["read"], "hash": "0", "made": made, "revoked": ""}
        await documents.insert(KEYS, f"{number}" * 12, fields)
    assert [each.id for each in await keys.list_all("acme")] == ["1" * 12]
