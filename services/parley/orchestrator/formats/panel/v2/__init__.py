"""The panel, version 2."""

from parley.orchestrator.formats.panel.v2.flow import V2

__all__ = ["V2"]
