"""The arena: its rounds and states, what each asks, how it ends early or goes on, and what it comes to."""

import json
from pathlib import Path
from typing import TypeVar

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.arena import V1
from parley.orchestrator.log.envelope import Envelope
from parley.v1.arena_pb2 import (
    DEBATE_PROTOCOL_COLLABORATIVE,
    DEBATE_PROTOCOL_SOCRATIC,
    DUTY_CRITIC,
    DUTY_PROPOSER,
    DUTY_VOTER,
    JUDGE_CHOICE_LAST,
    TOPOLOGY_KIND_RING,
    TOPOLOGY_KIND_STAR,
    AgentDuties,
    DebateProtocol,
    RoundTopology,
    StoppingSettings,
    TeamSettings,
    Topology,
)
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    CONVERGENCE_VERDICT_CONVERGED,
    AssessRequest,
    AssessResponse,
)
from parley.v1.debate_pb2 import (
    STOP_REASON_AGENTS_READY,
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    STOP_REASON_CONFIDENCE_REACHED,
    STOP_REASON_CONVERGED,
    STOP_REASON_JUDGE,
    UnfulfilledRequirement,
)
from parley.v1.event_pb2 import (
    PhaseEntered,
    RoundStarted,
    StepFailed,
    StepSucceeded,
    TopologyDrawn,
    Warned,
)
from parley.v1.voting_pb2 import VOTE_STRENGTH_STRONG, VOTE_STRENGTH_UNANIMOUS
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec, find_end, run_arena
from tests.support.debate_logs import outcome_of, payloads_of, run_debate
from tests.support.interventions import intervention
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import TENANT, backstage
from tests.support.scripted_answers import answer_text, judgement

P = TypeVar("P")


def states(events: list[Envelope]) -> list[str]:
    return [each.name for each in payloads_of(events, PhaseEntered)]


async def test_nine_rounds_are_held_in_order_each_with_its_states(tmp_path: Path) -> None:
    events = await run_arena(tmp_path, ArenaScript().gateway())
    assert [each.number for each in payloads_of(events, RoundStarted)] == list(range(9))
    assert states(events) == [
        "START",
        "INITIALIZING",
        "CONTEXT_READY",
        "GENERATING_PROPOSALS",
        "PROPOSALS_COMPLETE",
        "ROUND_2_CRITIQUE",
        "ROUND_3_REVISION",
        "ROUND_4_CRITIQUE",
        "ROUND_4_REVISION",
        "ROUND_5_CRITIQUE",
        "ROUND_5_REVISION",
        "ROUNDS_COMPLETE",
        "VOTING",
        "VOTE_AGGREGATION",
        "CONSENSUS_REACHED" if outcome_of(events).arena.winner_agent_id else "NO_CONSENSUS",
    ]
    assert find_end(events).reason == STOP_REASON_ALL_ROUNDS_COMPLETED


async def test_each_round_asks_its_steps_and_no_text_is_criticized_twice_by_one_critic(
    tmp_path: Path,
) -> None:
    gateway = ArenaScript().gateway()
    await run_arena(tmp_path, gateway)
    counts = {
        pattern: len(gateway.steps(pattern))
        for pattern in (
            "round/1/propose/*",
            "round/2/critique/*",
            "round/3/critique/*",
            "round/3/refine/*",
            "round/4/critique/*",
            "round/5/critique/*",
            "round/5/refine/*",
            "round/6/finish/*",
            "round/7/vote/*",
            "round/8/judge",
            "synthesis",
            "verification/*",
        )
    }
    assert list(counts.values()) == [3, 6, 0, 3, 6, 6, 3, 3, 3, 1, 1, 3]
    assert len(gateway.calls) == sum(counts.values()) + 3 + 1, (
        "and the revisions of round 4, and the requirements"
    )


async def test_the_vote_makes_winner_and_strength_and_the_judge_ranking_and_scores(tmp_path: Path) -> None:
    gateway = ArenaScript(choice="bo").gateway()
    arena = outcome_of(await run_arena(tmp_path, gateway)).arena
    assert arena.winner_agent_id == "bo"
    assert arena.votes[0].undiscounted_strength == VOTE_STRENGTH_UNANIMOUS
    assert arena.strength == VOTE_STRENGTH_STRONG, "since all agents have one model, which is one voice"
    assert [(each.agent_id, each.score) for each in arena.ranking] == [("ada", 9), ("bo", 8), ("cy", 7)]
    assert [each.choice_agent_id for each in arena.votes[0].ballots] == ["bo"] * len(arena.votes[0].ballots)
    assert "The proposal of agent B is its core." in gateway.asked("synthesis").prompt
    assert arena.consenting_agent_ids == ["ada", "bo", "cy"]


