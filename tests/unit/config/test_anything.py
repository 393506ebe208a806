"""Whatever a file holds, it is read or refused in plain words."""

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from parley.config import loading as config
from parley.config.errors import ConfigError
from parley.config.schema import schema

WORDS = sorted({key for each in [schema(), *schema()["$defs"].values()] for key in each["properties"]})

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=25,
)


def read(text: str, name: str) -> None:
    problems: tuple[str, ...] = ()
    found = None
    try:
        found = config.loads(text, name, Path("/nonexistent"))
    except ConfigError as error:
        problems = error.problems
    assert bool(problems) == (found is None)
    assert all(problem.startswith(name) and "\n" not in problem for problem in problems)
    if found is not None:
        assert found.agents
        assert len({agent.id for agent in (*found.agents, found.judge)}) == len(found.agents) + 1


@given(st.text())
def test_any_text_is_a_configuration_or_an_error(text: str) -> None:
    read(text, "any.yaml")
    read(text, "any.json")


@example({"judge": {"\n": None}})
@given(st.dictionaries(st.sampled_from(WORDS), values, max_size=6))
def test_any_values_are_a_configuration_or_an_error(value: dict[str, Any]) -> None:
    read(yaml.safe_dump(value, allow_unicode=True), "any.yaml")
    read(json.dumps(value), "any.json")
