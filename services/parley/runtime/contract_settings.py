"""What the contract says of each setting at its field (`setting.proto`): range checks and defaults that follow from it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeVar, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from parley.runtime.validation import CONTROL_CHARACTER, Violations
from parley.v1.setting_pb2 import Setting, setting

_Settings = TypeVar("_Settings", bound=Message)
_NO_VALUE: Final = "UNSPECIFIED"
_UNITS: Final = ((24 * 3600, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_DURATION: Final = "google.protobuf.Duration"


@cache
def setting_of(field: FieldDescriptor) -> Setting | None:
    """Return what the contract says of a setting; None if the field is none."""
    options = field.GetOptions()
    return options.Extensions[setting] if options.HasExtension(setting) else None


def fields_of(message: object) -> Sequence[FieldDescriptor]:
    """Return the fields of a message's descriptor, in their order."""
    return cast("Descriptor", message).fields


@cache
def enum_labels(enum: EnumDescriptor) -> Mapping[str, int]:
    """Return the values of an enum by the words that people write, such as `round-robin`, without the one for `unspecified`."""
    prefix = enum.values_by_number[0].name.removesuffix(_NO_VALUE)
    return {
        each.name.removeprefix(prefix).lower().replace("_", "-"): each.number
        for each in enum.values
        if each.number
    }


@cache
def _settings_in(message: object) -> Sequence[tuple[FieldDescriptor, Setting]]:
    return [(each, said) for each in fields_of(message) if (said := setting_of(each)) is not None]


