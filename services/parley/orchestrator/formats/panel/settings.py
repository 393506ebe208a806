"""The panel's settings: what they are by default, and what is refused."""

from collections.abc import Collection, Mapping
from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings
from parley.runtime.contract_settings import enum_labels, with_defaults
from parley.runtime.validation import Violations
from parley.v1.panel_pb2 import (
    EFFORT_QUICK,
    EFFORT_STANDARD,
    EFFORT_THOROUGH,
    SYNTHESIS_METHOD_VOTING,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_FIXED,
    TERMINATION_RULE_UNDISPUTED,
    Effort,
    PanelSettings,
    Termination,
    TerminationRule,
)

_RULES: Final[Mapping[Effort.ValueType, TerminationRule.ValueType]] = {
    EFFORT_QUICK: TERMINATION_RULE_FIXED,
    EFFORT_STANDARD: TERMINATION_RULE_UNDISPUTED,
    EFFORT_THOROUGH: TERMINATION_RULE_FIXED,
}
"""The rule that each effort stands for."""
_ASKS: Final = frozenset({TERMINATION_RULE_CONVERGENCE, TERMINATION_RULE_UNDISPUTED})
"""The rules that ask an agent which positions are the same."""


def _check_rules(violations: Violations, settings: Message, agents: int) -> None:
    """Note the settings that do not fit each other, or so many agents."""
    assert isinstance(settings, PanelSettings)
    termination = settings.termination
    violations.check(
        that=agents > 1 or termination.rule != TERMINATION_RULE_CONVERGENCE,
        field="spec.panel.termination.rule",
        otherwise="convergence needs at least two agents",
    )
    violations.check(
        that=not termination.grouping_agent_id or _rule_of(settings) in _ASKS,
        field="spec.panel.termination.grouping_agent_id",
        otherwise="only the rules `undisputed` and `convergence` ask an agent",
    )
    violations.check(
        that=agents > 1 or settings.synthesis_method != SYNTHESIS_METHOD_VOTING,
        field="spec.panel.synthesis_method",
        otherwise="voting needs at least two agents",
    )
    _check_effort(violations, settings)


def _check_effort(violations: Violations, settings: PanelSettings) -> None:
    """Note an effort that asks for other rounds than the settings next to it."""
    words = {number: word for word, number in enum_labels(Effort.DESCRIPTOR).items()}
    effort, rule = words.get(settings.effort), settings.termination.rule
    violations.check(
        that=not (settings.effort == EFFORT_QUICK and settings.rounds),
        field="spec.panel.effort",
        otherwise=f"quick asks for drafts alone, and rounds is {settings.rounds}; leave one of them out",
    )
    violations.check(
        that=not rule or _RULES.get(settings.effort, rule) == rule,
        field="spec.panel.effort",
        otherwise=f"{effort} and another rule of termination contradict each other; leave one of them out",
    )


def _rule_of(settings: PanelSettings) -> TerminationRule.ValueType:
    """Return when rounds end: what the rule says, or else the effort; without both, a number of rounds means all of them."""
    by_default = TERMINATION_RULE_FIXED if settings.rounds else TERMINATION_RULE_UNDISPUTED
    return settings.termination.rule or _RULES.get(settings.effort, by_default)


def _complete(settings: Message, given: Message) -> None:
    """Set the rule and the rounds that follow from what was given."""
    assert isinstance(settings, PanelSettings)
    assert isinstance(given, PanelSettings)
    settings.termination.rule = _rule_of(given)
    if settings.effort == EFFORT_QUICK:
        settings.rounds = 1


def _check_names(violations: Violations, settings: Message, agents: Collection[str]) -> None:
    assert isinstance(settings, PanelSettings)
    agent = settings.termination.grouping_agent_id
    violations.check(
        that=not agent or agent in agents,
        field="spec.panel.termination.grouping_agent_id",
        otherwise=f"no agent {agent[:80]!r} takes part",
    )


SETTINGS = Settings(
    name="panel",
    defaults=with_defaults(PanelSettings(termination=Termination(rule=TERMINATION_RULE_UNDISPUTED))),
    check_rules=_check_rules,
    check_names=_check_names,
    complete=_complete,
    demonstration=with_defaults(PanelSettings(rounds=1)),  # it is to be over in about a minute
)
