"""The settings of a panel of version 1: what they are by default. What is refused is the same in all versions."""

from parley.orchestrator.engine.format import Settings
from parley.orchestrator.formats.panel.settings import check_settings
from parley.v1.agent_pb2 import SummarySettings
from parley.v1.panel_pb2 import (
    SYNTHESIS_METHOD_JUDGE,
    TERMINATION_RULE_FIXED,
    PanelSettings,
    Termination,
)

__all__ = ["MAX_SUMMARY_LENGTH", "SETTINGS", "SUMMARY_THRESHOLD"]

SUMMARY_THRESHOLD = 5000
MAX_SUMMARY_LENGTH = 2500

SETTINGS = Settings(
    name="panel",
    defaults=PanelSettings(
        rounds=3,
        include_full_history=True,
        carry_forward=False,
        summaries=SummarySettings(enabled=True, threshold=SUMMARY_THRESHOLD, max_length=MAX_SUMMARY_LENGTH),
        termination=Termination(rule=TERMINATION_RULE_FIXED, threshold_percent=90),
        synthesis_method=SYNTHESIS_METHOD_JUDGE,
    ),
    check=check_settings,
)
