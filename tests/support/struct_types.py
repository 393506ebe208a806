"""A plugin of mypy for records of msgspec: `structs.replace` takes the fields of its record, and no function of `dataclasses` takes a record.

mypy takes a Struct for a dataclass, and any name and value for its change. Without this, both show only when they run.
"""

from collections.abc import Callable
from typing import Final

from mypy.errorcodes import ARG_TYPE
from mypy.nodes import TypeInfo
from mypy.plugin import FunctionContext, FunctionSigContext, Plugin
from mypy.plugins.dataclasses import replace_function_sig_callback
from mypy.types import CallableType, FunctionLike, Instance, Type, get_proper_type

_FOR_DATACLASSES: Final = frozenset(
    f"dataclasses.{name}" for name in ("asdict", "astuple", "fields", "replace")
)


class StructTypes(Plugin):
    """What mypy knows of records beyond what they say of themselves."""

    def get_function_signature_hook(
        self, fullname: str
    ) -> Callable[[FunctionSigContext], FunctionLike] | None:
        """Return what makes the signature of a call: that of `structs.replace` has the fields of its record."""
        return replace_function_sig_callback if fullname == "msgspec.structs.replace" else None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Return what checks a call of `dataclasses`."""
        return _refuse_record if fullname in _FOR_DATACLASSES else None


def _refuse_record(call: FunctionContext) -> Type:
    given = get_proper_type(call.arg_types[0][0]) if call.arg_types and call.arg_types[0] else None
    kind = given.ret_type if isinstance(given, CallableType) else given  # a class stands for its records
    found = get_proper_type(kind) if kind is not None else None
    if isinstance(found, Instance) and _is_record(found.type):
        refused = f"{found.type.name} is a Struct, which dataclasses refuse: use msgspec.structs"
        call.api.fail(refused, call.context, code=ARG_TYPE)
    return call.default_return_type


def _is_record(kind: TypeInfo) -> bool:
    return any(base.fullname == "msgspec.Struct" for base in kind.mro)


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin, for any version of mypy."""
    return StructTypes
