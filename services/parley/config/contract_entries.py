"""Entries of the configuration file that follow from the contract: types, ranges and help of keys, as the reader takes them."""

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from parley.config.contract_keys import INTEGERS, Key, is_duration, keys_of
from parley.runtime.contract_settings import enum_labels, fields_of, is_map, setting_of
from parley.v1.setting_pb2 import Setting

ONE_LINE: Final = r"^[^\x00-\x1f\x7f]+$"
_Entry = TypeVar("_Entry")
_ANNOTATED: Final[Any] = Annotated
"""For types that are made while the program runs."""
_ENTRIES: Final[dict[str, type[Any]]] = {}
"""The class of the entries of each message, by the message's name."""


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
    if field.message_type is not None and not is_duration(field):
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
    is_whole = field.cpp_type in INTEGERS and not said.scale
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
