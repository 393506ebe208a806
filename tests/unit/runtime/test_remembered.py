"""What is remembered for a while."""

from parley.runtime.remembered import Remembered


def test_a_value_is_good_until_its_own_time() -> None:
    remembered = Remembered[str, str | None]()
    remembered.keep("one", "value", until=10.0)
    remembered.keep("none", None, until=20.0)

    assert remembered.get("one", now=9.9) == ("value",)
    assert remembered.get("one", now=10.0) is None
    assert remembered.get("none", now=10.0) == (None,)
    assert remembered.get("other", now=0.0) is None


def test_the_oldest_is_forgotten_when_somebody_makes_keys_up() -> None:
    remembered = Remembered[int, int]()
    remembered.keep(-1, 0, until=1.0)
    remembered.keep(-2, 0, until=1.0)
    remembered.keep(-1, 0, until=1.0)
    for each in range(4095):
        remembered.keep(each, each, until=1.0)

    assert remembered.get(-2, now=0.0) is None
    assert remembered.get(-1, now=0.0) == (0,)
    assert remembered.get(4094, now=0.0) == (4094,)
