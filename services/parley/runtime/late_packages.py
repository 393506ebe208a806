"""Less to import: packages of which only some modules are needed, and packages that are used only because they are there."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any, Final

_IS_LATE: Final = "_is_late"
_lock: Final = RLock()


class _LatePackage(ModuleType):
    """A package whose modules can be imported; its own code runs when the first of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):  # else a private module, or what the import system looks for
            with _lock:
                assert self.__spec__ is not None
                assert self.__spec__.loader is not None
                if self.__dict__.pop(_IS_LATE, False):
                    self.__spec__.loader.exec_module(self)
                if name in self.__dict__:
                    return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def import_late(*names: str) -> None:
    """Let the own code of these packages wait until one of their names is used; name a package before those within it.

    It changes nothing about packages that are imported already, or not installed.
    """
    for name in names:
        parent, _, last = name.rpartition(".")
        if name in sys.modules or (parent and parent not in sys.modules):
            continue
        spec = PathFinder.find_spec(name, sys.modules[parent].__path__ if parent else None)
        if spec is None:
            continue
        package = module_from_spec(spec)
        package.__class__ = _LatePackage
        package.__dict__[_IS_LATE] = True
        sys.modules[name] = package
        if parent:  # as the import system does once a module is loaded
            setattr(sys.modules[parent], last, package)


@contextmanager
def hide_package(name: str) -> Iterator[None]:
    """Let imports in the block do without a package that they would use if it is there."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment] # as the import system has it for what must not be found
    try:
        yield
    finally:
        del sys.modules[name]
