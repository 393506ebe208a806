"""Who disagrees with an answer, as an MCP client reads it."""

from types import SimpleNamespace
from typing import cast

from parley.client import ParleyClient
from parley.mcp.readings import read_debate
from parley.v1.arena_pb2 import ArenaOutcome
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, Debate, Outcome
from parley.v1.effect_pb2 import DebateEffect, TakenPosition
from parley.v1.orchestrator_pb2 import GetAnswerResponse
from parley.v1.panel_pb2 import Objection, PanelOutcome
from parley.v1.voting_pb2 import Vote

EFFECT = DebateEffect(
    decided_position=1,
    positions=[
        TakenPosition(text="Keep one.", last_agent_ids=["ada"]),
        TakenPosition(text="Split it.", last_agent_ids=["bo", "cy"]),
    ],
)


async def list_dissent(outcome: Outcome) -> list[tuple[str, str]]:
    async def get_summary(debate_id: str) -> Debate:
        return Debate(id=debate_id, status=DEBATE_STATUS_COMPLETED)

    async def get_answer(_: str) -> GetAnswerResponse:
        return GetAnswerResponse(markdown="Keep one.", outcome=outcome)

    parley = cast(ParleyClient, SimpleNamespace(get_summary=get_summary, get_answer=get_answer))
    result = await read_debate(parley, "deb-20260102-030405-abcdefgh")
    return [(each.agent_id, each.text) for each in result.dissent]


async def test_who_takes_another_position_in_the_end_disagrees_where_nobody_voted() -> None:
    assert await list_dissent(Outcome(effect=EFFECT)) == [("bo", "Split it."), ("cy", "Split it.")]
    assert await list_dissent(Outcome(effect=EFFECT, panel=PanelOutcome(vote=Vote()))) == []
    assert await list_dissent(Outcome(effect=EFFECT, arena=ArenaOutcome())) == []


async def test_an_agent_that_says_what_it_objects_to_is_named_once() -> None:
    panel = PanelOutcome(objections=[Objection(agent_id="bo", text="It will grow.")])
    assert await list_dissent(Outcome(effect=EFFECT, panel=panel)) == [
        ("bo", "It will grow."),
        ("cy", "Split it."),
    ]


async def test_other_positions_are_no_dissent_where_the_decision_is_none_of_them() -> None:
    effect = DebateEffect(positions=EFFECT.positions)
    assert await list_dissent(Outcome(effect=effect)) == []
