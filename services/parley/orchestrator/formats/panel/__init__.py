"""The panel: rounds of propose, critique and refine, then an answer."""

from parley.orchestrator.formats.panel.v1 import V1

__all__ = ["V1"]
