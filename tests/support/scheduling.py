"""Which tests a process of pytest runs one after another: those of a file, and of files that share a system or ports."""

from xdist.scheduler import LoadFileScheduling

__all__ = ["FileScheduling"]

_FOLDERS = ("tests/chaos/", "tests/contract/", "tests/integration/edge/console/")
"""Each has servers, or a browser, for all of its tests: one system alone fills a core, and what is shared takes seconds to start."""
_FIXED_PORTS = frozenset(
    f"tests/e2e/test_{name}.py"
    for name in ("cli_debate", "evaluating", "guides", "planted_modules", "steering")
)
"""They listen on the ports of `parley up`, one at a time: a second process would only wait."""


class FileScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Give each process a file after the other, in the order of the paths on the command line: what takes long is named first."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = next(filter(file.startswith, _FOLDERS), None)
        return folder or ("fixed ports" if file in _FIXED_PORTS else file)
