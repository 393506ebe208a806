"""What people say of debates, on every store: numbered without gap, once a request, the latest word first."""

import asyncio

import pytest
from msgspec.structs import replace

from parley.orchestrator.log.feedback import FEEDBACK, Feedback, FeedbackReusedError, FeedbackStore
from parley.storage.opening import Store

ID, OTHER = "deb-20260101-000000-aaaaaaaa", "deb-20260101-000000-bbbbbbbb"


def word(request_id: str, value: int = 1, debate: str = ID, tenant: str = "default") -> Feedback:
    return Feedback(
        tenant=tenant,
        debate=debate,
        request_id=request_id,
        value=value,
        message="so",
        given_at=f"2026-01-01T00:00:00.000000+00:00/{tenant}/{debate}/{request_id}",
        agents=("ada", "bo"),
        domain="general",
    )


@pytest.fixture
async def words(store: Store) -> FeedbackStore:
    await store.documents.prepare(FEEDBACK)
    return FeedbackStore(store.documents)


async def test_the_latest_word_counts_and_an_earlier_request_again_changes_nothing(
    words: FeedbackStore,
) -> None:
    assert await words.get_latest("default", ID) is None
    first, existed = await words.put(word("a"))
    assert (first, existed) == (replace(word("a"), number=1), False)
    await words.put(word("b", -1))
    assert await words.put(word("a")) == (first, True)
    latest = await words.get_latest("default", ID)
    assert latest is not None
    assert (latest.request_id, latest.value, latest.number) == ("b", -1, 2)
    assert await words.get_latest("default", OTHER) is None
    assert await words.get_latest("acme", ID) is None


async def test_a_request_id_stands_for_one_word(words: FeedbackStore) -> None:
    await words.put(word("a"))
    with pytest.raises(FeedbackReusedError):
        await words.put(word("a", -1))


async def test_words_that_come_at_once_are_numbered_each(words: FeedbackStore) -> None:
    requests = [f"r{number}" for number in range(6)]
    put = await asyncio.gather(*(words.put(word(each)) for each in (*requests, *requests)))
    assert sorted({each.number for each, _ in put}) == [1, 2, 3, 4, 5, 6]
    assert sum(existed for _, existed in put) == len(requests)


async def test_words_are_unreported_until_that_is_noted(words: FeedbackStore) -> None:
    first, _ = await words.put(word("a"))
    second, _ = await words.put(word("b", debate=OTHER))
    assert list(await words.list_unreported()) == [first, second]
    rated = await words.mark_rated(first)
    assert rated == replace(first, is_rated=True)
    assert list(await words.list_unreported()) == [rated, second]
    assert await words.mark_reported(rated) == replace(first, is_reported=True, is_rated=True)
    assert list(await words.list_unreported()) == [second]
    assert await words.get(first.key) == replace(first, is_reported=True, is_rated=True)
