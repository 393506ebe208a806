"""Keys of the configuration file that follow from the contract: a setting is a key, and its range and help are the key's."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from parley.runtime.contract_settings import enum_labels, fields_of, is_map, setting_of
from parley.v1.setting_pb2 import Setting

ONE_LINE: Final = r"^[^\x00-\x1f\x7f]+$"
_Entry = TypeVar("_Entry")
_ANNOTATED: Final[Any] = Annotated
"""For types that are made while the program runs."""
_SECOND: Final = 10**9  # nanoseconds
_INTEGERS: Final = {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64}
_ENTRIES: Final[dict[str, type[Any]]] = {}
"""The class of the entries of each message, by the message's name."""


@dataclass(frozen=True, slots=True)
class Key:
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
        if field.message_type is None or field.is_repeated or said.nested or _is_duration(field):
            keys.append(Key(said.key or field.name, (field,), said, said.required))
            continue
        for each in keys_of(field.message_type):
            required = each.required or (said.required and each.name == field.name)
            keys.append(dataclasses.replace(each, path=(field, *each.path), required=required))
    return tuple(keys)


def with_keys_of(
    message: Any, checks: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})
) -> Callable[[type[_Entry]], type[_Entry]]:
    """Return a decorator that adds the keys of a message's descriptor to the dataclass of an entry.

    `checks` return the value of a key, or raise PydanticCustomError, if more than its range has to be checked.
    """

    def add_keys(entry: type[_Entry]) -> type[_Entry]:
        fields = [_dataclass_field(each, checks.get(each.name)) for each in keys_of(message)]
        namespace = {"__doc__": entry.__doc__, "__module__": entry.__module__}
        made = dataclasses.make_dataclass(
            entry.__name__, fields, bases=(entry,), namespace=namespace, frozen=True, kw_only=True
        )
        _ENTRIES[message.full_name] = made
        return made

    return add_keys


def entry_of(message: Any, help_text: str = "") -> type[Any]:
    """Return the class of the entries of a message's descriptor: one that was declared, or else one that is made of its settings."""
    if message.full_name not in _ENTRIES:
        name = f"{message.name.removesuffix('Settings')}Entry"
        entry = dataclasses.make_dataclass(name, (), namespace={"__doc__": help_text}, frozen=True)
        with_keys_of(message)(entry)
    return _ENTRIES[message.full_name]


def _dataclass_field(key: Key, check: Callable[[Any], Any] | None) -> Any:
    """Return a key as `make_dataclass` takes it: its name, its type, and its default if it has one."""
    help_text = key.setting.help if key.required else _help_with_default(key.field, key.setting)
    kind = _ANNOTATED[_type_of(key), Field(description=help_text)]
    if check is not None:
        kind = _ANNOTATED[kind, AfterValidator(check)]
    if key.required:
        return key.name, kind
    return key.name, kind, _unset_value(key)


def _type_of(key: Key) -> Any:
    field, said = key.field, key.setting
    if field.is_repeated:
        return _collection(field, said)
    if field.message_type is not None and not _is_duration(field):
        entry = entry_of(field.message_type, said.help)
        return bool | entry if said.switch else entry | None
    if said.zero:
        return _number_or_word(field, said)
    kind = _scalar(field, said)
    return kind if key.required or _unset_value(key) is False else kind | None


def _collection(field: FieldDescriptor, said: Setting) -> Any:
    if said.mapping:
        _, values = fields_of(field.message_type)
        return dict[str, tuple[_scalar(values, said), ...]]  # type: ignore[misc]
    if is_map(field):
        _, values = fields_of(field.message_type)
        names = Annotated[str, Field(pattern=ONE_LINE, max_length=said.max_name_characters)]
        return _ANNOTATED[dict[names, _scalar(values, said)], Field(max_length=said.max_items)]  # type: ignore[misc]
    inner = entry_of(field.message_type, said.help) if field.message_type else _scalar(field, said)
    sized = Field(min_length=said.min_items or None, max_length=said.max_items or None)
    return _ANNOTATED[tuple.__class_getitem__((inner, ...)), sized]


def _unset_value(key: Key) -> Any:
    """Return what stands for a key that is not written."""
    field, said = key.field, key.setting
    if said.mapping or is_map(field):
        return dataclasses.field(default_factory=dict)
    if field.is_repeated:
        return ()
    is_flag = field.cpp_type == FieldDescriptor.CPPTYPE_BOOL and not field.has_presence
    return False if said.switch or is_flag else None


def _help_with_default(field: FieldDescriptor, said: Setting) -> str:
    default = _default_words(field, said)
    return " ".join(filter(None, (said.help, f"Default: {default}." if default else "")))


def _default_words(field: FieldDescriptor, said: Setting) -> str:
    is_word = field.enum_type is not None or field.cpp_type == FieldDescriptor.CPPTYPE_STRING
    default = f"`{said.default}`" if said.default and is_word else said.default
    return "; ".join(filter(None, (default, said.otherwise)))


def _scalar(field: FieldDescriptor, said: Setting) -> Any:
    """Return the type of one value, with its range."""
    if field.enum_type is not None:
        return Literal[tuple(enum_labels(field.enum_type))]
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return bool
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        limits: dict[str, Any] = {
            "pattern": ONE_LINE if said.one_line else None,
            "max_length": said.max_characters or None,
        }
        return Annotated[str, Field(**limits)] if any(limits.values()) else str
    is_whole = field.cpp_type in _INTEGERS and not said.scale
    return Annotated[int if is_whole else float, Field(**_bounds(said))]


def _bounds(said: Setting) -> dict[str, Any]:
    scale = said.scale or 1
    bounds: dict[str, float] = {"le": said.max / scale}
    bounds["gt" if said.HasField("above") else "ge"] = (
        said.above if said.HasField("above") else said.min
    ) / scale
    return {name: int(value) if value == int(value) else value for name, value in bounds.items()}


def number_field(message: type[Message], name: str) -> Any:
    """Return the range and the help of a setting, for an entry that is written by hand."""
    field = next(each for each in fields_of(message.DESCRIPTOR) if each.name == name)
    said = setting_of(field)
    assert said is not None, field.full_name
    return Field(description=_help_with_default(field, said), allow_inf_nan=False, **_bounds(said))


def _number_or_word(field: FieldDescriptor, said: Setting) -> Any:
    """Return the type of a number for which a word may stand, such as `unlimited` for 0."""
    lowest, highest, has_zero = int(said.min), int(said.max), field.has_presence

    def check(given: object) -> object:
        if given == said.zero:
            return 0
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        fine = is_number and (given >= lowest or (has_zero and given == 0))  # type: ignore[operator]
        if given is not None and not fine:
            word = f"{said.zero}, 0 for the same," if has_zero else said.zero
            raise PydanticCustomError(
                "number_or_word",
                "must be {word} or a number of {unit}, at least {lowest}",
                {"word": word, "unit": said.unit, "lowest": lowest},
            )
        return given

    word = {"enum": [said.zero, 0]} if has_zero else {"const": said.zero}
    number = {"type": "integer", "minimum": lowest, "maximum": highest}
    schema = WithJsonSchema({"anyOf": [word, number, {"type": "null"}], "default": None})
    return Annotated[int | None, BeforeValidator(check), schema, Field(le=highest)]


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
    elif _is_duration(field):
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
    _set_field(around, key, int(word) if field.cpp_type in _INTEGERS else word)


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


def _is_duration(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name == "google.protobuf.Duration"
