"""The panel's settings: what they are by default, and what is refused."""

from collections.abc import Collection

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings
from parley.runtime.contract_settings import with_defaults
from parley.runtime.validation import Violations
from parley.v1.panel_pb2 import SYNTHESIS_METHOD_VOTING, TERMINATION_RULE_CONVERGENCE, PanelSettings


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
        that=not termination.grouping_agent_id or termination.rule == TERMINATION_RULE_CONVERGENCE,
        field="spec.panel.termination.grouping_agent_id",
        otherwise="only the rule `convergence` asks an agent",
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


SETTINGS = Settings(
    name="panel",
    defaults=with_defaults(PanelSettings()),
    check_rules=_check_rules,
    check_names=_check_names,
    demonstration=with_defaults(PanelSettings(rounds=1)),  # it is to be over in about a minute
)
