"""The moderated debate, version 1."""

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats.moderated.settings import SETTINGS
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.spec import Limits
from parley.orchestrator.phases.prompting import SYSTEM_SECTION
from parley.v1.debate_pb2 import Outcome

__all__ = ["V1"]


async def _run(_debate: Debate) -> Outcome:
    """Hold the debate and return its outcome."""
    raise DebateFailedError("NOT_YET", "the flow follows in the next commit")


V1 = Format(
    name="moderated",
    version=1,
    run=_run,
    settings=SETTINGS,
    limits=Limits(round_seconds=120.0, total_seconds=1800.0, checkpoint_seconds=1800.0),
    debater_sections=frozenset({SYSTEM_SECTION}),
    judge_sections=frozenset({SYSTEM_SECTION}),
)