async def test_agreement_after_a_revision_goes_straight_to_the_vote(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()

    def assess(request: AssessRequest) -> AssessResponse:
        agree = "round/4" in request.positions[0].text
        verdict = CONVERGENCE_VERDICT_CONVERGED if agree else CONVERGENCE_VERDICT_CONTINUING
        return AssessResponse(verdict=verdict, agreement_percent=95 if agree else 20)

    gateway.assess = assess
    events = await run_arena(tmp_path, gateway)
    assert [each.number for each in payloads_of(events, RoundStarted)] == [0, 1, 2, 3, 4, 7, 8]
    assert find_end(events).reason == STOP_REASON_CONVERGED
    assert not gateway.steps("round/6/*")


@pytest.mark.parametrize(
    ("line", "stopping", "reason"),
    [
        ("Ready: yes, 85 %", StoppingSettings(), STOP_REASON_AGENTS_READY),
        (
            "Ready: no, 96 %",
            StoppingSettings(confidence_threshold_percent=95),
            STOP_REASON_CONFIDENCE_REACHED,
        ),
        ("Ready: yes, 70 %", StoppingSettings(), STOP_REASON_ALL_ROUNDS_COMPLETED),
        ("Ready: yes, 85 %", StoppingSettings(ready_signal=False), STOP_REASON_ALL_ROUNDS_COMPLETED),
    ],
)
async def test_agents_that_are_ready_or_sure_enough_end_the_rounds(
    line: str, stopping: StoppingSettings, reason: int, tmp_path: Path
) -> None:
    gateway = ArenaScript().gateway()
    gateway.text = lambda step, agent: f"{answer_text(step, agent)}\n{line}"
    events = await run_arena(tmp_path, gateway, arena_settings(stopping=stopping))
    assert find_end(events).reason == reason


async def test_how_sure_an_agent_is_nobody_else_reads(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.text = lambda step, agent: (
        answer_text(step, agent) + ("\nReady: no, 64 %" if "/refine/" in step else "")
    )
    await run_arena(tmp_path, gateway)
    for step in ("round/4/critique/ada/of/bo", "round/4/refine/ada", "round/6/finish/ada"):
        assert (
            "round/3/refine/" in gateway.asked(step).prompt or "round/5/refine/" in gateway.asked(step).prompt
        )
        assert "64 %" not in gateway.asked(step).prompt, step


async def test_a_person_who_ends_the_rounds_is_stronger_than_a_judge_that_wants_more(tmp_path: Path) -> None:
    gateway = ArenaScript(sufficient=False).gateway()
    gateway.hold("round/8/judge")
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(arena_spec(3))
        await gateway.wait_for("round/8/judge", within=30)
        await replica.intake.intervene(TENANT, debate, intervention("end"))
        gateway.release("round/8/judge")
        events = await stage.comes_to(debate, "COMPLETED")
    assert outcome_of(events).arena.extended_rounds == 0
    assert outcome_of(events).arena.sufficient is False


async def test_the_judge_may_end_the_rounds_from_the_critiques_on(tmp_path: Path) -> None:
    gateway = ArenaScript(more_is_of_use=False).gateway()
    events = await run_arena(
        tmp_path, gateway, arena_settings(stopping=StoppingSettings(judge_termination=True))
    )
    assert find_end(events).reason == STOP_REASON_JUDGE
    assert [each.number for each in payloads_of(events, RoundStarted)] == [0, 1, 2, 7, 8]


async def test_a_judge_that_is_late_between_rounds_means_go_on(tmp_path: Path) -> None:
    gateway = ArenaScript(more_is_of_use=False).gateway()
    gateway.fail("round/*/discussion")
    events = await run_arena(
        tmp_path, gateway, arena_settings(stopping=StoppingSettings(judge_termination=True))
    )
    assert find_end(events).reason == STOP_REASON_ALL_ROUNDS_COMPLETED


async def test_a_judge_that_finds_the_discussion_insufficient_adds_rounds_up_to_the_most(
    tmp_path: Path,
) -> None:
    gateway = ArenaScript(sufficient=False).gateway()
    events = await run_arena(tmp_path, gateway, arena_settings(max_extended_rounds=2))
    arena = outcome_of(events).arena
    assert [each.number for each in payloads_of(events, RoundStarted)] == list(range(11))
    assert (arena.extended_rounds, len(arena.votes), arena.sufficient) == (2, 3, False)
    assert arena.missing == "Who pays for it?"
    assert "Who pays for it?" in gateway.asked("round/9/refine/ada").prompt
    assert len(gateway.steps("round/9/vote/*")) == 3
    assert states(events).count("VOTING") == 3


async def test_objections_become_dissent(tmp_path: Path) -> None:
    arena = outcome_of(
        await run_arena(tmp_path, ArenaScript(objections={"bo": "It forgets the cost."}).gateway())
    ).arena
    assert [(each.agent_id, each.text) for each in arena.dissent] == [("bo", "It forgets the cost.")]
    assert arena.consenting_agent_ids == ["ada", "cy"]


async def test_the_answer_has_the_same_parts_as_that_of_a_panel_and_those_who_verify_it_read_them(
    tmp_path: Path,
) -> None:
    gateway = ArenaScript().gateway()
    gateway.requirements = (("It floats.", True), ("It is blue.", False))
    answers = gateway.judge
    gateway.judge = lambda schema: (
        judgement(schema, requirements_met={"R1": False, "R2": True})
        if '"implementation"' in schema
        else answers(schema)
    )
    details = outcome_of(await run_arena(tmp_path, gateway, arena_settings(revision_rounds=1))).details
    assert (details.implementation, list(details.tradeoffs)) == ("Do it.", ["time for money"])
    assert (list(details.recommendations), list(details.open_questions)) == (["begin"], ["when?"])
    unmet = [UnfulfilledRequirement(text="It floats.", hard=True, number=1)]
    assert (list(details.unfulfilled_requirements), list(details.met_requirements)) == (unmet, [2])
    assert details.confidence == 40, "a must is unmet"
    asked = gateway.asked("synthesis")
    assert "say of each requirement, by its number, whether your answer meets it." in asked.prompt
    assert "scores" not in json.loads(asked.schema)["properties"], "the ranking has them"
    verified = gateway.asked("verification/ada").prompt
    assert "The answer.\n\nImplementation:\n\nDo it.\n\nRecommendations:\n\n- begin" in verified


async def test_who_says_nothing_of_the_answer_neither_consents_nor_dissents(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    plain = gateway.judge
    gateway.judge = lambda schema: (
        '{"accepts": false}' if gateway.calls[-1].step == "verification/bo" else plain(schema)
    )
    gateway.fail("verification/cy")
    arena = outcome_of(await run_arena(tmp_path, gateway, arena_settings(revision_rounds=1))).arena
    assert arena.consenting_agent_ids == ["ada"]
    assert [(each.agent_id, each.text) for each in arena.dissent] == [("bo", "It gave no reason.")]


async def test_a_participant_that_is_muted_is_not_asked_about_the_answer(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    hold = gateway.hold("round/6/judge")
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(arena_spec(3, arena_settings(revision_rounds=1)))
        await hold.reached.wait()
        await replica.intervene(debate, "mute", agent_id="cy")
        hold.release()
        events = await stage.comes_to(debate, "COMPLETED")
    assert outcome_of(events).arena.consenting_agent_ids == ["ada", "bo"]


async def test_topologies_are_recorded_and_only_their_edges_asked(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    settings = arena_settings(
        topology=Topology(kind=TOPOLOGY_KIND_RING),
        topologies=[RoundTopology(round=4, topology=Topology(kind=TOPOLOGY_KIND_STAR, hub_agent_id="bo"))],
    )
    events = await run_arena(tmp_path, gateway, settings, agents=5)
    drawn = {each.round: each for each in payloads_of(events, TopologyDrawn)}
    assert [(number, each.topology) for number, each in drawn.items()] == [
        (2, "ring"),
        (3, "ring"),
        (4, "star around bo"),
        (5, "ring"),
    ]
    for number in (2, 4, 5):
        edges = [
            f"round/{number}/critique/{e.critic_agent_id}/of/{e.target_agent_id}" for e in drawn[number].edges
        ]
        assert sorted(gateway.steps(f"round/{number}/critique/*")) == sorted(edges)
    assert len(drawn[2].edges) == 10
    assert len(drawn[4].edges) == 8


async def test_agents_take_part_in_what_is_their_duty(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    team = TeamSettings(
        duties=[
            AgentDuties(agent_id="ada", duties=[DUTY_PROPOSER, DUTY_VOTER]),
            AgentDuties(agent_id="cy", duties=[DUTY_CRITIC, DUTY_VOTER]),
        ]
    )
    events = await run_arena(tmp_path, gateway, arena_settings(team=team, judge_choice=JUDGE_CHOICE_LAST))
    assert sorted(gateway.steps("round/1/propose/*")) == ["round/1/propose/ada", "round/1/propose/bo"]
    assert not gateway.steps("round/*/critique/ada/*")
    assert len(gateway.steps("round/7/vote/*")) == 3
    assert outcome_of(events).arena.judge_agent_id == "cy", "which is no author"
    assert not payloads_of(events, Warned) or all(
        "judges its own" not in each.message for each in payloads_of(events, Warned)
    )


async def test_the_protocol_says_in_each_phase_how_to_argue_and_not_how_to_vote(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    await run_arena(tmp_path, gateway, arena_settings(protocol=DEBATE_PROTOCOL_SOCRATIC))
    for step in (
        "round/1/propose/ada",
        "round/2/critique/ada/of/bo",
        "round/3/refine/ada",
        "round/6/finish/ada",
    ):
        assert "This debate is Socratic" in gateway.asked(step).prompt, step
    for step in ("round/7/vote/ada", "round/8/judge", "verification/ada"):
        assert "Socratic" not in gateway.asked(step).prompt, step


@pytest.mark.parametrize("protocol", [DEBATE_PROTOCOL_COLLABORATIVE, DEBATE_PROTOCOL_SOCRATIC])
async def test_a_critic_of_a_new_text_sees_its_own_issues_of_the_last_one_and_the_answers(
    protocol: DebateProtocol.ValueType, tmp_path: Path
) -> None:
    gateway = ArenaScript().gateway()
    gateway.text = lambda step, agent: (
        answer_text(step, agent)
        + (
            "\n\n## Answers to issues\n\n- B.1: not taken up, because it is rare\n- C.1: taken up"
            if step == "round/3/refine/ada"
            else ""
        )
    )
    await run_arena(tmp_path, gateway, arena_settings(protocol=protocol, revision_rounds=2))
    told = "What you held against the text of agent A before"
    assert told not in gateway.asked("round/2/critique/bo/of/ada").prompt
    prompt = gateway.asked("round/4/critique/bo/of/ada").prompt
    assert told in prompt
    assert (
        "- round 2, issue B.1, severity 5 of 10, not taken up: bo answers round/2/critique/bo/of/ada"
        in prompt
    )
    assert "Agent's answer: it is rare" in prompt
    assert "issue C.1" not in prompt, "which is another's"


async def test_text_that_a_late_agent_had_written_is_kept_and_nobody_reads_it(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.deltas = 2
    gateway.hold("round/1/propose/cy")
    clock = ManualClock()
    async with backstage(tmp_path, gateway) as stage, stage.replica(clock=clock) as replica:
        debate = await replica.create(arena_spec(3))
        await gateway.wait_for("round/1/propose/cy")
        await stage.has(debate, "step_succeeded", 3)
        clock.advance(301)
        events = await stage.comes_to(debate, "COMPLETED")
    (failed,) = [each for each in payloads_of(events, StepFailed) if each.work.agent_id]
    assert (failed.work.agent_id, failed.reason) == ("cy", "ROUND_TIMEOUT")
    assert failed.partial_text == answer_text("round/1/propose/cy", "cy")
    assert not any("cy answers round/1" in asked.prompt for asked in gateway.calls)
    assert gateway.steps("round/2/critique/cy/*"), "it is left out of that phase alone"
    shown = render_report(fold(events), V1)
    assert "What Cy had written" in shown
    assert "cy answers round/1/propose/cy" in shown


async def test_who_states_no_position_is_asked_for_it_once_a_text(tmp_path: Path) -> None:
    gateway = ArenaScript().gateway()
    gateway.text = lambda step, agent: (
        "It is wet." if step in ("round/1/propose/cy", "round/3/refine/cy") else answer_text(step, agent)
    )
    await run_arena(tmp_path, gateway)
    assert gateway.steps("round/*/position/*") == ["round/1/position/cy", "round/3/position/cy"]
    assert "agent C: cy stands by round/3/position/cy" in gateway.asked("round/4/refine/ada").prompt


async def test_claims_without_a_source_are_kept_and_told_to_critics_and_judge(tmp_path: Path) -> None:
    claim = "Studies show that tea is best."
    gateway = ArenaScript().gateway()
    gateway.text = lambda step, agent: f"{claim if agent == 'ada' else ''}\n\n{answer_text(step, agent)}"
    settings = arena_settings(revision_rounds=1)
    events = await run_debate(tmp_path, gateway, arena_spec(3, settings))
    made = [each for each in payloads_of(events, StepSucceeded) if each.reply.claims_to_cite]
    assert [(each.work.activity, each.work.agent_id, *each.reply.claims_to_cite) for each in made] == [
        (activity, "ada", claim) for activity in ("proposal", "refinement", "final-refinement")
    ]
    told = "Claims of agent A without a source"
    assert told in gateway.asked("round/2/critique/bo/of/ada").prompt
    assert told in gateway.asked("round/6/judge").prompt
    assert told not in gateway.asked("round/2/critique/ada/of/bo").prompt
    assert f"Claims without a source:\n\n- {claim}" in render_report(fold(events), V1)
