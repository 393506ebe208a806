"""The panel's settings: what they are by default, and what is refused."""

from typing import Any

import pytest

from parley.orchestrator.formats.panel.settings import SETTINGS
from parley.runtime.errors import FieldViolation
from parley.runtime.validation import Violations
from parley.v1.agent_pb2 import SummarySettings
from parley.v1.panel_pb2 import (
    EFFORT_QUICK,
    EFFORT_STANDARD,
    EFFORT_THOROUGH,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_FIXED,
    TERMINATION_RULE_QUALITY,
    TERMINATION_RULE_UNDISPUTED,
    TERMINATION_RULE_UNSPECIFIED,
    PanelSettings,
    Termination,
)
from tests.support.catching import list_violations


def list_bad_fields(settings: PanelSettings, agents: int = 2) -> list[str]:
    violations = Violations()
    SETTINGS.check(violations, settings, agents)
    return [each.field for each in list_violations(violations)]


def test_by_default_up_to_three_rounds_are_held_with_the_full_history() -> None:
    defaults = SETTINGS.defaults
    assert isinstance(defaults, PanelSettings)
    assert (SETTINGS.name, defaults.rounds) == ("panel", 3)
    assert (defaults.include_full_history, defaults.carry_forward) == (True, False)
    assert defaults.termination == Termination(rule=TERMINATION_RULE_UNDISPUTED, threshold_percent=90)
    assert defaults.summaries == SummarySettings(enabled=True), "automatic"


def test_the_defaults_say_every_setting_and_are_accepted() -> None:
    assert isinstance(SETTINGS.defaults, PanelSettings)
    for message in (SETTINGS.defaults, SETTINGS.defaults.termination):
        # A flag that is false by default has presence, so that it is said too.
        said = {field.name for field, _ in message.ListFields()}
        assert {each.name for each in message.DESCRIPTOR.fields} - said <= {"grouping_agent_id", "effort"}, (
            "no agent: the judge; no effort: as the others say"
        )
    assert list_bad_fields(SETTINGS.defaults) == []


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
    assert list_bad_fields(PanelSettings(**fields)) == []


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
    assert list_bad_fields(PanelSettings(**fields)) == [f"spec.panel.{bad}"]


def test_every_bad_setting_is_named() -> None:
    bad = PanelSettings(rounds=-1, termination=Termination(rule=77, threshold_percent=-1))  # type: ignore[arg-type]
    assert list_bad_fields(bad) == [
        "spec.panel.rounds",
        "spec.panel.termination.rule",
        "spec.panel.termination.threshold_percent",
    ]


FIXED, CONVERGENCE, UNDISPUTED = (
    Termination(rule=each)
    for each in (TERMINATION_RULE_FIXED, TERMINATION_RULE_CONVERGENCE, TERMINATION_RULE_UNDISPUTED)
)


@pytest.mark.parametrize(
    ("fields", "rule", "rounds"),
    [
        ({}, TERMINATION_RULE_UNDISPUTED, 3),
        ({"termination": Termination(threshold_percent=70)}, TERMINATION_RULE_UNDISPUTED, 3),
        ({"rounds": 2}, TERMINATION_RULE_FIXED, 2),
        ({"termination": FIXED}, TERMINATION_RULE_FIXED, 3),
        ({"termination": UNDISPUTED, "rounds": 5}, TERMINATION_RULE_UNDISPUTED, 5),
        ({"termination": CONVERGENCE, "rounds": 5}, TERMINATION_RULE_CONVERGENCE, 5),
        ({"effort": EFFORT_QUICK}, TERMINATION_RULE_FIXED, 1),
        ({"effort": EFFORT_STANDARD}, TERMINATION_RULE_UNDISPUTED, 3),
        ({"effort": EFFORT_STANDARD, "rounds": 5}, TERMINATION_RULE_UNDISPUTED, 5),
        ({"effort": EFFORT_THOROUGH}, TERMINATION_RULE_FIXED, 3),
        ({"effort": EFFORT_THOROUGH, "rounds": 5}, TERMINATION_RULE_FIXED, 5),
    ],
)
def test_when_the_rounds_end_follows_from_what_is_given(
    fields: dict[str, Any], rule: int, rounds: int
) -> None:
    given = PanelSettings(**fields)
    assert list_bad_fields(given) == []
    settings = SETTINGS.with_defaults(given)
    assert isinstance(settings, PanelSettings)
    assert (settings.termination.rule, settings.rounds) == (rule, rounds)


@pytest.mark.parametrize(
    ("fields", "otherwise"),
    [
        (
            {"effort": EFFORT_QUICK, "rounds": 3},
            "quick asks for drafts alone, and rounds is 3; leave one of them out",
        ),
        (
            {"effort": EFFORT_STANDARD, "termination": FIXED},
            "standard and another rule of termination contradict each other; leave one of them out",
        ),
        (
            {"effort": EFFORT_THOROUGH, "termination": CONVERGENCE},
            "thorough and another rule of termination contradict each other; leave one of them out",
        ),
    ],
)
def test_an_effort_that_contradicts_another_setting_is_refused(
    fields: dict[str, Any], otherwise: str
) -> None:
    violations = Violations()
    SETTINGS.check(violations, PanelSettings(**fields), 2)
    assert list_violations(violations) == (FieldViolation("spec.panel.effort", otherwise),)


@pytest.mark.parametrize(
    ("fields", "bad"),
    [
        ({}, False),
        ({"rounds": 2}, True),
        ({"termination": CONVERGENCE}, False),
        ({"effort": EFFORT_QUICK}, True),
    ],
)
def test_an_agent_to_group_positions_is_named_only_where_one_is_asked(
    fields: dict[str, Any], bad: bool
) -> None:
    given = PanelSettings(**fields)
    given.termination.grouping_agent_id = "bo"
    assert list_bad_fields(given) == ["spec.panel.termination.grouping_agent_id"] * bad


@pytest.mark.parametrize(
    "rule",
    [
        TERMINATION_RULE_FIXED,
        TERMINATION_RULE_QUALITY,
        TERMINATION_RULE_CONVERGENCE,
        TERMINATION_RULE_UNDISPUTED,
    ],
)
def test_only_agreement_needs_more_than_one_agent(rule: Any) -> None:
    settings = PanelSettings(termination=Termination(rule=rule))
    bad = ["spec.panel.termination.rule"] if rule == TERMINATION_RULE_CONVERGENCE else []
    assert list_bad_fields(settings, agents=1) == bad
    assert list_bad_fields(settings, agents=2) == []
