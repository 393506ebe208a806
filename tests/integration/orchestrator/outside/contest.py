"""A format from outside: every agent writes a haiku, and the shortest one is the answer."""

import asyncio

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.phases.prompting import SYSTEM_SECTION
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import RoundFinished, RoundStarted
from tests.integration.orchestrator.outside.haiku import HAIKU, SECTION, Haiku, write_haiku


async def contest(debate: Debate) -> Outcome:
    """Hold the contest."""
    debate.record_event("round/1/started", RoundStarted(number=1, total=1))
    written = await asyncio.gather(*(write_haiku(debate, each) for each in debate.participants))
    debate.record_event("round/1/finished", RoundFinished(number=1))
    texts = ["\n".join(each.lines) for each in written if isinstance(each, Haiku)]
    if not texts:
        raise DebateFailedError("NO_HAIKU", "no agent wrote one")
    return Outcome(description=min(texts, key=lambda text: (len(text), text)))


CONTEST = Format(
    name="contest",
    version=1,
    run=contest,
    debater_sections=frozenset({SYSTEM_SECTION, SECTION}),
    activities=(HAIKU,),
)
