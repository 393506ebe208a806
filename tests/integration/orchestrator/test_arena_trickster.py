"""The arena's trickster and observer: hollow agreement is challenged, well-argued agreement is not, and all is recorded."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.arena import V1
from parley.orchestrator.log.envelope import Envelope
from parley.v1.arena_pb2 import (
    TRICKSTER_VERDICT_CHALLENGED,
    TRICKSTER_VERDICT_NO_INTERVENTION_LEFT,
    TRICKSTER_VERDICT_NO_ROUND_LEFT,
    TRICKSTER_VERDICT_SOUND,
    ArenaSettings,
    StoppingSettings,
    TricksterFinding,
    TricksterSettings,
)
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONVERGED,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    AssessResponse,
    GroupPositionsResponse,
    PositionGroup,
)
from parley.v1.debate_pb2 import (
    STOP_REASON_AGENTS_READY,
    STOP_REASON_CONVERGED,
    STOP_REASON_STABLE_DISAGREEMENT,
)
from parley.v1.event_pb2 import (
    ContributionObserved,
    RoundsEnded,
    RoundStarted,
    StepSucceeded,
    TricksterChecked,
    Warned,
)
from tests.support.arena_debates import ArenaScript, arena_settings, run_arena
from tests.support.labelled_debates import read_held_out_debates
from tests.support.scripted_answers import answer_text
from tests.support.scripted_gateway import ScriptedGateway

TOPIC = "payments-idempotency"
ARGUED, HOLLOW = (
    tuple(made.text for made in debate.work) for debate in read_held_out_debates() if debate.topic == TOPIC
)


def make_agreeing_gateway(texts: Sequence[str], script: ArenaScript | None = None) -> ScriptedGateway:
    """Agents that write these texts from the first proposal on, and agree."""
    gateway = (script or ArenaScript()).gateway()
    gateway.text = lambda step, agent: (
        texts[("ada", "bo", "cy").index(agent)] if agent in ("ada", "bo", "cy") else answer_text(step, agent)
    )
    gateway.assess = lambda _: AssessResponse(verdict=CONVERGENCE_VERDICT_CONVERGED, agreement_percent=95)
    return gateway


async def test_drafts_that_all_say_the_same_without_evidence_are_debated_after_all(tmp_path: Path) -> None:
    gateway = make_agreeing_gateway(HOLLOW)
    gateway.group = lambda: GroupPositionsResponse(
        groups=[PositionGroup(agent_ids=["ada", "bo", "cy"], position="tea")], certain=True
    )
    events = await run_arena(tmp_path, gateway, settings())
    first, *_ = findings(events)
    assert (first.round, first.verdict) == (1, TRICKSTER_VERDICT_CHALLENGED)
    assert 2 in rounds(events)
    assert first.challenge in gateway.asked("round/2/critique/ada/of/bo").prompt


async def test_drafts_that_all_say_the_same_with_evidence_are_not_debated(tmp_path: Path) -> None:
    gateway = make_agreeing_gateway(ARGUED)
    gateway.group = lambda: GroupPositionsResponse(
        groups=[PositionGroup(agent_ids=["ada", "bo", "cy"], position="tea")], certain=True
    )
    events = await run_arena(tmp_path, gateway, settings())
    assert [each.verdict for each in findings(events)] == [TRICKSTER_VERDICT_SOUND]
    assert 2 not in rounds(events)


def settings(**trickster: object) -> ArenaSettings:
    return arena_settings(trickster=TricksterSettings(**trickster))  # type: ignore[arg-type]


def findings(events: Sequence[Envelope]) -> list[TricksterFinding]:
    return [each.payload.finding for each in events if isinstance(each.payload, TricksterChecked)]


def rounds(events: Sequence[Envelope]) -> list[int]:
    return [each.payload.number for each in events if isinstance(each.payload, RoundStarted)]


def find_end(events: Sequence[Envelope]) -> RoundsEnded:
    (end,) = (each.payload for each in events if isinstance(each.payload, RoundsEnded))
    return end


async def test_hollow_agreement_is_challenged_in_the_next_round_as_often_as_may_be(tmp_path: Path) -> None:
    gateway = make_agreeing_gateway(HOLLOW)
    events = await run_arena(tmp_path, gateway, settings(max_interventions=1))
    first, second = findings(events)
    assert (first.round, first.verdict) == (3, TRICKSTER_VERDICT_CHALLENGED)
    assert (second.round, second.verdict) == (4, TRICKSTER_VERDICT_NO_INTERVENTION_LEFT)
    assert first.hollow_percent >= first.threshold_percent == 50
    assert first.features.echo > 0.2
    assert rounds(events) == [0, 1, 2, 3, 4, 7, 8]
    assert find_end(events).reason == STOP_REASON_CONVERGED
    told = [step for step in gateway.steps("round/*") if first.challenge in gateway.asked(step).prompt]
    assert {step.split("/")[1] for step in told} == {"4"}
    assert {step.split("/")[2] for step in told} == {"critique", "refine"}
    assert len(told) == 6 + 3
    assert "figures: none. Which numbers" in first.challenge
    assert not second.challenge


async def test_well_argued_agreement_ends_the_rounds_and_what_was_measured_is_recorded(
    tmp_path: Path,
) -> None:
    events = await run_arena(tmp_path, make_agreeing_gateway(ARGUED), settings())
    (finding,) = findings(events)
    assert (finding.round, finding.verdict, finding.challenge) == (3, TRICKSTER_VERDICT_SOUND, "")
    assert finding.hollow_percent < 50
    assert finding.features.figures > 2
    assert rounds(events) == [0, 1, 2, 3, 7, 8]


async def test_where_no_round_is_left_the_record_says_so(tmp_path: Path) -> None:
    chosen = settings()
    chosen.revision_rounds = 1
    events = await run_arena(tmp_path, make_agreeing_gateway(HOLLOW), chosen)
    (finding,) = findings(events)
    assert finding.verdict == TRICKSTER_VERDICT_NO_ROUND_LEFT
    assert find_end(events).reason == STOP_REASON_CONVERGED
    assert "since this was the last round of revision" in render_report(fold(events), V1)


async def test_agents_that_are_only_ready_are_challenged_too(tmp_path: Path) -> None:
    gateway = make_agreeing_gateway([f"{text}\nReady: yes, 95 %" for text in HOLLOW])
    chosen = settings(max_interventions=1)
    chosen.stopping.convergence = False
    events = await run_arena(tmp_path, gateway, chosen)
    assert [each.verdict for each in findings(events)] == [
        TRICKSTER_VERDICT_CHALLENGED,
        TRICKSTER_VERDICT_NO_INTERVENTION_LEFT,
    ]
    assert find_end(events).reason == STOP_REASON_AGENTS_READY


async def test_stable_disagreement_is_no_agreement_and_is_let_be(tmp_path: Path) -> None:
    gateway = make_agreeing_gateway(HOLLOW)
    gateway.assess = lambda _: AssessResponse(verdict=CONVERGENCE_VERDICT_STABLE_DISAGREEMENT)
    events = await run_arena(tmp_path, gateway, settings())
    assert findings(events) == []
    assert find_end(events).reason == STOP_REASON_STABLE_DISAGREEMENT


async def test_without_a_trickster_nothing_is_looked_at(tmp_path: Path) -> None:
    events = await run_arena(
        tmp_path, make_agreeing_gateway(HOLLOW), arena_settings(stopping=StoppingSettings())
    )
    assert findings(events) == []
    assert rounds(events) == [0, 1, 2, 3, 7, 8]


async def test_the_judge_can_be_asked_and_what_it_misses_goes_to_the_agents(tmp_path: Path) -> None:
    gateway = make_agreeing_gateway(HOLLOW, ArenaScript(support=1))
    events = await run_arena(tmp_path, gateway, settings(asks=True, max_interventions=1))
    first = findings(events)[0]
    assert (first.verdict, first.support) == (TRICKSTER_VERDICT_CHALLENGED, 1)
    assert gateway.asked("round/3/support").agent.id == "judge"
    assert HOLLOW[1] in gateway.asked("round/3/support").prompt
    assert "Nobody says what it costs." in gateway.asked("round/4/refine/bo").prompt
    assert "support 1.0 of 10, by the judge" in render_report(fold(events), V1)


@pytest.mark.parametrize(("texts", "support", "sound"), [(HOLLOW, 9, True), (ARGUED, 1, False)])
async def test_a_judge_that_is_sure_outweighs_the_texts(
    texts: Sequence[str], support: int, sound: bool, tmp_path: Path
) -> None:
    events = await run_arena(
        tmp_path, make_agreeing_gateway(texts, ArenaScript(support=support)), settings(asks=True)
    )
    assert (findings(events)[0].verdict == TRICKSTER_VERDICT_SOUND) is sound


async def test_a_judge_that_fails_leaves_it_to_the_texts(tmp_path: Path) -> None:
    gateway = make_agreeing_gateway(HOLLOW)
    gateway.fail("round/3/support")
    events = await run_arena(tmp_path, gateway, settings(asks=True))
    first = findings(events)[0]
    assert (first.verdict, first.HasField("support")) == (TRICKSTER_VERDICT_CHALLENGED, False)
    warnings = [each.payload.message for each in events if isinstance(each.payload, Warned)]
    assert any(
        message.startswith("the judge did not say after round 3 what evidence there is")
        for message in warnings
    )


async def test_a_challenged_agreement_is_not_told_as_the_end_of_the_rounds(tmp_path: Path) -> None:
    gateway = make_agreeing_gateway(HOLLOW)
    gateway.assess = lambda _: AssessResponse(
        verdict=CONVERGENCE_VERDICT_STABLE_DISAGREEMENT
        if gateway.steps("round/4/refine/*")
        else CONVERGENCE_VERDICT_CONVERGED
    )
    chosen = settings()
    chosen.revision_rounds = 2
    events = await run_arena(tmp_path, gateway, chosen)
    looked = next(at for at, each in enumerate(events) if isinstance(each.payload, TricksterChecked))
    assert fold(events[:looked]).rounds_ended_by
    assert not fold(events[: looked + 1]).rounds_ended_by
    assert find_end(events).reason == STOP_REASON_STABLE_DISAGREEMENT


async def test_the_observer_marks_each_contribution_once_and_nobody_in_the_debate_reads_it(
    tmp_path: Path,
) -> None:
    gateway = make_agreeing_gateway(["Admittedly, this is slow, and everybody knows it.", *ARGUED[1:]])
    events = await run_arena(tmp_path, gateway, arena_settings(observer=True))
    observed = [each.payload for each in events if isinstance(each.payload, ContributionObserved)]
    names = [
        (each.work.agent_id, each.work.activity, each.work.round, each.work.target_agent_id)
        for each in observed
    ]
    spoken = [
        (work.agent_id, work.activity, work.round, work.target_agent_id)
        for each in events
        if isinstance(each.payload, StepSucceeded)
        and (work := each.payload.work).activity in ("proposal", "critique", "refinement", "final-refinement")
    ]
    assert sorted(names) == sorted(spoken)
    first = next(each for each in observed if (each.work.agent_id, each.work.round) == ("ada", 1))
    assert [mark.name for mark in first.patterns] == ["concession"]
    assert [mark.name for mark in first.fallacies] == ["bandwagon"]
    assert not any("bandwagon" in call.prompt for call in gateway.calls)
    state = fold(events)
    assert 'Fallacies: bandwagon: "Admittedly, this is slow, and everybody knows it."' in render_report(
        state, V1
    )
    shown = state.contributions
    assert [mark.name for made in shown if made.key == "round/1/propose/ada" for mark in made.fallacies] == [
        "bandwagon"
    ]
