"""What an arena saves: rounds that would change nothing, and agents that need not be asked."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.arena import V1
from parley.orchestrator.log.envelope import Envelope
from parley.v1.agent_pb2 import Usage
from parley.v1.arena_pb2 import ArenaSettings, StoppingSettings
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    AgentStability,
    AssessRequest,
    AssessResponse,
    Contradiction,
    GroupPositionsResponse,
    PositionGroup,
)
from parley.v1.debate_pb2 import (
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    STOP_REASON_COST_BUDGET,
    STOP_REASON_PERSON,
    STOP_REASON_PROBABLE_ENOUGH,
    STOP_REASON_STABLE_DISAGREEMENT,
    STOP_REASON_STABLE_POSITIONS,
    STOP_REASON_TOKEN_BUDGET,
    STOP_REASON_TOTAL_TIMEOUT,
    STOP_REASON_UNANIMOUS_DRAFTS,
)
from parley.v1.event_pb2 import RoundAssessed, RoundStarted
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec, find_end, run_arena
from tests.support.debate_logs import outcome_of
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import backstage, make_limits
from tests.support.scripted_faults import refusal
from tests.support.scripted_services import unsure_until_settled


def findings(events: Sequence[Envelope]) -> list[tuple[int, bool, str]]:
    found = [event.payload for event in events if isinstance(event.payload, RoundAssessed)]
    return [(each.round, each.ends_rounds, each.finding) for each in found]


def rounds(events: Sequence[Envelope]) -> list[int]:
    return [event.payload.number for event in events if isinstance(event.payload, RoundStarted)]


def make_groups(*groups: str, certain: bool = True) -> GroupPositionsResponse:
    """Agents by position, as `ada bo`, `cy`."""
    return GroupPositionsResponse(
        groups=[PositionGroup(agent_ids=each.split(), position=f"as {each}") for each in groups],
        certain=certain,
    )


async def test_where_all_first_drafts_agree_no_round_is_paid_for(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.group = lambda: make_groups("ada bo cy")
    events = await run_arena(tmp_path, gateway, arena_settings())
    assert find_end(events).reason == STOP_REASON_UNANIMOUS_DRAFTS
    assert (1, True, find_end(events).explanation) in findings(events)
    assert rounds(events) == [0, 1, 7, 8]
    assert not gateway.steps("round/*/critique/*")
    assert not gateway.steps("round/*/refine/*")
    assert outcome_of(events).arena.votes, "the vote is held as always"


@pytest.mark.parametrize(
    ("groups", "stopping"),
    [
        (make_groups("ada bo", "cy"), StoppingSettings()),
        (make_groups("ada bo cy", certain=False), StoppingSettings()),
        (make_groups("ada bo cy"), StoppingSettings(unanimous_drafts=False)),
    ],
    ids=["one is apart", "it is not certain", "the rule is off"],
)
async def test_otherwise_the_rounds_are_held(
    groups: GroupPositionsResponse, stopping: StoppingSettings, tmp_path: Path
) -> None:
    gateway = ArenaScript().gateway()
    gateway.group = lambda: groups
    events = await run_arena(tmp_path, gateway, arena_settings(revision_rounds=1, stopping=stopping))
    assert find_end(events).reason == STOP_REASON_ALL_ROUNDS_COMPLETED
    assert gateway.steps("round/2/critique/*")


async def test_a_judge_that_is_not_content_has_unanimous_drafts_criticized_after_all(tmp_path: Path) -> None:
    gateway = ArenaScript(sufficient=False).gateway()
    gateway.group = lambda: make_groups("ada bo cy")
    events = await run_arena(tmp_path, gateway, arena_settings())
    assert rounds(events) == [0, 1, 7, 8, 9]
    assert len(gateway.steps("round/9/critique/*")) == 6


def make_assessments(
    groups: Mapping[int, Sequence[str]], moved: Mapping[int, Sequence[str]]
) -> Callable[[AssessRequest], AssessResponse]:
    """Assessments of rounds: who is together after each, and who has left the position that it had before."""

    def assess(request: AssessRequest) -> AssessResponse:
        number = next(n for n in (5, 4, 3) if any(f"round/{n}/" in stand.text for stand in request.positions))
        group_of = {agent: group for group in groups[number] for agent in group.split()}
        agents = sorted(stand.agent_id for stand in request.positions)
        return AssessResponse(
            verdict=CONVERGENCE_VERDICT_CONTINUING,
            stability=[
                AgentStability(agent_id=each, kept=each not in moved.get(number, ())) for each in agents
            ],
            contradictions=[
                Contradiction(agent_id=one, other_agent_id=other)
                for one in agents
                for other in agents
                if one < other and group_of[one] != group_of[other]
            ],
        )

    return assess


async def test_rounds_end_once_who_holds_which_position_hardly_changes(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.group = lambda: make_groups("ada", "bo", "cy")
    gateway.assess = make_assessments({3: ["ada bo", "cy"], 4: ["ada bo", "cy"]}, {3: ["bo"]})
    events = await run_arena(tmp_path, gateway, arena_settings())
    assert find_end(events).reason == STOP_REASON_STABLE_POSITIONS
    assert rounds(events) == [0, 1, 2, 3, 4, 7, 8]
    told = [finding for _, _, finding in findings(events) if finding.startswith("who holds")]
    assert told == [
        "who holds which position has changed by 36 % since the round before (threshold 5 %)",
        "who holds which position has changed by 0 % since the round before (threshold 5 %)",
    ]


async def test_one_change_of_mind_a_round_keeps_them_going(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.group = lambda: make_groups("ada", "bo", "cy")
    gateway.assess = make_assessments(
        {3: ["ada bo", "cy"], 4: ["ada bo cy"], 5: ["ada cy", "bo"]}, {3: ["bo"], 4: ["cy"], 5: ["bo"]}
    )
    events = await run_arena(tmp_path, gateway, arena_settings())
    assert find_end(events).reason == STOP_REASON_ALL_ROUNDS_COMPLETED


async def test_they_go_on_where_it_cannot_be_told_or_the_rule_is_off(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    events = await run_arena(tmp_path / "untold", gateway, arena_settings(revision_rounds=1))
    assert "whether the agents have changed their positions cannot be told" in [
        f for _, _, f in findings(events)
    ]
    assert find_end(events).reason == STOP_REASON_ALL_ROUNDS_COMPLETED
    gateway = ArenaScript().gateway()
    gateway.assess = make_assessments({3: ["ada bo cy"]}, {})
    off = arena_settings(revision_rounds=1, stopping=StoppingSettings(stable_positions=False))
    assert (
        find_end(await run_arena(tmp_path / "off", gateway, off)).reason == STOP_REASON_ALL_ROUNDS_COMPLETED
    )


@pytest.mark.parametrize("on", [True, False])
async def test_who_has_moved_is_asked_where_rounds_may_end_by_it(tmp_path: Path, on: bool) -> None:
    gateway = ArenaScript().gateway()
    gateway.assess = lambda _: AssessResponse(
        verdict=CONVERGENCE_VERDICT_CONTINUING, stability=[AgentStability(agent_id="ada")]
    )
    stopping = StoppingSettings(stable_positions=on)
    await run_arena(tmp_path, gateway, arena_settings(revision_rounds=1, stopping=stopping))
    assert len(gateway.steps("round/3/grouping*")) == (2 if on else 0)


def in_turn() -> ArenaSettings:
    return arena_settings(revision_rounds=1, stopping=StoppingSettings(sequential=True))


async def test_the_best_rated_are_asked_first_and_nobody_else_where_they_are_sure_enough(
    tmp_path: Path,
) -> None:
    gateway = ArenaScript().gateway()
    gateway.weights = {"ada": 1.0, "bo": 2.8, "cy": 1.0, "dee": 2.8}
    gateway.group = lambda: make_groups("bo dee")
    events = await run_arena(tmp_path, gateway, in_turn(), agents=4)
    assert find_end(events).reason == STOP_REASON_PROBABLE_ENOUGH
    assert find_end(events).explanation == (
        "the position of bo, dee is 97 % probable (threshold 90 %); not asked: ada, cy"
    )
    assert (1, True, find_end(events).explanation) in findings(events)
    assert {asked.agent.id for asked in gateway.calls} == {"bo", "dee", "judge"}
    assert outcome_of(events).arena.not_asked_agent_ids == ["ada", "cy"]
    assert "Ada and Cy: what the others proposed was probable enough." in render_report(fold(events), V1)


async def test_whether_the_best_rated_agree_is_asked_and_not_asked_again(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.weights = {"bo": 2.8, "cy": 2.8}
    gateway.group_by = unsure_until_settled
    gateway.grouping = lambda _: json.dumps({"groups": [["P1", "P2"]], "cannot_be_told": []})
    events = await run_arena(tmp_path, gateway, in_turn())
    assert find_end(events).reason == STOP_REASON_PROBABLE_ENOUGH
    assert len(gateway.steps("first-draft-vote/*")) == len(gateway.steps("first-draft-vote/of-2/*")) == 2


async def test_where_they_are_not_all_are_asked_one_after_the_other_and_debate(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.weights = {"ada": 1.0, "bo": 1.0, "cy": 1.5}

    def group_by_calls() -> GroupPositionsResponse:
        return make_groups(*sorted({asked.agent.id for asked in gateway.calls if "/propose/" in asked.step}))

    gateway.group = group_by_calls
    events = await run_arena(tmp_path, gateway, in_turn())
    assert sorted(gateway.steps("round/1/propose/*")[:2]) == ["round/1/propose/ada", "round/1/propose/cy"]
    assert gateway.steps("round/1/propose/*")[2] == "round/1/propose/bo"
    assert [ends for number, ends, _ in findings(events) if number == 1] == [False, False, False]
    assert len(gateway.steps("round/2/critique/*")) == 6
    assert not outcome_of(events).arena.not_asked_agent_ids


async def test_an_agent_that_cannot_be_reached_is_left_out_and_the_next_one_asked(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.weights = {"ada": 2.8, "bo": 2.8, "cy": 2.8}
    gateway.fail("round/1/propose/bo", refusal())
    gateway.group = lambda: make_groups("ada cy")
    events = await run_arena(tmp_path, gateway, in_turn())
    assert find_end(events).reason == STOP_REASON_PROBABLE_ENOUGH
    assert len(gateway.steps("round/1/propose/*")) >= 3


async def test_opposed_agents_that_no_longer_move_end_the_rounds(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.assess = lambda _: AssessResponse(verdict=CONVERGENCE_VERDICT_STABLE_DISAGREEMENT)
    events = await run_arena(tmp_path, gateway, arena_settings())
    assert find_end(events).reason == STOP_REASON_STABLE_DISAGREEMENT
    assert rounds(events) == [0, 1, 2, 3, 7, 8]


async def test_the_end_that_a_person_puts_to_the_rounds_is_kept(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    hold = gateway.hold("round/3/refine/ada")
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(arena_spec(3))
        await hold.reached.wait()
        await replica.intervene(debate, "end")
        hold.release()
        events = await stage.comes_to(debate, "COMPLETED")
    assert find_end(events).reason == STOP_REASON_PERSON
    assert find_end(events).explanation == "a person ended the rounds after round 3"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_tokens": 40_000}, STOP_REASON_TOKEN_BUDGET),
        ({"max_cost_micros": 8000}, STOP_REASON_COST_BUDGET),
        ({"total": 250}, STOP_REASON_TOTAL_TIMEOUT),
    ],
    ids=["tokens", "money", "time"],
)
async def test_a_limit_that_ends_the_rounds_is_kept(
    limits: Mapping[str, int], reason: int, tmp_path: Path
) -> None:
    gateway, clock = ArenaScript().gateway(), ManualClock()
    gateway.usage = lambda _: Usage(input_tokens=10, output_tokens=500, cost_micros=100, requests=1)
    spec = arena_spec(3, limits=make_limits(**limits))
    if "total" in limits:
        gateway.hold("round/3/refine/ada")
    async with backstage(tmp_path, gateway) as stage, stage.replica(clock=clock) as replica:
        debate = await replica.create(spec)
        if "total" in limits:
            await gateway.wait_for("round/3/refine/*", 3)
            clock.advance(250)
        events = await stage.comes_to(debate, "COMPLETED")
    assert find_end(events).reason == reason
