"""What was found out and holds for a while."""

from collections import OrderedDict
from typing import Final, Generic, TypeVar

__all__ = ["ExpiringCache"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_MAX_VALUES: Final = 4096
"""So that whoever makes keys up fills no memory."""


class ExpiringCache(Generic[_Key, _Value]):
    """Values that are each good until a time of their own, the 4,096 newest of them."""

    def __init__(self) -> None:
        self._values: OrderedDict[_Key, tuple[float, _Value]] = OrderedDict()

    def get(self, key: _Key, now: float) -> tuple[_Value] | None:
        """Return what is remembered and still good at `now`, in a tuple as None may be what is remembered."""
        found = self._values.get(key)
        return (found[1],) if found is not None and now < found[0] else None

    def put(self, key: _Key, value: _Value, until: float) -> None:
        """Remember a value until a time on the clock that `get` is asked by."""
        self._values[key] = until, value
        self._values.move_to_end(key)
        if len(self._values) > _MAX_VALUES:
            self._values.popitem(last=False)
