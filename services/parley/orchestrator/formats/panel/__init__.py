"""The panel: rounds of propose, critique and refine, then an answer. A folder a version; what they share stands here."""

from parley.orchestrator.formats.panel.v1 import V1
from parley.orchestrator.formats.panel.v2 import V2

__all__ = ["V1", "V2"]
