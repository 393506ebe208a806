"""The formats that Parley ships. A debate finishes on the version it began with, so old versions stay in this list."""

from parley.orchestrator.engine.format import Formats
from parley.orchestrator.formats import arena, evaluation, moderated, panel


def all_formats() -> Formats:
    """Return all formats; the first one's name, in its latest version, is meant if a debate names none."""
    return Formats([panel.V1, arena.V1, moderated.V1, evaluation.V1])
