"""Settings of moderated debates: defaults, and what is refused at the edge."""

from typing import Any

import pytest

from parley.orchestrator.formats.moderated import V1
from parley.orchestrator.formats.moderated.perspectives import load_built_in
from parley.orchestrator.formats.moderated.settings import SETTINGS
from parley.runtime.validation import Violations
from parley.v1.moderated_pb2 import ModeratedSettings, Perspective
from tests.support.catching import list_violations
from tests.support.moderated_debates import moderated_settings


def read_refusals(settings: ModeratedSettings) -> dict[str, str]:
    violations = Violations()
    SETTINGS.check(violations, settings, 2)
    found = list_violations(violations)
    return {each.field.removeprefix("spec.moderated."): each.description for each in found}


def make_perspective(name: str = "Nature", **fields: Any) -> Perspective:
    return Perspective(
        **{"name": name, "priorities": ["birdsong"], "trade_offs": "Accepts slower delivery.", **fields}
    )


def test_the_defaults_are_those_of_the_format() -> None:
    settings = moderated_settings()
    assert (settings.perspectives, settings.max_rounds, settings.checkpoints) == (0, 5, True)
    assert settings.token_budget_per_round == 2000
    limits = V1.limits
    assert (limits.round.seconds, limits.checkpoint.seconds, limits.total.seconds) == (120, 1800, 1800)


def test_no_limit_and_no_checkpoints_can_be_said() -> None:
    settings = moderated_settings(token_budget_per_round=0, checkpoints=False)
    assert (settings.token_budget_per_round, settings.checkpoints) == (0, False)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"perspectives": 1}, "perspectives"),
        ({"perspectives": 5}, "perspectives"),
        ({"max_rounds": 21}, "max_rounds"),
        ({"token_budget_per_round": 63}, "token_budget_per_round"),
        ({"token_budget_per_round": -1}, "token_budget_per_round"),
        ({"custom_perspectives": [make_perspective(" ")]}, "custom_perspectives[0].name"),
        ({"custom_perspectives": [make_perspective("two\nlines")]}, "custom_perspectives[0].name"),
        ({"custom_perspectives": [make_perspective("…")]}, "custom_perspectives[0].name"),
        (
            {"custom_perspectives": [make_perspective(), make_perspective("nature ")]},
            "custom_perspectives[1].name",
        ),
        ({"custom_perspectives": [make_perspective(priorities=[])]}, "custom_perspectives[0].priorities"),
        (
            {"custom_perspectives": [make_perspective(priorities=["x" * 101])]},
            "custom_perspectives[0].priorities[0]",
        ),
        ({"custom_perspectives": [make_perspective(trade_offs="")]}, "custom_perspectives[0].trade_offs"),
        ({"custom_perspectives": [make_perspective(keywords=["a"] * 51)]}, "custom_perspectives[0].keywords"),
        (
            {"custom_perspectives": [make_perspective(opposes=["Nobody"])]},
            "custom_perspectives[0].opposes[0]",
        ),
        (
            {"custom_perspectives": [make_perspective(opposes=["Nature"])]},
            "custom_perspectives[0].opposes[0]",
        ),
        (
            {"custom_perspectives": [make_perspective(f"N{number}") for number in range(33)]},
            "custom_perspectives",
        ),
    ],
)
def test_what_is_out_of_range_is_refused_by_its_name(fields: dict[str, Any], field: str) -> None:
    assert field in read_refusals(ModeratedSettings(**fields))


def test_what_is_in_range_is_taken() -> None:
    fine = ModeratedSettings(
        perspectives=4,
        max_rounds=20,
        token_budget_per_round=64,
        custom_perspectives=[make_perspective(opposes=["user experience"])],
    )
    assert read_refusals(fine) == {}
    assert read_refusals(ModeratedSettings()) == {}


def test_a_catalogue_in_which_all_agree_is_refused() -> None:
    alike = [make_perspective(each.name, trade_offs="Accepts nothing.") for each in load_built_in()]
    assert (
        "nothing to debate"
        in read_refusals(ModeratedSettings(custom_perspectives=alike))["custom_perspectives"]
    )


def test_one_of_two_debaters_that_opposes_nobody_is_refused() -> None:
    quiet = make_perspective(trade_offs="Will walk.")
    told = read_refusals(ModeratedSettings(perspectives=2, custom_perspectives=[quiet]))
    assert "ask for 3 debaters" in told["custom_perspectives"]
    assert read_refusals(ModeratedSettings(perspectives=3, custom_perspectives=[quiet])) == {}
    assert read_refusals(ModeratedSettings(custom_perspectives=[quiet])) == {}
