"""A package that is imported late is found by its names, and by the name of the package that it stands in."""

import importlib
import sys
from pathlib import Path

import pytest

from parley.runtime.late_packages import import_late


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `sails` with a package `jib` within it, each of which notes that its own code ran."""
    inner = tmp_path / "sails" / "jib"
    inner.mkdir(parents=True)
    (tmp_path / "sails" / "__init__.py").write_text("COUNT = 2\nopen(__file__ + '.ran', 'w').close()\n")
    (inner / "__init__.py").write_text("AREA = 9\nopen(__file__ + '.ran', 'w').close()\n")
    (inner / "_sheet.py").write_text("LENGTH = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("sails", "sails.jib", "sails.jib._sheet"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_package_within_a_late_one_is_found_by_its_path(packages: Path) -> None:
    import_late("sails", "sails.jib")
    sails = importlib.import_module("sails")
    assert importlib.import_module("sails.jib._sheet").LENGTH == 7
    assert not list(packages.rglob("*.ran")), "a module within is imported without their own code"
    assert (sails.jib._sheet.LENGTH, sails.jib.AREA, sails.COUNT) == (7, 9, 2)
    assert len(list(packages.rglob("*.ran"))) == 2


def test_a_name_that_a_late_package_does_not_have_is_missing() -> None:
    import_late("sails")
    with pytest.raises(AttributeError, match="module 'sails' has no attribute 'mast'"):
        _ = importlib.import_module("sails").mast
