"""What a new debate can be given, from what the contract says of each setting: a setting that is added there is in the form too."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from parley.runtime.contract_settings import enum_labels, fields_of, setting_of
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.setting_pb2 import Setting

_DURATION: Final = "google.protobuf.Duration"
_FORMATS: Final = "format_settings"
_NUMBERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: "integer",
    FieldDescriptor.CPPTYPE_INT64: "integer",
    FieldDescriptor.CPPTYPE_DOUBLE: "number",
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
    FieldDescriptor.CPPTYPE_STRING: "text",
}
Option = Mapping[str, Any]


async def answer_options(_: Request) -> Response:
    """Return the options as JSON: `general`, and those of each format by its name."""
    return JSONResponse(list_options(), headers={"Cache-Control": "no-cache"})


def list_options() -> Mapping[str, Any]:
    """Return the options of every debate, and of each format, in the order of the contract."""
    fields = fields_of(DebateSpec.DESCRIPTOR)
    of_formats = [each for each in fields if each.containing_oneof and each.containing_oneof.name == _FORMATS]
    return {
        "general": [
            option for each in fields if each not in of_formats for option in _list_of_field(each, ())
        ],
        "formats": {
            each.name: list(_list_of_field(each, ()))
            for each in of_formats
            if (said := setting_of(each)) and not said.not_in_file
        },
    }


def _list_of_field(field: FieldDescriptor, parents: Sequence[str], section: str = "") -> Iterator[Option]:
    """Yield the option of a field, or those within it, under the name of the section. Lists and maps are left to the configuration file."""
    said = setting_of(field)
    if said is None or said.not_in_file or field.is_repeated:
        return
    path = (*parents, field.json_name)
    if field.message_type is None or field.message_type.full_name == _DURATION:
        yield _describe(field, said, path, section)
        return
    if parents and said.nested:
        section = f"{said.key or field.name}: "
    for each in fields_of(field.message_type):
        yield from _list_of_field(each, path, section)


def _describe(field: FieldDescriptor, said: Setting, path: Sequence[str], section: str) -> Option:
    kind = "choice" if field.enum_type else "seconds" if field.message_type else _NUMBERS[field.cpp_type]
    found: dict[str, Any] = {
        "path": path,
        "label": _to_label(f"{section}{said.key or field.name}"),
        "kind": kind,
        "help": said.help,
    }
    if field.enum_type is not None:
        values = field.enum_type.values_by_number
        found["choices"] = [
            {"value": values[number].name, "label": label}
            for label, number in enum_labels(field.enum_type).items()
        ]
    for name in ("min", "max"):
        if said.HasField(name):
            found[name] = getattr(said, name)
    for name in ("default", "otherwise", "unit"):
        if getattr(said, name):
            found[name] = getattr(said, name)
    return found


def _to_label(name: str) -> str:
    return name.replace("_", " ").capitalize()
