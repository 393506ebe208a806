"""A cache whose values expire."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_MOST: Final = 4096
"""A limit, so that invented keys do not fill the memory."""


class ExpiringCache(Generic[_Key, _Value]):
    """Values that each expire at a time of their own; the newest are kept, 4,096 unless fewer are to be."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._values: OrderedDict[_Key, tuple[float, _Value]] = OrderedDict()

    def get(self, key: _Key, now: float) -> tuple[_Value] | None:
        """Return the value in a tuple if it has not expired at `now`, else None. The value itself may be None."""
        found = self._values.get(key)
        return (found[1],) if found is not None and now < found[0] else None

    def get_many(self, keys: Iterable[_Key], now: float) -> dict[_Key, _Value]:
        """Return the values of those of the keys that have one which has not expired at `now`."""
        return {key: found[0] for key in keys if (found := self.get(key, now))}

    def put(self, key: _Key, value: _Value, until: float) -> None:
        """Store a value until `until`, on the clock of `get`'s `now`."""
        self._values[key] = until, value
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)

    def remove(self, key: _Key) -> None:
        """Drop a value, if there is one."""
        self._values.pop(key, None)
