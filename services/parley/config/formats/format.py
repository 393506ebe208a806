"""What the configuration knows of a format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from parley.v1.debate_pb2 import DebateSpec

__all__ = ["Format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format in the `debate:` section.

    Attributes:
        name: What it is called.
        keys: The class that declares its keys.
        renamed: Keys of the section that mean what another key means here.
        renamed_inside: The same of what is inside of the section, by the class that declares it.
        without_section: What holds where there is no section.
        set_settings: Sets in the specification what the section says (an instance of `keys`); the rest stays unset.
        set_rounds: Sets the number of rounds, whatever was set before.
        options: Sets a setting that the command line names, such as `protocol`, to one of its words.
        key_of_field: The key of the section that a field of its settings comes from, both as dotted paths.
        go_unattended: Sets what holds where no person can be asked and nobody said otherwise; returns what is told of
            that, or None where nothing changes.
    """

    name: str
    keys: type[Any]
    renamed: Mapping[str, str]
    renamed_inside: Mapping[type[Any], Mapping[str, str]]
    without_section: str
    set_settings: Callable[[DebateSpec, Any], None]
    set_rounds: Callable[[DebateSpec, int], None]
    key_of_field: Mapping[str, str]
    options: Mapping[str, Callable[[DebateSpec, str], None]] = field(default_factory=dict)
    go_unattended: Callable[[DebateSpec], str | None] = lambda _: None
