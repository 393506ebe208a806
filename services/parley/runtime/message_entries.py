"""How many entries the lists of a request may have: each is looked at on the loop, which belongs to everyone."""

from typing import Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

__all__ = ["MAX_ENTRIES", "crowded_field"]

MAX_ENTRIES: Final = 5000
_LOOKED_AT: Final = frozenset(
    {FieldDescriptor.CPPTYPE_MESSAGE, FieldDescriptor.CPPTYPE_STRING, FieldDescriptor.CPPTYPE_ENUM}
)
"""Numbers come in thousands, as vectors, and nobody looks at each of them."""


def crowded_field(message: Message) -> str | None:
    """Return the field with which texts, messages and names in the lists of `message` become more than MAX_ENTRIES, if they do."""
    left, entries = [message], 0
    while left:
        for field, value in left.pop().ListFields():
            if field.cpp_type not in _LOOKED_AT:
                continue
            is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
            if not field.is_repeated:
                left += [value] if is_message else []
                continue
            entries += len(value)
            if entries > MAX_ENTRIES:
                return str(field.name)
            if is_message:
                values = value.values() if hasattr(value, "values") else value
                left += [each for each in values if isinstance(each, Message)]
    return None