@cache
def is_map(field: FieldDescriptor) -> bool:
    """Return whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _field(message: object, name: str) -> FieldDescriptor:
    return cast("Descriptor", message).fields_by_name[name]


def default_of(message: type[Message], name: str) -> Any:
    """Return the default of a field, in its own type. Raise KeyError if it has none."""
    field = _field(message.DESCRIPTOR, name)
    said = setting_of(field)
    if said is None or not said.default:
        raise KeyError(f"{field.full_name} has no default")
    return _parse_default(field, said.default)


def defaults_of(message: type[_Settings]) -> _Settings:
    """Return a message with the default of each of its fields that has one, also of those that are applied on use."""
    names = [
        field.name for field in fields_of(message.DESCRIPTOR) if (said := setting_of(field)) and said.default
    ]
    return message(**{name: default_of(message, name) for name in names})


def _parse_default(field: FieldDescriptor, text: str) -> Any:
    if field.enum_type is not None:
        return enum_labels(field.enum_type)[text]
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return {"true": True, "false": False}[text]
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return text
    if field.message_type is not None:
        return Duration(seconds=int(text))
    is_float = field.cpp_type in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}
    return float(text) if is_float else int(text)


def with_defaults(settings: _Settings) -> _Settings:
    """Return settings with defaults in place of what is unset, or 0. A message that may be absent stays as it is."""
    filled = type(settings)()
    _fill_defaults(filled)
    filled.MergeFrom(settings)
    return filled


def _fill_defaults(message: Message) -> None:
    for field in fields_of(message.DESCRIPTOR):
        said = setting_of(field)
        if said is None or field.is_repeated:
            continue
        if said.default and not said.default_on_use:
            setattr(message, field.name, _parse_default(field, said.default))
        elif _is_group(field):
            inner = getattr(message, field.name)
            _fill_defaults(inner)


def _is_group(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name != _DURATION


def check_settings(violations: Violations, path: str, message: Message, *, but: Collection[str] = ()) -> None:
    """Note every setting of a message, and of those inside, that is out of its range; leave out the fields named in `but`."""
    for field, said in _settings_in(message.DESCRIPTOR):
        if field.name not in but:
            _check_setting(violations, path, message, field, said)


def check_field(violations: Violations, path: str, message: Message, name: str) -> None:
    """Note a setting of the message at `path` that is out of its range."""
    field = _field(message.DESCRIPTOR, name)
    said = setting_of(field)
    assert said is not None, field.full_name
    _check_setting(violations, path, message, field, said)


def _check_setting(
    violations: Violations, path: str, message: Message, field: FieldDescriptor, said: Setting
) -> None:
    name = field.name
    value, at = getattr(message, name), f"{path}.{name}"
    if is_map(field):
        _check_map(violations, at, field, said, value)
    elif field.is_repeated:
        _check_list(violations, at, field, said, value)
    elif _is_group(field):
        if message.HasField(name):
            check_settings(violations, at, value)
    elif not field.has_presence or message.HasField(name):
        may_be_zero = not field.has_presence or bool(said.zero)
        _check_value(violations, at, field, said, value, may_be_zero=may_be_zero)


def _check_map(
    violations: Violations, path: str, field: FieldDescriptor, said: Setting, values: Mapping[str, Any]
) -> None:
    if 0 < said.max_items < len(values):
        violations.add(path, f"has {len(values)}, at most {said.max_items} are allowed")
    inner, longest = _field(field.message_type, "value"), said.max_name_characters
    for name, each in sorted(values.items()):
        at = f"{path}.{CONTROL_CHARACTER.sub('?', name[:80])}"
        if longest and (not name.strip() or len(name) > longest or CONTROL_CHARACTER.search(name)):
            violations.add(at, f"its name must be one line of 1 to {longest} characters")
        if said.one_line and not each.strip():
            violations.add(at, "is blank")
        _check_value(violations, at, inner, said, each, may_be_zero=False)


def _check_list(
    violations: Violations, path: str, field: FieldDescriptor, said: Setting, values: Collection[Any]
) -> None:
    if len(values) < said.min_items:
        violations.add(path, f"has {len(values)}, must have {said.min_items} to {said.max_items}")
    if 0 < said.max_items < len(values):
        violations.add(path, f"at most {said.max_items} are allowed")
    for place, each in enumerate(values):
        if _is_group(field):
            check_settings(violations, f"{path}[{place}]", each)
        else:
            _check_value(violations, f"{path}[{place}]", field, said, each, may_be_zero=False)


def _check_value(
    violations: Violations, path: str, field: FieldDescriptor, said: Setting, value: Any, *, may_be_zero: bool
) -> None:
    if field.enum_type is not None:
        labels = enum_labels(field.enum_type)
        if value not in labels.values() and (value or not may_be_zero):
            violations.add(path, f"is not a known value; known values: {', '.join(labels)}")
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        _check_text(violations, path, said, value)
    elif field.message_type is not None:
        seconds = value.ToMilliseconds() / 1000
        if not said.min <= seconds <= said.max:
            violations.add(path, f"must be {_time_range(said.min, said.max)}")
    elif said.HasField("max") and not (may_be_zero and value == 0):
        _check_number(violations, path, said, value, may_be_zero=may_be_zero)


def _check_text(violations: Violations, path: str, said: Setting, text: str) -> None:
    if said.required and not text.strip():
        violations.add(path, "is blank")
    if 0 < said.max_characters < len(text):
        violations.add(path, f"must be at most {said.max_characters} characters")
    if said.one_line and CONTROL_CHARACTER.search(text):
        violations.add(path, "must be one line")


def _check_number(
    violations: Violations, path: str, said: Setting, value: float, *, may_be_zero: bool
) -> None:
    is_above = value > said.above if said.HasField("above") else value >= said.min
    if is_above and value <= said.max:
        return
    words = (
        f"above {said.above:.15g} and at most {said.max:.15g}"
        if said.HasField("above")
        else f"{said.min:.15g} to {said.max:.15g}"
    )
    if may_be_zero:
        words = f"{words}, or 0 for {said.zero or 'the default'}"
        violations.add(path, f"is {value}, must be {words}")
    else:
        violations.add(path, f"must be {words}")


def _time_range(shortest: float, longest: float) -> str:
    return " to ".join("0" if seconds == 0 else next(_time_words(seconds)) for seconds in (shortest, longest))


def _time_words(seconds: float) -> Iterator[str]:
    for size, name in _UNITS:
        count, rest = divmod(seconds, size)
        if rest == 0 and count and (name != "day" or count > 1):
            yield f"{count:.0f} {name}{'' if count == 1 else 's'}"
    yield f"{seconds:.15g} seconds"
