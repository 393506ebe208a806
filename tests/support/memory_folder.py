"""Where tests put what they write: in memory where there is room, since no test is about a power cut."""

import os
import shutil
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")
_ROOM: Final = 4 << 30


def memory_folder() -> str | None:
    """Return a folder in memory; None where there is none, or it is nearly full: a disk that others use takes its time for a flush."""
    fits = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    return str(_MEMORY) if fits else None
