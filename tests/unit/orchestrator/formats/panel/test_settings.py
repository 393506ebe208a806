"""The panel's settings: what they are by default, and what is refused."""

from typing import Any

import pytest

from parley.orchestrator.formats.panel.settings import SETTINGS
from parley.runtime.errors import ParleyError
from parley.runtime.validation import Violations
from parley.v1.agent_pb2 import SummarySettings
from parley.v1.panel_pb2 import (
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_FIXED,
    TERMINATION_RULE_QUALITY,
    TERMINATION_RULE_UNSPECIFIED,
    PanelSettings,
    Termination,
)


def bad_fields(settings: PanelSettings, agents: int = 2) -> list[str]:
    violations = Violations()
    SETTINGS.check(violations, settings, agents)
    try:
        violations.refuse()
    except ParleyError as refused:
        return [each.field for each in refused.violations]
    return []


def test_by_default_three_rounds_are_held_with_the_full_history() -> None:
    defaults = SETTINGS.defaults
    assert isinstance(defaults, PanelSettings)
    assert (SETTINGS.name, defaults.rounds) == ("panel", 3)
    assert (defaults.include_full_history, defaults.carry_forward) == (True, False)
    assert defaults.termination == Termination(rule=TERMINATION_RULE_FIXED, threshold_percent=90)
    assert defaults.summaries == SummarySettings(enabled=True), "automatic"


def test_the_defaults_say_every_setting_and_are_accepted() -> None:
    assert isinstance(SETTINGS.defaults, PanelSettings)
    for message in (SETTINGS.defaults, SETTINGS.defaults.termination):
        # A flag that is false by default has presence, so that it is said too.
        said = {field.name for field, _ in message.ListFields()}
        assert {each.name for each in message.DESCRIPTOR.fields} - said <= {"grouping_agent_id"}, (
            "no agent: the judge"
        )
    assert bad_fields(SETTINGS.defaults) == []


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"rounds": 1},
        {"rounds": 100},
        {"summaries": SummarySettings(threshold=10_000_000, max_length=1_000_000)},
        {"termination": Termination(threshold_percent=100)},
        {"termination": Termination(rule=TERMINATION_RULE_UNSPECIFIED)},
        {"termination": Termination(rule=TERMINATION_RULE_QUALITY, threshold_percent=1)},
        {"termination": Termination(rule=TERMINATION_RULE_CONVERGENCE)},
    ],
)
def test_what_is_in_its_range_or_left_unset_is_accepted(fields: dict[str, Any]) -> None:
    assert bad_fields(PanelSettings(**fields)) == []


@pytest.mark.parametrize(
    ("fields", "bad"),
    [
        ({"rounds": -1}, "rounds"),
        ({"rounds": 101}, "rounds"),
        ({"summaries": SummarySettings(threshold=-1)}, "summaries.threshold"),
        ({"summaries": SummarySettings(threshold=10_000_001)}, "summaries.threshold"),
        ({"summaries": SummarySettings(max_length=1_000_001)}, "summaries.max_length"),
        ({"termination": Termination(threshold_percent=101)}, "termination.threshold_percent"),
        ({"termination": Termination(threshold_percent=-1)}, "termination.threshold_percent"),
        ({"termination": Termination(rule=77)}, "termination.rule"),  # type: ignore[arg-type]
    ],
)
def test_what_is_out_of_its_range_is_named_below_the_specification(fields: dict[str, Any], bad: str) -> None:
    assert bad_fields(PanelSettings(**fields)) == [f"spec.panel.{bad}"]


def test_every_bad_setting_is_named() -> None:
    bad = PanelSettings(rounds=-1, termination=Termination(rule=77, threshold_percent=-1))  # type: ignore[arg-type]
    assert bad_fields(bad) == [
        "spec.panel.rounds",
        "spec.panel.termination.rule",
        "spec.panel.termination.threshold_percent",
    ]


@pytest.mark.parametrize(
    "rule", [TERMINATION_RULE_FIXED, TERMINATION_RULE_QUALITY, TERMINATION_RULE_CONVERGENCE]
)
def test_only_agreement_needs_more_than_one_agent(rule: Any) -> None:
    settings = PanelSettings(termination=Termination(rule=rule))
    bad = ["spec.panel.termination.rule"] if rule == TERMINATION_RULE_CONVERGENCE else []
    assert bad_fields(settings, agents=1) == bad
    assert bad_fields(settings, agents=2) == []
