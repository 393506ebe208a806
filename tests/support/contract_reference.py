"""The reference of the contract, made from the .proto files and their comments: `python -m tests.support.contract_reference FOLDER`.

`make protos` writes it to docs/reference, and `make check` holds it to what protos/ says.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)

from parley.v1 import access_pb2, example_pb2, setting_pb2

ROOT: Final = Path(__file__).parent.parent.parent
PROTOS: Final = ROOT / "protos"
PACKAGE: Final = "parley.v1"
MADE: Final = "*Made from `protos/` by `make protos`; not to be edited.*"
_SERVICES: Final = ("orchestrator", "gateway", "convergence", "ratings", "memory")
_SCALARS: Final = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}
_MESSAGES, _ENUMS, _OF_SERVICES, _SYNTAX = (4, 5, 6, 12)  # numbers of fields in FileDescriptorProto
_FIELDS, _NESTED, _NESTED_ENUMS, _VALUES, _METHODS = (2, 3, 4, 2, 2)

_Place = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _File:
    """A .proto file: its comments by where they stand, and the page on which each type of the contract is described.

    A place is a path of protobuf's source info: what stands before `syntax` is about the file.
    """

    proto: FileDescriptorProto
    comments: Mapping[_Place, str]
    page_of: Mapping[str, str]

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return Path(self.proto.name).stem

    def said(self, *place: int) -> str:
        """Return the comment at a place, its lines as they stand."""
        return self.comments.get(place, "")

    def in_a_line(self, *place: int) -> str:
        """Return the comment at a place as a table's cell has it."""
        return " ".join(self.said(*place).split()).replace("|", "\\|")


def pages() -> dict[str, str]:
    """Return the pages by file name."""
    compiled = _compile()
    page_of = {
        f".{PACKAGE}.{name}": f"{Path(proto.name).stem}.md"
        for proto in compiled
        for name in _type_names(proto)
    }
    found = {each.name: each for each in (_File(proto, _comments(proto), page_of) for proto in compiled)}
    made = {f"{name}.md": _page(file) for name, file in found.items()}
    return {"README.md": _index(found), **made}


def comments_of_rpcs() -> dict[str, str]:
    """Return the comment of each RPC, by the RPC's full name."""
    return {
        f"{PACKAGE}.{service.name}.{method.name}": comments.get((_OF_SERVICES, place, _METHODS, number), "")
        for proto in _compile()
        for comments in [_comments(proto)]
        for place, service in enumerate(proto.service)
        for number, method in enumerate(service.method)
    }


def _compile() -> Sequence[FileDescriptorProto]:
    paths = sorted(str(each.relative_to(PROTOS)) for each in (PROTOS / "parley" / "v1").glob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "set")
        options = [f"-I{PROTOS}", "--include_source_info", f"--descriptor_set_out={out}"]
        subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options, *paths], check=True)
        return FileDescriptorSet.FromString(out.read_bytes()).file


def _comments(proto: FileDescriptorProto) -> dict[_Place, str]:
    return {
        tuple(each.path): "\n".join(line.strip() for line in each.leading_comments.strip().splitlines())
        for each in proto.source_code_info.location
        if each.leading_comments
    }


def _type_names(proto: FileDescriptorProto) -> Iterator[str]:
    for enum in proto.enum_type:
        yield enum.name
    for message in proto.message_type:
        yield message.name
        inner = [each.name for each in message.nested_type] + [each.name for each in message.enum_type]
        yield from (f"{message.name}.{name}" for name in inner)


def _index(found: Mapping[str, _File]) -> str:
    lines = ["# The contract", "", MADE, ""]
    lines += ["How to call it is said in [clients.md](../guides/clients.md), what is kept in"]
    lines += [
        "[compatibility.md](../guides/compatibility.md). Every RPC also fails as [access.md](access.md) says.",
        "",
    ]
    for name in _SERVICES:
        file = found[name]
        for service in file.proto.service:
            lines += [f"## [{service.name}]({name}.md)", "", "| RPC | needs | |", "|---|---|---|"]
            for number, method in enumerate(service.method):
                first = file.said(_OF_SERVICES, 0, _METHODS, number).split("\n\n")[0]
                text = " ".join(first.split()).replace("|", "\\|")
                link = f"[{method.name}]({name}.md#{_anchor(method.name)})"
                lines.append(f"| {link} | {_needs(method)} | {text} |")
            lines.append("")
    lines += ["## Messages that several have", ""]
    for name, file in sorted(found.items()):
        if name not in _SERVICES:
            lines.append(f"- [{name}]({name}.md): {' '.join(file.said(_SYNTAX).split())}")
    return "\n".join([*lines, ""])


def _page(file: _File) -> str:
    lines = [f"# {file.proto.name}", "", MADE, ""]
    if file.said(_SYNTAX):
        lines += [file.said(_SYNTAX), ""]
    for place, service in enumerate(file.proto.service):
        lines += [f"## {service.name}", "", file.said(_OF_SERVICES, place), ""]
        for number, method in enumerate(service.method):
            lines += _method(file, method, (_OF_SERVICES, place, _METHODS, number))
    for place, message in enumerate(file.proto.message_type):
        lines += _message(file, message, message.name, (_MESSAGES, place))
    for place, enum in enumerate(file.proto.enum_type):
        lines += _enum(file, enum, enum.name, (_ENUMS, place))
    return "\n".join(lines).rstrip("\n") + "\n"


