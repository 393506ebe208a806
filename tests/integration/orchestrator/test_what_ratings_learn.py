"""What the ratings service knows of agents after debates that were really held."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from parley.orchestrator.log import journal
from parley.v1.arena_pb2 import TeamSettings
from parley.v1.event_pb2 import DebateCreated, TeamSelected
from parley.v1.ratings_pb2 import (
    GetPersonaRequest,
    ListMatchesRequest,
    ListRatingsRequest,
    ListRelationshipsRequest,
)
from parley.v1.ratings_pb2_grpc import RatingsServiceStub
from parley.v1.voting_pb2 import VotingSettings
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec
from tests.support.debate_logs import StoppingLog, payloads_of
from tests.support.orchestration import WITHIN, Backstage, backstage, make_debate
from tests.support.real_services import free_address, ratings_at
from tests.support.scripted_gateway import ScriptedGateway

QUICK = arena_settings(revision_rounds=1)


def answers(*taken_up: str) -> ScriptedGateway:
    """Agents that all vote for ada, whom the judge ranks first, and take up what these critics raise."""
    gateway = ArenaScript(choice="ada").gateway()
    gateway.text = lambda step, agent: (
        f"{agent} answers {step}.\nPosition: {agent} stands by {step}\n## Answers to issues\n"
        + "\n".join(
            f"{letter}.1: {'taken up' if letter in taken_up else 'not taken up, because it is wrong'}"
            for letter in "ABC"
        )
    )
    return gateway


@asynccontextmanager
async def start_with_ratings(
    folder: Path, gateway: ScriptedGateway
) -> AsyncIterator[tuple[Backstage, RatingsServiceStub]]:
    """Yield a stage, whose ratings are real, and these ratings."""
    address = free_address()
    async with (
        ratings_at(address, folder / "ratings"),
        grpc.aio.insecure_channel(address) as channel,
        backstage(folder / "orchestrator", gateway) as stage,
    ):
        yield replace(stage, ratings=channel), RatingsServiceStub(channel)


async def test_an_arena_tells_who_was_right_how_sure_and_how_agents_met(tmp_path: Path) -> None:
    async with start_with_ratings(tmp_path, answers("B")) as (stage, ratings):
        async with stage.replica() as replica:
            await stage.comes_to(await replica.create(arena_spec(3, QUICK)), "COMPLETED")
        listed = (await ratings.ListRatings(ListRatingsRequest())).ratings
        persona = await ratings.GetPersona(GetPersonaRequest(agent_id="bo"))
        met = (await ratings.ListRelationships(ListRelationshipsRequest(agent_id="ada"))).relationships
    voters = [each for each in listed if each.judged_answers]
    assert len(voters) >= 2, "those who were not waited for have cast no ballot"
    for each in voters:
        assert (each.judged_answers, each.right_answers) == (1, 1)
        assert abs(each.brier_score - 0.01) < 1e-9, "all were 90 % sure, and right"
        assert abs(each.expected_calibration_error - 0.1) < 1e-9
        assert each.calibration > 0.5
    overall = {each.phase: each.mean_score for each in persona.strengths if not each.domain}
    assert overall.items() >= {"proposal": 8.0, "critique": 10.0}.items()
    assert {each.other_agent_id for each in met} == {"bo", "cy"}
    assert sum(each.agreements for each in met) >= 1


async def test_a_panel_tells_whose_work_was_sound(tmp_path: Path) -> None:
    async with start_with_ratings(tmp_path, ScriptedGateway()) as (stage, ratings):
        async with stage.replica() as replica:
            await stage.comes_to(await replica.create(make_debate(2, 1)), "COMPLETED")
        listed = (await ratings.ListRatings(ListRatingsRequest())).ratings
        persona = await ratings.GetPersona(GetPersonaRequest(agent_id="ada"))
    assert [(each.agent_id, each.judged_answers) for each in listed] == [("bo", 1), ("ada", 1)]
    assert not any(each.HasField("brier_score") for each in listed), "none has said how sure it was"
    assert {each.phase for each in persona.strengths} >= {"proposal"}


async def test_a_debate_is_told_once_wherever_its_owner_stops_after_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_BATCH", 1)  # every event is a record, and so a place to stop at
    settings = arena_settings(revision_rounds=1, verification=False, voting=VotingSettings(early_end=False))
    spec = arena_spec(2, settings)
    async with start_with_ratings(tmp_path, answers("B")) as (stage, ratings):
        calm = await _hold_debate(stage, spec)
        concluded = next(place for place, kind in enumerate(calm, start=1) if kind == "concluded")
        for at in range(concluded, len(calm) + 1):
            log = StoppingLog(stage.store.log, at, durable=True)
            async with stage.replica(log=log) as first:
                debate = await first.create(spec)
                async with asyncio.timeout(WITHIN):
                    await log.stopped.wait()
            async with stage.replica():
                await stage.comes_to(debate, "COMPLETED")
        matches = (await ratings.ListMatches(ListMatchesRequest())).matches
        listed = (await ratings.ListRatings(ListRatingsRequest())).ratings
    debates = 1 + len(calm) + 1 - concluded
    assert len(matches) == debates
    assert {each.matches for each in listed} == {debates}
    assert {each.judged_answers for each in listed} == {debates}


async def test_a_team_is_chosen_by_what_earlier_debates_have_shown(tmp_path: Path) -> None:
    gateway = answers("B")
    async with start_with_ratings(tmp_path, gateway) as (stage, _), stage.replica() as replica:
        for _ in range(2):
            await stage.comes_to(await replica.create(arena_spec(3, QUICK)), "COMPLETED")
        team = TeamSettings(size=2, exploration_share=0)
        settings = arena_settings(revision_rounds=1, team=team)
        events = await stage.comes_to(await replica.create(arena_spec(3, settings)), "COMPLETED")
    (selected,) = payloads_of(events, TeamSelected)
    assert selected.agent_ids == ["ada", "bo"], "whom the judge had ranked first and second"
    assert all("2 matches known" in each.reason for each in selected.candidates)


async def _hold_debate(stage: Backstage, spec: DebateCreated) -> list[str]:
    async with stage.replica() as replica:
        events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    return [each.kind for each in events]
