"""Arenas on the scripted gateway: what is debated, and agents that vote, judge and consent as a test wants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parley.orchestrator.api.folding import fold
from parley.orchestrator.formats.arena.settings import SETTINGS
from parley.orchestrator.log.envelope import Envelope
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.event_pb2 import DebateCreated, RoundsEnded
from tests.support.debate_logs import run_debate
from tests.support.orchestration import make_debate
from tests.support.scripted_gateway import ScriptedGateway, StepRequest, scripted_judge


def arena_settings(**fields: Any) -> ArenaSettings:
    """The arena's defaults, with these fields in place of them."""
    completed = SETTINGS.with_defaults(ArenaSettings(**fields))
    assert isinstance(completed, ArenaSettings)
    return completed


def arena_spec(count: int = 3, settings: ArenaSettings | None = None, **fields: Any) -> DebateCreated:
    """An arena of so many agents, named ada, bo, cy, and so on."""
    return make_debate(count, format="arena@1", settings=settings or arena_settings(), **fields)


async def run_arena(
    folder: Path, gateway: ScriptedGateway, settings: ArenaSettings | None = None, agents: int = 3
) -> list[Envelope]:
    """Run an arena of so many agents to its answer, and return its log."""
    return await run_debate(folder, gateway, arena_spec(agents, settings))


def find_end(events: Sequence[Envelope]) -> RoundsEnded:
    """Why the rounds ended, as the log says once and the finished debate's state does too."""
    (end,) = [event.payload for event in events if isinstance(event.payload, RoundsEnded)]
    state = fold(events)
    assert (state.stop_reason, state.stop_explanation) == (end.reason, end.explanation)
    return end


@dataclass(frozen=True, slots=True)
class ArenaScript:
    """What the agents of an arena say where they are asked for something structured: the same whenever they are asked.

    Attributes:
        choice: Whose proposal everybody votes for; empty: the one that it is shown first.
        sufficient: What the judge says of the discussion; `more_is_of_use`: what it says between rounds.
        judging_role: The role that everybody wants as judge; empty: the first that it is shown.
        holds: The first position that the judge holds to be right, where it is asked; empty: none.
        support: How well each proposal is supported, as the judge says where it is asked, 0 to 10.
        objections: What participants cannot live with, by agent id; the others can.
    """

    choice: str = ""
    sufficient: bool = True
    more_is_of_use: bool = True
    judging_role: str = ""
    holds: str = ""
    objections: Mapping[str, str] = field(default_factory=dict)
    support: int = 2

    def gateway(self) -> ScriptedGateway:
        """Return a gateway whose agents answer so."""
        return scripted_judge(self._answer)

    def _answer(self, asked: StepRequest, properties: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if "choice" in properties:
            judge = {"choice": self._judge(asked), "reason": "it sees the whole"}
            ballot = {"choice": self._choice(asked), "confidence": 0.9, "reason": "it holds"}
            return ballot if "confidence" in properties else judge
        if "ranking" in properties:
            letters = properties["ranking"]["items"]["properties"]["agent"]["enum"]
            ranking = [
                {"agent": letter, "score": 9 - place, "reason": f"{letter} is sound"}
                for place, letter in enumerate(letters)
            ]
            missing = "" if self.sufficient else "Who pays for it?"
            said = {"ranking": ranking, "sufficient": self.sufficient, "missing": missing}
            return {**said, **self._position(asked)} if "position" in properties else said
        if "can_live_with_it" in properties:
            objection = self.objections.get(asked.agent.id, "")
            return {"can_live_with_it": not objection, "objection": objection}
        if "proposals" in properties:
            letters = properties["proposals"]["items"]["properties"]["agent"]["enum"]
            proposals = [{"agent": letter, "support": self.support} for letter in letters]
            return {"proposals": proposals, "missing": "Nobody says what it costs."}
        if "more_is_of_use" in properties:
            return {"reason": "They repeat themselves.", "more_is_of_use": self.more_is_of_use}
        return None

    def _position(self, asked: StepRequest) -> Mapping[str, Any]:
        shown = next(part.text for part in asked.parts if part.text.startswith("Positions that were taken"))
        lines = [line.partition(". ") for line in shown.splitlines()]
        number = next((int(number) for number, _, text in lines if text and text == self.holds), 0)
        return {"position": number, "position_confidence": 0.6, "position_reason": "it holds water"}

    def _judge(self, asked: StepRequest) -> int:
        lines = [line.partition(". ") for line in asked.parts[-1].text.splitlines()]
        wanted = (number for number, _, role in lines if role and role == self.judging_role)
        return int(next(wanted, "1"))

    def _choice(self, asked: StepRequest) -> int:
        shown = [part.text for part in asked.parts if part.text.startswith("Proposal ")]
        written = (number for number, text in enumerate(shown, start=1) if f"{self.choice} answers" in text)
        return next(written, 1)
