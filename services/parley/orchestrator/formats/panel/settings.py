"""The panel's settings: what they are by default, and what is refused."""

from collections.abc import Collection

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings
from parley.runtime.validation import Violations
from parley.v1.agent_pb2 import SummarySettings
from parley.v1.panel_pb2 import (
    SYNTHESIS_METHOD_JUDGE,
    SYNTHESIS_METHOD_VOTING,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_FIXED,
    PanelSettings,
    SynthesisMethod,
    Termination,
    TerminationRule,
)

__all__ = ["SETTINGS", "check_settings"]

_MAX_ROUNDS = 100
_MAX_THRESHOLD_CHARACTERS = 10_000_000
_MAX_SUMMARY_CHARACTERS = 1_000_000


def check_settings(violations: Violations, settings: Message, agents: int) -> None:
    """Note the settings that are out of their range, below the specification; so many agents debate."""
    assert isinstance(settings, PanelSettings)
    summaries, termination = settings.summaries, settings.termination
    check = violations.check_range
    check("spec.panel.rounds", settings.rounds, 0, _MAX_ROUNDS)
    check("spec.panel.summaries.threshold", summaries.threshold, 0, _MAX_THRESHOLD_CHARACTERS)
    check("spec.panel.summaries.max_length", summaries.max_length, 0, _MAX_SUMMARY_CHARACTERS)
    check("spec.panel.termination.threshold_percent", termination.threshold_percent, 0, 100)
    violations.check(
        that=termination.rule in TerminationRule.values(),
        field="spec.panel.termination.rule",
        otherwise="is not a known rule",
    )
    violations.check(
        that=agents > 1 or termination.rule != TERMINATION_RULE_CONVERGENCE,
        field="spec.panel.termination.rule",
        otherwise="convergence needs at least two agents",
    )
    violations.check(
        that=not termination.grouping_agent_id or termination.rule == TERMINATION_RULE_CONVERGENCE,
        field="spec.panel.termination.grouping_agent_id",
        otherwise="only the rule `convergence` asks an agent",
    )
    violations.check(
        that=settings.synthesis_method in SynthesisMethod.values(),
        field="spec.panel.synthesis_method",
        otherwise="is not a known method",
    )
    violations.check(
        that=agents > 1 or settings.synthesis_method != SYNTHESIS_METHOD_VOTING,
        field="spec.panel.synthesis_method",
        otherwise="voting needs at least two agents",
    )


def _check_names(violations: Violations, settings: Message, agents: Collection[str]) -> None:
    assert isinstance(settings, PanelSettings)
    agent = settings.termination.grouping_agent_id
    violations.check(
        that=not agent or agent in agents,
        field="spec.panel.termination.grouping_agent_id",
        otherwise=f"no agent {agent[:80]!r} takes part",
    )


_DEFAULTS = PanelSettings(
    rounds=3,
    include_full_history=True,
    carry_forward=False,
    summaries=SummarySettings(enabled=True),
    termination=Termination(rule=TERMINATION_RULE_FIXED, threshold_percent=90),
    synthesis_method=SYNTHESIS_METHOD_JUDGE,
)
_DEMONSTRATION = PanelSettings()
_DEMONSTRATION.CopyFrom(_DEFAULTS)
_DEMONSTRATION.rounds = 1  # it is to be over in about a minute

SETTINGS = Settings(
    name="panel",
    defaults=_DEFAULTS,
    check=check_settings,
    check_names=_check_names,
    demonstration=_DEMONSTRATION,
)
