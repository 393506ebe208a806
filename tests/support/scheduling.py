"""Which tests a process of pytest runs one after another: those of a file, and of files that share a system or ports; and what comes first."""

from collections.abc import Sequence
from typing import Final, TypeVar

from xdist.scheduler import LoadFileScheduling

Item = TypeVar("Item")

_FOLDERS: Final = ("tests/chaos/", "tests/contract/", "tests/integration/edge/console/")
"""Each has servers, or a browser, for all of its tests: one system alone fills a core, and what is shared takes seconds to start."""
_FIXED_PORTS: Final = frozenset(
    f"tests/e2e/test_{name}.py"
    for name in ("cli_debate", "evaluating", "guides", "planted_modules", "steering")
)
"""They listen on the ports of `parley up`, one at a time: a second process would only wait."""
_PARSED: Final = frozenset(f"tests/unit/test_{name}.py" for name in ("contract", "plain_names"))
"""They read all of our modules, which one process parses once, in two seconds."""
_STARTING: Final = tuple(f"tests/deploy/test_{name}.py" for name in ("collected", "images", "install_guide"))
"""They start processes of all services. The first two leave them compiled: pods of the guide cannot write what they compile."""
_LONG: Final = (*_FOLDERS[:2], "fixed ports", _FOLDERS[2], *_STARTING)
"""What takes longest comes first, so that nothing is left over at the end."""
_WAITING: Final = "tests/e2e/"
"""Its tests wait for processes."""
_BESIDE: Final = "tests/integration/"
"""Its tests take most of the processor's time: what waits is spread among them, so that no core has nothing to do."""


class FileScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Give each process a file after the other, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """Return what one process runs whole: a test's file, or more than that."""
    file = nodeid.partition("::")[0]
    folder = next(filter(file.startswith, _FOLDERS), None)
    if file in _PARSED:
        return "parsed modules"
    return folder or ("fixed ports" if file in _FIXED_PORTS else file)


def order_scopes(scopes: Sequence[str]) -> list[str]:
    """Return scopes in the order in which processes take them."""
    long = [each for each in _LONG if each in scopes]
    others = [each for each in scopes if each not in _LONG]
    waiting = [each for each in others if each.startswith(_WAITING)]
    computing = [each for each in others if not each.startswith(_WAITING)]
    beside = sum(each.startswith(_BESIDE) for each in computing)
    places = {each: place * beside / len(waiting) for place, each in enumerate(waiting)}
    places.update({each: place for place, each in enumerate(computing)})
    return long + sorted(others, key=places.__getitem__)
