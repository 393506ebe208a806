"""What is remembered for a while."""

from parley.runtime.expiring_cache import ExpiringCache


def test_a_value_is_good_until_its_own_time() -> None:
    remembered = ExpiringCache[str, str | None]()
    remembered.put("one", "value", until=10.0)
    remembered.put("none", None, until=20.0)

    assert remembered.get("one", now=9.9) == ("value",)
    assert remembered.get("one", now=10.0) is None
    assert remembered.get("none", now=10.0) == (None,)
    assert remembered.get("other", now=0.0) is None
    assert remembered.get_many(["other", "none", "one"], now=10.0) == {"none": None}


def test_the_oldest_is_forgotten_when_somebody_makes_keys_up() -> None:
    remembered = ExpiringCache[int, int]()
    remembered.put(-1, 0, until=1.0)
    remembered.put(-2, 0, until=1.0)
    remembered.put(-1, 0, until=1.0)
    for each in range(4095):
        remembered.put(each, each, until=1.0)

    assert remembered.get(-2, now=0.0) is None
    assert remembered.get(-1, now=0.0) == (0,)
    assert remembered.get(4094, now=0.0) == (4094,)