def _method(file: _File, method: MethodDescriptorProto, place: _Place) -> list[str]:
    takes = ("stream of " if method.client_streaming else "") + _link(file, method.input_type)
    gives = ("stream of " if method.server_streaming else "") + _link(file, method.output_type)
    return [
        f"### {method.name}",
        "",
        f"{takes} → {gives}; needs {_needs(method)}.{_queue(method)}{_size(method)}{_describe_absence(method)}",
        "",
        file.said(*place),
        "",
    ]


def _needs(method: MethodDescriptorProto) -> str:
    role = method.options.Extensions[access_pb2.needs]
    return f"`{access_pb2.AccessRole.Name(role).removeprefix('ACCESS_ROLE_')}`"


def _queue(method: MethodDescriptorProto) -> str:
    queue = method.options.Extensions[access_pb2.queue]
    if not queue:
        return ""
    return f" Queue: `{access_pb2.CallQueue.Name(queue).removeprefix('CALL_QUEUE_')}`."


def _size(method: MethodDescriptorProto) -> str:
    size = method.options.Extensions[access_pb2.max_request_bytes]
    return f" Requests: up to {size // 1024**2} MiB." if size else ""


def _describe_absence(method: MethodDescriptorProto) -> str:
    reason = method.options.Extensions[access_pb2.not_in_client]
    return f" Not in the client in Python: {reason}." if reason else ""


def _message(file: _File, message: DescriptorProto, name: str, place: _Place) -> list[str]:
    lines = [f"## {name}", "", file.said(*place), ""]
    if message.field:
        lines += ["| field | | type | |", "|---|---|---|---|"]
        for number, field in enumerate(message.field):
            marks = " (deprecated)" if field.options.deprecated else ""
            meaning = " ".join(
                filter(None, (file.in_a_line(*place, _FIELDS, number), _describe_setting(field)))
            )
            lines.append(
                f"| `{field.name}`{marks} | {field.number} | {_type(file, message, field)} | {meaning} |"
            )
        lines.append("")
    for example in message.options.Extensions[example_pb2.example]:
        lines += [f"Example: `{example}`", ""]
    for number, inner in enumerate(message.nested_type):
        if not inner.options.map_entry:
            lines += _message(file, inner, f"{name}.{inner.name}", (*place, _NESTED, number))
    for number, enum in enumerate(message.enum_type):
        lines += _enum(file, enum, f"{name}.{enum.name}", (*place, _NESTED_ENUMS, number))
    return lines


def _describe_setting(field: FieldDescriptorProto) -> str:
    """Return what a setting may be: range, default, and how a person sets it."""
    if not field.options.HasExtension(setting_pb2.setting):
        return ""
    said = field.options.Extensions[setting_pb2.setting]
    facts = [_range(said, is_list=field.label == FieldDescriptorProto.LABEL_REPEATED)]
    if default := "; ".join(filter(None, (said.default, said.otherwise))):
        facts.append(f"Default: {default}")
    if (said.help or said.default) and not said.not_in_file:
        facts.append(f"Key: `{said.key or field.name}`")
    if said.option:
        facts.append(f"Option: `--{said.option}`")
    return " ".join(f"{each}." for each in facts if each).replace("|", "\\|")


def _range(said: setting_pb2.Setting, *, is_list: bool) -> str:
    facts = []
    if said.max_items:
        facts.append(f"{said.min_items} to {said.max_items} of them")
    if said.HasField("max"):
        lowest = f"above {said.above:g} and at most" if said.HasField("above") else f"{said.min:.15g} to"
        facts.append(f"{lowest} {said.max:.15g}{f' {said.unit}' if said.unit else ''}")
    if said.max_characters:
        facts.append(f"{'each ' if is_list else ''}at most {said.max_characters} characters")
    if said.one_line:
        facts.append("one line")
    text = ", ".join(facts)
    return text[:1].upper() + text[1:]


def _type(file: _File, message: DescriptorProto, field: FieldDescriptorProto) -> str:
    for inner in message.nested_type:
        if inner.options.map_entry and field.type_name.endswith(f".{message.name}.{inner.name}"):
            key, value = (_type(file, inner, each) for each in inner.field)
            return f"map of {key} to {value}"
    named = _link(file, field.type_name) if field.type_name else f"`{_SCALARS[field.type]}`"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"list of {named}"
    if field.proto3_optional:
        return f"{named}, optional"
    if field.HasField("oneof_index"):
        return f"{named}, one of `{message.oneof_decl[field.oneof_index].name}`"
    return named


def _link(file: _File, type_name: str) -> str:
    page = file.page_of.get(type_name)
    short = type_name.removeprefix(f".{PACKAGE}.").removeprefix(".")
    if page is None:
        return f"`{short}`"
    return f"[{short}]({'' if page == f'{file.name}.md' else page}#{_anchor(short)})"


def _anchor(heading: str) -> str:
    return heading.lower().replace(".", "")


def _enum(file: _File, enum: EnumDescriptorProto, name: str, place: _Place) -> list[str]:
    lines = [f"## {name}", "", file.said(*place), "", "| value | | |", "|---|---|---|"]
    for number, value in enumerate(enum.value):
        lines.append(f"| `{value.name}` | {value.number} | {file.in_a_line(*place, _VALUES, number)} |")
    return [*lines, ""]


def main(folder: Path) -> None:
    """Write the pages into a folder, and remove what is none of them."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for page in folder.glob("*.md"):
        if page.name not in made:
            page.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
