"""Text of steps in flight that several listeners share."""

from parley.orchestrator.watch.live_text import MAX_WAITING_CHARACTERS, LiveText, TextListener
from parley.v1.orchestrator_pb2 import StepDelta


def delta(key: str = "a", offset: int = 0, text: str = "text") -> StepDelta:
    return StepDelta(key=key, step_attempt=1, route_attempt=1, offset=offset, text=text)


def test_the_text_that_waits_for_a_slow_reader_is_bounded_in_characters_too() -> None:
    text = LiveText()
    slow = TextListener(text)
    text.listeners.add(slow)
    long = "x" * (MAX_WAITING_CHARACTERS // 4)
    for number in range(10):
        text.append(delta(str(number), text=long))
    assert [each.key for each in slow.take()] == ["6", "7", "8", "9"]
    for number in range(4):
        text.append(delta(str(number), text=long))
    text.append(delta("last", text=long * 8))
    assert [each.key for each in slow.take()] == ["last"]


def test_text_is_joined_for_each_from_its_own_place_and_is_kept_until_all_have_it() -> None:
    text = LiveText()
    fast, slow = TextListener(text), TextListener(text)
    text.listeners |= {fast, slow}
    text.append(delta())
    assert fast.take() == (delta(),)
    text.append(delta(offset=4))
    late = TextListener(text)
    assert slow.take() == (delta(text="texttext"),)
    assert fast.take() == (delta(offset=4),)
    assert late.take() == ()
    text.append(delta(offset=8))
    assert text.pieces_after(0) == (delta(offset=8),), "what all have taken is dropped"
