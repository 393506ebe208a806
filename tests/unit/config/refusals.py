"""Refusals of configuration files."""

from pathlib import Path

import pytest

from parley.config import loading as config
from parley.config.errors import ConfigError


def list_problems(text: str, name: str = "debate.yaml") -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        config.loads(text, name, Path())
    return caught.value.problems
