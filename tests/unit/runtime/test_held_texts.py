import gc
import hashlib

from parley.runtime.held_texts import find_text, hold_text


def test_a_text_is_held_once() -> None:
    assert hold_text("otters " * 1000) is not hold_text("seals " * 1000)
    first = hold_text("otters " * 1000)
    assert hold_text("otters " * 1000) is first
    assert find_text(first.digest) is first
    assert first.text == "otters " * 1000


def test_a_text_is_dropped_with_its_last_reference() -> None:
    digest = hold_text("walrus").digest
    gc.collect()
    assert find_text(digest) is None


def test_its_digest_is_that_of_the_contract() -> None:
    text = "№ 7 — 分散"
    assert hold_text(text).digest == hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def test_what_is_counted_is_counted_once() -> None:
    calls: list[str] = []

    def count(text: str) -> int:
        calls.append(text)
        return len(text)

    held = hold_text("four")
    assert (held.count(count), held.count(count), held.count(len)) == (4, 4, 4)
    assert calls == ["four"]
