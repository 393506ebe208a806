"""An owner that stops at any event loses nothing: the next one finishes the debate and asks nothing twice."""

import json
from pathlib import Path

import pytest

from parley.v1.arena_pb2 import TOPOLOGY_KIND_ROUND_ROBIN, Topology, TricksterSettings
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONVERGED,
    AssessResponse,
    GroupPositionsResponse,
    PositionGroup,
)
from parley.v1.debate_pb2 import Clarifications
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec
from tests.support.checked_format import CHECKED_FORMATS, make_checked_debate
from tests.support.debate_logs import find_concluded, outcomes
from tests.support.orchestration import make_debate, make_limits
from tests.support.scripted_answers import judgement
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.small_format import SMALL, formats_with_small
from tests.support.stopping import Play

pytestmark = pytest.mark.timeout(240)  # each goes on some fifty times, on a machine that may be busy
every_24th_event = pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 24))]
)
"""Every 24th event with every change, the others with the long tests: from each a whole debate goes on."""


@every_24th_event
@pytest.mark.parametrize("agents", [pytest.param(2, marks=pytest.mark.long), 3])
async def test_a_debate_that_is_stopped_at_any_event_ends_as_if_it_had_not_been(
    agents: int, part: int, tmp_path: Path
) -> None:
    def gateway() -> ScriptedGateway:
        scripted = ScriptedGateway()
        scripted.fail("round/1/critique/ada/of/bo")
        scripted.fail("round/2/refine/bo")
        return scripted

    held = await Play(make_debate(agents), gateway).held(tmp_path)
    assert sum(end.startswith("failed") for end in outcomes(held.events).values()) == 2
    await held.ends_the_same_wherever_it_is_stopped(part, of=24)


@every_24th_event
async def test_so_does_a_debate_with_checkpoints_a_wait_and_a_round_whose_time_runs_out(
    part: int, tmp_path: Path
) -> None:
    def gateway() -> ScriptedGateway:
        scripted = ScriptedGateway()
        scripted.fail("round/1/propose/bo", refusal("PROVIDER_UNAVAILABLE"), attempt=1)
        scripted.hold("round/1/critique/ada/of/bo")
        return scripted

    spec = make_checked_debate(limits=make_limits(round=200))
    held = await Play(spec, gateway, CHECKED_FORMATS, flying=True).held(tmp_path)
    kinds = [event.kind for event in held.events]
    assert [kinds.count(each) for each in ("checkpoint_closed", "wait_finished", "limit_reached")] == [
        2,
        1,
        1,
    ]
    await held.ends_the_same_wherever_it_is_stopped(part, of=24)


@every_24th_event
async def test_so_does_a_debate_that_its_time_limit_ends(part: int, tmp_path: Path) -> None:
    def gateway() -> ScriptedGateway:
        scripted = ScriptedGateway()
        scripted.hold("round/2/propose/bo")
        return scripted

    spec = make_debate(2, 3, limits=make_limits(total=200))
    held = await Play(spec, gateway, flying=True).held(tmp_path)
    assert find_concluded(held.events).ended_by == "total_timeout"
    await held.ends_the_same_wherever_it_is_stopped(part, of=24)


@every_24th_event
async def test_so_does_a_debate_that_settles_votes_lets_agents_join_asks_a_person_and_waits(
    part: int,
    tmp_path: Path,
) -> None:
    def gateway() -> ScriptedGateway:
        scripted = ScriptedGateway()
        scripted.judge = lambda _schema: json.dumps({"choice": "tea", "reason": "it is warm"})
        scripted.hold("vote/doubt")
        scripted.fail("consent/bo")
        return scripted

    spec = make_debate(2, 1, format=SMALL.id)
    held = await Play(spec, gateway, formats_with_small(), flying=True).held(tmp_path)
    kinds = [event.kind for event in held.events]
    assert [kinds.count(each) for each in ("settled", "participant_joined", "timer_fired")] == [1, 2, 1]
    assert held.outcome.description == "tea, approved; counted: ada, bo, hope; without consent: bo"
    await held.ends_the_same_wherever_it_is_stopped(part, of=24)


@every_24th_event
async def test_so_does_an_arena_with_faults_whose_votes_end_early_and_whose_judge_adds_a_round(
    part: int, tmp_path: Path
) -> None:
    def gateway() -> ScriptedGateway:
        script = ArenaScript(choice="ada", sufficient=False, objections={"bo": "It forgets the cost."})
        scripted = script.gateway()
        scripted.group = lambda: GroupPositionsResponse(
            groups=[PositionGroup(agent_ids=["ada", "bo", "cy"], position="tea")], certain=True
        )
        scripted.hold("round/*/vote/cy")
        scripted.fail("round/7/critique/*/of/bo")
        scripted.fail("round/7/refine/cy")
        scripted.fail("verification/ada")
        return scripted

    settings = arena_settings(revision_rounds=1, topology=Topology(kind=TOPOLOGY_KIND_ROUND_ROBIN))
    held = await Play(arena_spec(3, settings), gateway).held(tmp_path)
    arena = held.outcome.arena
    assert (arena.winner_agent_id, arena.extended_rounds) == ("ada", 1)
    assert [list(each.left_out_agent_ids) for each in arena.votes] == [["cy"], ["cy"]]
    await held.ends_the_same_wherever_it_is_stopped(part, of=24)


@pytest.mark.parametrize("part", [5, pytest.param(17, marks=pytest.mark.long)])
async def test_so_does_an_arena_with_a_trickster_that_asks_and_an_observer(part: int, tmp_path: Path) -> None:
    def gateway() -> ScriptedGateway:
        scripted = ArenaScript(choice="ada", support=1).gateway()
        scripted.assess = lambda _: AssessResponse(
            verdict=CONVERGENCE_VERDICT_CONVERGED, agreement_percent=95
        )
        return scripted

    trickster = TricksterSettings(asks=True, max_interventions=1)
    settings = arena_settings(revision_rounds=2, verification=False, trickster=trickster, observer=True)
    held = await Play(arena_spec(2, settings), gateway).held(tmp_path)
    assert [event.kind for event in held.events].count("trickster_checked") == 2
    await held.ends_the_same_wherever_it_is_stopped(part, of=24)


@every_24th_event
async def test_so_does_a_debate_that_asks_what_is_unclear_and_tracks_requirements(
    part: int, tmp_path: Path
) -> None:
    def gateway() -> ScriptedGateway:
        scripted = ScriptedGateway()
        scripted.judge = _asks_or_judges
        scripted.requirements = (("It must float.", True), ("It should be blue.", False))
        return scripted

    spec = make_debate(2, 1, clarifications=Clarifications(max_times=1))
    held = await Play(spec, gateway).held(tmp_path)
    ends = outcomes(held.events)
    assert {("clarify/1/ada", 1), ("requirements", 1), ("round/1/critique/bo/of/ada", 1)} <= ends.keys()
    synthesis = held.gateway.asked("synthesis").prompt
    assert "<<<\n1. How many users?\n>>>\nAnswers of the person who asks:\n- to 1: fine\n- fine" in synthesis
    assert "It must float." in synthesis
    await held.ends_the_same_wherever_it_is_stopped(part, of=24)


def _asks_or_judges(schema: str) -> str:
    if "questions" in json.loads(schema)["properties"]:
        return json.dumps({"questions": ["How many users?"]})
    return judgement(schema)
