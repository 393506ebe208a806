"""Scripts of ours that read what strangers wrote, each in a process of its own with limits and one library on its path."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from parley.orchestrator.research.errors import FetchError
from parley.runtime.python_process import python_command, run_filter

_MEMORY_BYTES: Final = 1 << 30


async def run_reader(
    script: str,
    library: str,
    given: bytes,
    *,
    cpu_seconds: int,
    seconds: float,
    missing: str,
    late: str,
    unreadable: str,
) -> dict[str, str]:
    """Return the JSON object that a script of this folder writes about what it is given.

    Args:
        library: The one package that the script imports beyond the standard library.
        cpu_seconds: The processor time that it may take.
        seconds: The time that it may take.

    Raises:
        FetchError: `missing` if the library is not installed, `late` after its time, `unreadable` if it wrote no JSON.
    """
    found = find_spec(library)
    if found is None or found.origin is None:
        raise FetchError(missing)
    path, packages = str(Path(__file__).with_name(script)), str(Path(found.origin).parents[1])
    command = python_command("-I", "-X", "utf8", path, packages, str(cpu_seconds), str(_MEMORY_BYTES))
    try:
        output = await run_filter(command, given, seconds)
    except TimeoutError:
        raise FetchError(late) from None
    try:
        read: dict[str, str] = json.loads(output)
    except ValueError:
        raise FetchError(unreadable) from None
    return read
