"""The panel, version 1, as it was released: its order of steps, and the words of the phases that later versions changed.

Debates that began with it end with it, so nothing here changes any more.
"""

from parley.orchestrator.formats.panel.v1.flow import V1

__all__ = ["V1"]
