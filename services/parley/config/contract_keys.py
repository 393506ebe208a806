"""Keys of the configuration file that follow from the contract: a setting is a key, and its range and help are the key's."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from msgspec import Struct, structs

from parley.runtime.contract_settings import enum_labels, fields_of, is_map, setting_of
from parley.v1.setting_pb2 import Setting

_SECOND: Final = 10**9  # nanoseconds
INTEGERS: Final = {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64}


class Key(Struct, frozen=True):
    """A key of the configuration file.

    Attributes:
        path: The field that it sets, and the messages around that, from the outside.
        required: Whether an entry must have it.
    """

    name: str
    path: tuple[FieldDescriptor, ...]
    setting: Setting
    required: bool

    @property
    def field(self) -> FieldDescriptor:
        """The field that it sets."""
        return self.path[-1]


@cache
def keys_of(message: Any) -> tuple[Key, ...]:
    """Return the keys of a message's descriptor; those of a message inside that has no key stand with its own."""
    keys: list[Key] = []
    for field in fields_of(message):
        said = setting_of(field)
        if said is None or said.not_in_file:
            continue
        if field.message_type is None or field.is_repeated or said.nested or is_duration(field):
            keys.append(Key(said.key or field.name, (field,), said, said.required))
            continue
        for each in keys_of(field.message_type):
            required = each.required or (said.required and each.name == field.name)
            keys.append(structs.replace(each, path=(field, *each.path), required=required))
    return tuple(keys)


def set_keys(message: Message, entry: object, but: Collection[str] = ()) -> None:
    """Set the fields that an entry's keys say; leave the others unset, and those inside of the fields named in `but`."""
    for key in keys_of(message.DESCRIPTOR):
        value = getattr(entry, key.name, None)
        if key.path[0].name in but or value is None or (value is False and not key.field.has_presence):
            continue
        if isinstance(value, tuple | Mapping) and not value:
            continue
        _set_field(_message_around(message, key), key, value)


def _message_around(message: Message, key: Key) -> Message:
    for each in key.path[:-1]:
        message = getattr(message, each.name)
    return message


def _set_field(message: Message, key: Key, value: Any) -> None:
    field, name = key.field, key.field.name
    if field.is_repeated:
        _set_collection(getattr(message, name), key, value)
    elif field.message_type is None:
        setattr(message, name, _in_contract(field, key.setting, value))
    elif is_duration(field):
        getattr(message, name).FromNanoseconds(round(value * _SECOND))
    elif value is False:
        message.ClearField(name)
    else:
        getattr(message, name).SetInParent()
        if value is not True:
            set_keys(getattr(message, name), value)


def _set_collection(collection: Any, key: Key, value: Any) -> None:
    if key.setting.mapping:
        for first, second in value.items():
            _add_pair(collection.add(), first, second)
    elif is_map(key.field):
        collection.update(value)
    elif key.field.message_type is not None:
        for each in value:
            set_keys(collection.add(), each)
    else:
        collection.extend(_in_contract(key.field, key.setting, each) for each in value)


def _add_pair(message: Message, first: str, second: Collection[str]) -> None:
    key, values = fields_of(message.DESCRIPTOR)
    setattr(message, key.name, first)
    assert values.enum_type is not None
    getattr(message, values.name).extend(enum_labels(values.enum_type)[each] for each in second)


def _in_contract(field: FieldDescriptor, said: Setting, value: Any) -> Any:
    if field.enum_type is not None:
        return enum_labels(field.enum_type)[value]
    return max(round(value * said.scale), 1) if said.scale else value


def set_word(message: Message, key: Key, word: str) -> None:
    """Set the field of a key as a word of the command line has it: `on`, `off`, a number or a value of an enum."""
    field, around = key.field, _message_around(message, key)
    if word in {"on", "off"}:
        if field.message_type is not None and word == "on":
            getattr(around, field.name).SetInParent()  # with what the file says of it
        else:
            _set_field(around, key, word == "on")
        return
    _set_field(around, key, int(word) if field.cpp_type in INTEGERS else word)


def find_key(message: Any, path: str) -> str | None:
    """Return the key that sets a field, such as `arena.topologies[1].hub` for `arena.topologies[1].topology.hub_agent_id`.

    Of what is inside of a key, without one of its own, return the path as it is. Return None if no key is around it.
    """
    parts = path.split(".")
    names = [each.partition("[")[0] for each in parts]
    for key in keys_of(message):
        length = len(key.path)
        if names[:length] != [each.name for each in key.path]:
            continue
        index, inner = parts[length - 1][len(names[length - 1]) :], ".".join(parts[length:])
        here = f"{key.name}{index}"
        if not inner:
            return here
        is_plain = key.setting.mapping or key.field.message_type is None
        inside = None if is_plain else find_key(key.field.message_type, inner)
        return f"{here}.{inside or inner}"
    around = [each for each in keys_of(message) if [step.name for step in each.path][: len(names)] == names]
    return next((each.name for each in around if each.name == names[-1]), None)


def is_duration(field: FieldDescriptor) -> bool:
    """Return whether a field is a time, which a key has in seconds."""
    return field.message_type is not None and field.message_type.full_name == "google.protobuf.Duration"
