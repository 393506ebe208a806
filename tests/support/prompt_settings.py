"""The settings of formats that stand in prompts: those that a phase reads, as in `debate.spec.arena.protocol`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from parley.orchestrator import phases
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.event_pb2 import DebateCreated
from tests.support.kept_debates.kept_debate import KeptDebate
from tests.support.kept_logs import KEPT, read_log
from tests.support.parsed_modules import parse_folder

_FOLDER: Final = Path(phases.__path__[0])
_FORMATS: Final = [each.name for each in DebateSpec.DESCRIPTOR.oneofs_by_name["format_settings"].fields]
_SETTING: Final = re.compile(rf"(?:\w+\.)*spec\.((?:{'|'.join(_FORMATS)})(?:\.\w+)*)")


def find_prompt_settings() -> list[str]:
    """Return the settings that phases read, such as `arena.protocol`; `arena` if a phase hands on all of its settings."""
    return sorted({each for tree in parse_folder(_FOLDER) for each in _find_settings(tree)})


def _find_settings(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and (found := _SETTING.fullmatch(ast.unparse(node))):
        yield found[1]
    else:
        for each in ast.iter_child_nodes(node):
            yield from _find_settings(each)


def find_debates_with(setting: str) -> list[KeptDebate]:
    """Return the debates that have this setting in their kept logs."""
    return [each for each in KEPT.values() if without_setting(spec := _spec_of(each), setting) != spec]


def _spec_of(kept: KeptDebate) -> DebateSpec:
    created = read_log(kept)[0].payload
    assert isinstance(created, DebateCreated)
    return created.spec


def without_setting(spec: DebateSpec, setting: str) -> DebateSpec:
    """Return a copy of a specification in which this setting is unset."""
    changed = DebateSpec()
    changed.CopyFrom(spec)
    *above, name = setting.split(".")
    message: Any = changed
    for each in above:
        if not message.HasField(each):
            return changed
        message = getattr(message, each)
    message.ClearField(name)
    return changed
