"""What agents hold against an answer, in every format: told whole, and told once."""

import pytest

from parley.orchestrator.api.answer import answer_parts
from parley.orchestrator.engine.format import Format
from parley.orchestrator.formats import arena, moderated, panel
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import ArenaOutcome
from parley.v1.debate_pb2 import Debate, DebateSpec, Outcome, Participant
from parley.v1.moderated_pb2 import ModeratedOutcome
from parley.v1.panel_pb2 import Objection, PanelOutcome

SHORT = "It fades."
LONG = " ".join(["It fades."] * 50)


def make_outcome(name: str, text: str) -> Outcome:
    """An answer of this format, with which an agent disagrees."""
    objections = [Objection(agent_id="bo", text=text)]
    match name:
        case "panel":
            return Outcome(description="Red.", panel=PanelOutcome(objections=objections))
        case "arena":
            return Outcome(description="Red.", arena=ArenaOutcome(dissent=objections))
        case _:
            return Outcome(description="Red.", moderated=ModeratedOutcome(dissents=objections))


@pytest.mark.parametrize(
    ("debate_format", "title"),
    [(panel.V1, "Objections"), (arena.V1, "Dissent"), (moderated.V1, "Dissent")],
    ids=["panel", "arena", "moderated"],
)
def test_dissent_too_long_for_the_verdict_is_told_whole_below_it_and_no_other_is(
    debate_format: Format, title: str
) -> None:
    def list_below(text: str) -> list[str]:
        debate = Debate(
            spec=DebateSpec(agents=[Participant(agent=Agent(id="bo", name="Bo"))]),
            outcome=make_outcome(debate_format.name, text),
        )
        parts = answer_parts(debate, debate_format, below_verdict=True)
        return [item.partition(": ")[2] for part in parts if part.title == title for item in part.items]

    assert list_below(LONG) == [LONG]
    assert list_below(SHORT) == []
