"""The formats that Parley ships. A debate finishes on the version it began with, so old versions stay in this list."""

from parley.orchestrator.engine.format import Format, Formats, LateFormat


def all_formats() -> Formats:
    """Return all formats; the first one's name, in its latest version, is meant if a debate names none."""
    return Formats(
        [
            LateFormat("panel", 1, _load_panel),
            LateFormat("arena", 1, _load_arena),
            LateFormat("moderated", 1, _load_moderated),
            LateFormat("evaluation", 1, _load_evaluation),
        ]
    )


def _load_panel() -> Format:
    from parley.orchestrator.formats.panel import V1

    return V1


def _load_arena() -> Format:
    from parley.orchestrator.formats.arena import V1

    return V1


def _load_moderated() -> Format:
    from parley.orchestrator.formats.moderated import V1

    return V1


def _load_evaluation() -> Format:
    from parley.orchestrator.formats.evaluation import V1

    return V1
