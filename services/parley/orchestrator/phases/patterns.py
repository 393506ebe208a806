"""Critique patterns: issues that earlier debates on the like raised with success, shown to critics and to who writes a first draft."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.short_text import to_line
from parley.orchestrator.model.tasks import Activity, Prompt
from parley.orchestrator.peers.services import truncate_text
from parley.orchestrator.phases.prompting import quotation
from parley.orchestrator.phases.situation import HISTORY_PRIORITY
from parley.v1.event_pb2 import StepFailed
from parley.v1.memory_pb2 import CritiquePattern, ListPatternsRequest

PATTERNS: Final = Activity(
    "patterns", "looking for issues of past debates", title="search for issues of past debates"
)
PATTERNS_FOR_CRITICS: Final = (
    "The issues of earlier debates above were raised against other proposals: if this one has one of them too, name it; name none only"
    " because it stands above."
)
PATTERNS_FOR_AUTHORS: Final = (
    "The issues of earlier debates above were raised against other proposals: where one could be raised against yours, answer it there"
    " beforehand; pass over the others without a word."
)
_KEY: Final = "patterns"
_MAX_SHOWN: Final = 3
_MAX_LINE: Final = 300
_TITLE: Final = "Issues that earlier debates on like questions raised, and that led to changes"


async def recall_patterns(debate: Debate) -> Sequence[CritiquePattern]:
    """Return what was criticized with success in debates on the like, best first; none if there is none, or memory gives none in time."""
    spec = debate.spec
    if not spec.patterns:
        return ()
    request = ListPatternsRequest(
        text=truncate_text(spec.question),
        domain=spec.domain,
        only_successful=True,
        only_related=True,
        page_size=_MAX_SHOWN,
    )
    found = await debate.call_service(
        _KEY, PATTERNS.create_work(), request, lambda: debate.services.memory.list_patterns(request)
    )
    if isinstance(found, StepFailed):
        debate.warn(_KEY, f"issues of past debates could not be recalled: {found.message}")
        return ()
    return found.patterns


def patterns_prompt(patterns: Sequence[CritiquePattern]) -> Prompt:
    """Return what an agent reads of such issues; nothing if there are none."""
    lines = [
        f"- {to_line(each.examples[0], _MAX_LINE)} ({_describe(each)})" for each in patterns if each.examples
    ]
    return (quotation(_TITLE, "\n".join(lines), HISTORY_PRIORITY),) if lines else ()


def _describe(pattern: CritiquePattern) -> str:
    return f"raised {_times(pattern.raised)}, taken up {_times(pattern.taken_up)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
