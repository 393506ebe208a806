"""Where data is kept when nobody said where."""

from pathlib import Path

import pytest

from parley.local import default_store
from parley.runtime.errors import ConfigurationError


def test_a_person_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PARLEY_STORE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", fail)
    with pytest.raises(ConfigurationError, match="set PARLEY_STORE or HOME"):
        default_store()
