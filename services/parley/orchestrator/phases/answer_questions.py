"""What who writes an answer is asked besides it: how its positions group, and how it stands to earlier decisions."""

from typing import Any

from msgspec import Struct

from parley.orchestrator.model.tasks import Prompt
from parley.orchestrator.phases.effect import NOTHING_ASKED, PositionQuestion
from parley.orchestrator.phases.past import NO_PAST, PastQuestion


class AnswerQuestions(Struct, frozen=True):
    """What is asked besides an answer."""

    positions: PositionQuestion = NOTHING_ASKED
    past: PastQuestion = NO_PAST

    def to_prompt(self) -> Prompt:
        """Return what is asked about, as parts of a prompt."""
        return (*self.past.to_prompt(), *self.positions.to_prompt())

    def to_task(self) -> str:
        """Return what is asked, as the end of a task."""
        return self.past.to_task() + self.positions.to_task()

    def schemas(self) -> dict[str, Any]:
        """Return the schema of each part of the answer that is asked for, by its name."""
        asked = {}
        if self.past.past:
            asked["earlier_decisions"] = self.past.schema()
        if self.positions.positions:
            asked["positions"] = self.positions.schema()
        return asked
