"""mypy knows what may be done with a record of msgspec."""

import re
from pathlib import Path

from mypy import api

from tests.support import struct_types

USES = """
import dataclasses
from msgspec import Struct, structs

class Note(Struct, frozen=True):
    words: int

note = Note(1)
structs.replace(note, words=2)
structs.replace(note, words="two")
structs.replace(note, wrods=2)
dataclasses.replace(note, words=2)
dataclasses.asdict(note)
dataclasses.astuple(note)
dataclasses.fields(Note)
"""


def test_what_a_record_does_not_take_is_refused_before_it_runs(tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nplugins = {struct_types.__file__}\n")
    (tmp_path / "uses.py").write_text(USES)
    said, _, _ = api.run(
        [str(tmp_path / "uses.py"), f"--config-file={tmp_path / 'mypy.ini'}", f"--cache-dir={tmp_path}"]
    )
    found = re.findall(r"uses\.py:(\d+): error", said)
    lines = USES.splitlines()
    assert [lines[int(each) - 1] for each in found] == lines[
        lines.index('structs.replace(note, words="two")') :
    ]
