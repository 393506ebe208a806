"""Parts of written files that follow from the contract or the code: `python -m tests.support.made_parts` writes them.

Each stands between a line with `made by make protos: NAME` and one with `end of NAME`. `make check` runs this with `--check`,
which writes nothing and fails if a part is not as it should be.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from parley.client import GatewayClient, ParleyClient, RatingsClient
from parley.client.connection import Connection
from parley.config.contract_keys import Key, keys_of
from parley.config.formats import FORMAT_SETTINGS
from parley.runtime.contract_settings import enum_labels
from parley.v1.debate_pb2 import Clarifications, DebateLimits, DebateSpec
from parley.v1.setting_pb2 import Setting

_ROOT: Final = Path(__file__).parent.parent.parent
_OF_FORMATS: Final = [each.message_type for each in FORMAT_SETTINGS.fields if keys_of(each.message_type)]
_SETTINGS: Final[list[Any]] = [
    *_OF_FORMATS,
    *(each.DESCRIPTOR for each in (Clarifications, DebateLimits, DebateSpec)),
]
_CLIENTS: Final = (ParleyClient, GatewayClient, RatingsClient)


def _table(message: Any) -> str:
    """Return the table of a message's keys in the configuration file."""
    return "\n".join(["| key | meaning | default |", "|---|---|---|", *_rows(message, "")])


def _rows(message: Any, prefix: str) -> Iterator[str]:
    for key in keys_of(message):
        if message is DebateSpec.DESCRIPTOR and (len(key.path) > 1 or key.setting.nested):
            continue  # keys of the formats and of limits, which have tables of their own
        meaning = " ".join(filter(None, (key.setting.help, _values(key))))
        yield f"| `{prefix}{key.name}` | {meaning} | {_default(key)} |"
        inner = key.field.message_type
        if inner is not None and key.field.is_repeated and not key.setting.mapping:
            yield from _rows(inner, f"{prefix}{key.name}[].")
        elif key.setting.nested:
            yield from _rows(inner, f"{prefix}{key.name}.")


def _values(key: Key) -> str:
    """Return what a value may be, as a sentence; nothing if the help says it."""
    field, said = key.field, key.setting
    values = field.message_type.fields[1] if said.mapping and field.message_type else field
    if values.enum_type is not None:
        labels = [f"`{each}`" for each in enum_labels(values.enum_type)]
        return "" if all(each in said.help for each in labels) else f"{', '.join(labels)}."
    facts = []
    if said.max_items:
        facts.append(f"{f'{said.min_items} to' if said.min_items else 'at most'} {said.max_items} of them")
    if said.HasField("max"):
        lowest = (
            f"above {_number(said, said.above)}, at most"
            if said.HasField("above")
            else f"{_number(said, said.min)} to"
        )
        facts.append(f"{lowest} {_number(said, said.max)}")
    if said.max_characters:
        facts.append(f"{'each ' if field.is_repeated else ''}at most {said.max_characters} characters")
    text = "; ".join(facts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _number(said: Setting, value: float) -> str:
    return f"{value / (said.scale or 1):,.15g}"


def _default(key: Key) -> str:
    field, said = key.field, key.setting
    is_word = field.enum_type is not None or field.cpp_type == FieldDescriptor.CPPTYPE_STRING
    default = f"`{said.default}`" if said.default and is_word else said.default
    if not default and (said.switch or field.cpp_type == FieldDescriptor.CPPTYPE_BOOL):
        default = "false"
    return "required" if key.required else "; ".join(filter(None, (default, said.otherwise)))


def _blocking_methods(client: type) -> str:
    """Return the methods of a client in their blocking form."""
    lines = []
    kinds = [each for each in client.__mro__ if issubclass(each, Connection) and each is not Connection]
    for name, method in (item for kind in kinds for item in vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            is_iterator = "AsyncGenerator" in str(inspect.signature(method).return_annotation)
            wrapper = "_blocking_iterator" if is_iterator else "_blocking_call"
            lines.append(f"    {name} = {wrapper}({client.__name__}.{name})")
    return "\n".join(lines)


PARTS: Final = {
    "docs/guides/configuration.md": {each.name: _table(each) for each in _SETTINGS},
    "services/parley/client/blocking.py": {each.__name__: _blocking_methods(each) for each in _CLIENTS},
}
"""The parts of each file, by their names."""


def with_parts(text: str, parts: dict[str, str]) -> str:
    """Return a file's text with its parts made anew. Raise ValueError if it has no place for one."""
    for name, part in parts.items():
        place = re.compile(rf"(made by make protos: {name}\b[^\n]*\n).*?([^\n]*end of {name}\b)", re.DOTALL)
        text, count = place.subn(lambda found: f"{found[1]}{part}\n{found[2]}", text)  # noqa: B023 - used at once
        if count != 1:
            raise ValueError(
                f"needs one place for {name}: lines with `made by make protos: {name}` and `end of {name}`"
            )
    return text


def main(*, check: bool) -> None:
    """Write the parts; or exit with an error that names each file whose parts are not as they should be."""
    stale = []
    for name, parts in PARTS.items():
        path = _ROOT / name
        text = path.read_text(encoding="utf-8")
        made = with_parts(text, parts)
        if made != text and check:
            stale.append(name)
        elif made != text:
            path.write_text(made, encoding="utf-8")
    if stale:
        sys.exit(f"{', '.join(stale)}: not what protos/ and the client say: run make protos")


if __name__ == "__main__":
    main(check="--check" in sys.argv)
