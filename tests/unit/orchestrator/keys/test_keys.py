from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.orchestrator.keys.authenticator import CACHE_SECONDS, ApiKeyAuthenticator
from parley.orchestrator.keys.store import KEYS, KeyStore
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
    assert await identify(ApiKeyAuthenticator(keys, clock), text) == Identity(
        "acme", f"ci (key {key.id})", READ
    )
    stored = await documents.get(KEYS, key.id)
    secret = text.split("_", 2)[2]
    assert stored is not None
    assert secret not in str(stored.fields) + str(key.visible_fields())
    assert await identify(ApiKeyAuthenticator(keys, clock), f"parley_{key.id}_{'A' * 43}") is None
    assert await identify(ApiKeyAuthenticator(keys, clock), text[:-1]) is None


async def test_a_key_that_was_revoked_lets_nobody_in_some_seconds_later(
    keys: KeyStore, clock: ManualClock
) -> None:
    key, text = await keys.add("acme", "ci", READ, clock.now())
    authenticator = ApiKeyAuthenticator(keys, clock)
    assert await identify(authenticator, text) is not None
    assert await keys.revoke(key.id, clock.now())
    assert not await keys.revoke(key.id, clock.now())
    with pytest.raises(ParleyError, match="not known here, or was revoked"):
        await identify(ApiKeyAuthenticator(keys, clock), text)
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
    authenticator = ApiKeyAuthenticator(keys, clock)
    guess = f"parley_000000000000_{'A' * 43}"
    assert await identify(authenticator, text) is not None
    assert await identify(authenticator, guess) is None

    async def away(_: str) -> None:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(keys, "get", away)
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
