import gc

from parley.gateway.prompt.document_cache import DocumentCache
from parley.runtime.held_texts import hold_text

_BYTES = 10_000


def _text(letter: str) -> str:
    return letter * 4_000


def test_a_document_that_was_kept_is_found() -> None:
    cache = DocumentCache(_BYTES)
    digest = hold_text("otters").digest
    assert cache.find(digest) is None
    cache.keep(hold_text("otters"))
    found = cache.find(digest)
    assert found is not None
    assert found.text == "otters"


def test_the_documents_that_were_used_the_longest_ago_are_dropped() -> None:
    cache = DocumentCache(_BYTES)
    digests = [hold_text(_text(each)).digest for each in "abc"]
    for letter in "ab":
        cache.keep(hold_text(_text(letter)))
    assert cache.find(digests[0]) is not None
    cache.keep(hold_text(_text("c")))
    gc.collect()
    assert cache.kept_bytes <= _BYTES
    assert [cache.find(each) is not None for each in digests] == [True, False, True]


def test_a_document_that_a_call_uses_is_found_though_there_is_no_room_for_it() -> None:
    cache = DocumentCache(0)
    used = hold_text("otters")
    cache.keep(used)
    assert cache.kept_bytes == 0
    assert cache.find(used.digest) is used
    digest = used.digest
    del used
    gc.collect()
    assert cache.find(digest) is None


def test_many_small_documents_are_bounded_too() -> None:
    cache = DocumentCache(_BYTES)
    for number in range(1000):
        cache.keep(hold_text(f"{number}"))
    gc.collect()
    kept = [number for number in range(1000) if cache.find(hold_text(f"{number}").digest) is not None]
    assert len(kept) < 60
