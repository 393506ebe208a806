"""Progress as a fold of events, and the lines that tell of it."""

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from parley.cli.terminal.event_lines import next_phase_line, progress_line, resumed_text, status_line
from parley.cli.terminal.progress import DebateProgress, PhaseProgress, advance
from parley.v1.arena_pb2 import ArenaSettings
from parley.v1.debate_pb2 import DebateFailure, DebateSpec, EndRounds, Intervention, Work
from parley.v1.event_pb2 import (
    CheckpointClosed,
    Claimed,
    Concluded,
    DebateCreated,
    DebateFailed,
    Intervened,
    Paused,
    PhaseFinished,
    PhaseStarted,
    Resumed,
    RoundAssessed,
    RoundFinished,
    RoundStarted,
    StepFailed,
    StepStarted,
    Warned,
)
from tests.support.made_events import made_event
from tests.unit.cli.terminal.events import ADA, BO, end_step, reply, start_step


def after(*happened: Message | tuple[Message, str]) -> DebateProgress:
    progress = DebateProgress()
    for each in happened:
        payload, key = each if isinstance(each, tuple) else (each, "k")
        progress = advance(progress, made_event(payload, key))
    return progress


def test_a_round_shows_its_phases_who_works_and_what_it_took() -> None:
    progress = after(
        Claimed(owner="x"),
        RoundStarted(number=2, total=3),
        PhaseStarted(activity="proposal", round=1, expected=2),
        (start_step(ADA), "a"),
        (start_step(BO), "b"),
        (end_step(ADA, reply()), "a"),
    )
    assert (progress.state, progress.round, progress.rounds) == ("running", 2, 3)
    assert progress.phases == (PhaseProgress("proposal", 1, 2, 1),)
    assert progress.working == {"b": start_step(BO)}
    assert (progress.calls, progress.input_tokens, progress.output_tokens, progress.cost_micros) == (
        1,
        30,
        12,
        100,
    )
    assert status_line(progress, 65.4) == "Round 2/3 · 1:05 · 42 tokens · $0.0001"


def test_phases_that_overlap_are_counted_apart() -> None:
    critique = Work(activity="critique", agent_id="bo", round=1, target_agent_id="ada")
    progress = after(
        PhaseStarted(activity="proposal", round=1, expected=2),
        PhaseStarted(activity="critique", round=1, expected=2),
        (end_step(critique, reply()), "c"),
        (StepFailed(work=ADA, reason="CALL_TIMEOUT"), "a"),
        (end_step(BO, reply()), "b"),
        PhaseFinished(activity="proposal", round=1),
    )
    assert progress.phases == (PhaseProgress("critique", 1, 2, 1),)


def test_a_cost_that_is_unknown_once_stays_unknown() -> None:
    assert after(end_step(ADA, reply(None)), end_step(BO, reply())).cost_micros is None


def test_work_of_an_earlier_owner_is_void() -> None:
    failed = DebateFailed(failure=DebateFailure(reason="X"))
    for ending in (Claimed(owner="y"), Paused(), Resumed(), failed, Concluded()):
        assert after((start_step(ADA), "a"), ending).working == {}


def test_without_an_outcome_a_debate_was_cancelled() -> None:
    concluded = Concluded()
    assert after(concluded).state == "cancelled"
    concluded.outcome.description = "Use one."
    assert after(concluded).state == "completed"


@given(st.lists(st.sampled_from(["a", "b", "c"]).map(lambda key: (key, True)) | st.just(("a", False))))
def test_whoever_ended_is_not_at_work(steps: list[tuple[str, bool]]) -> None:
    progress, open_steps = DebateProgress(), set[str]()
    for key, starts in steps:
        progress = advance(progress, made_event(start_step(ADA) if starts else end_step(ADA), key))
        (open_steps.add if starts else open_steps.discard)(key)
    assert set(progress.working) == open_steps


def test_steps_that_failed_are_not_counted_as_answers() -> None:
    phase = DebateProgress(phases=(PhaseProgress("proposal", 1, 2),))
    failed = StepFailed(work=ADA, reason="PROVIDER_AUTH", message="401")
    ended = advance(phase, made_event(failed, "a"))
    finished = made_event(PhaseFinished(activity="proposal", round=1))
    assert progress_line(ended, finished) == "  proposal: 0 of 2 answered, 1 failed"
    ended = advance(ended, made_event(end_step(ADA), "b"))
    assert progress_line(ended, finished) == "  proposal: 1 of 2 answered, 1 failed"


def test_a_step_that_failed_and_is_asked_again_is_told_and_counts_by_its_last_end() -> None:
    phase = DebateProgress(phases=(PhaseProgress("proposal", 1, 1),))
    failed = StepFailed(work=ADA, reason="PROVIDER_RATE_LIMIT", message="429")
    ended, told = phase, []
    for each in (start_step(ADA), failed, start_step(ADA), end_step(ADA)):
        told.append(progress_line(ended, made_event(each, "a")))
        ended = advance(ended, made_event(each, "a"))
    assert told == [
        None,
        "  ada: round 1 proposal failed: PROVIDER_RATE_LIMIT: 429",
        "  ada: round 1 proposal is asked for again",
        None,
    ]
    finished = made_event(PhaseFinished(activity="proposal", round=1))
    assert progress_line(ended, finished) == "  proposal: 1/1"


def test_the_first_round_of_an_arena_says_how_many_are_those_that_were_asked_for() -> None:
    created = DebateCreated(spec=DebateSpec(arena=ArenaSettings(revision_rounds=1)))
    first, second = (made_event(RoundStarted(number=each, total=6)) for each in (1, 2))
    assert progress_line(after(created), first) == "round 1/6, 1 of them for revision"
    assert progress_line(after(created), second) == "round 2/6"


def test_plain_lines_tell_rounds_phases_failures_and_warnings() -> None:
    def write_line(payload: Message | None, before: DebateProgress | None = None) -> str | None:
        return progress_line(before or DebateProgress(), made_event(payload))

    phase = DebateProgress(phases=(PhaseProgress("ballot", 1, 2, 2, "vote"),))
    assert write_line(RoundStarted(number=1, total=3)) == "round 1/3"
    assert write_line(RoundStarted(number=0, total=8)) == "before round 1/8"
    assert write_line(PhaseStarted(activity="proposal", round=1, expected=2)) == "  proposal: 2 to come"
    assert write_line(PhaseStarted(activity="ballot", title="vote", expected=2)) == "  vote: 2 to come"
    assert write_line(PhaseFinished(activity="ballot", round=1), phase) == "  vote: 2/2"
    assert write_line(StepFailed(work=ADA, reason="PROVIDER_AUTH", message="401")) == (
        "  ada: round 1 proposal failed: PROVIDER_AUTH: 401"
    )
    assert write_line(Warned(message="late")) == "warning: late"
    assert write_line(StepFailed(work=Work(activity="recall"), reason="MEMORY_AWAY", message="late")) is None
    assert write_line(None) is None


@pytest.mark.parametrize(("done", "coming"), [(0, "2 to come"), (1, "1 of 2 to come")])
def test_a_phase_that_begins_while_another_goes_on_is_told_after_that_one(done: int, coming: str) -> None:
    critique = made_event(PhaseStarted(activity="critique", round=1, expected=2))
    progress = DebateProgress(phases=(PhaseProgress("proposal", 1, 2, 2),))
    assert progress_line(progress, critique) is None
    assert progress_line(progress, made_event(PhaseStarted(activity="vote", round=2, expected=2)))
    both = DebateProgress(phases=(*progress.phases, PhaseProgress("critique", 1, 2, done)))
    finished = made_event(PhaseFinished(activity="proposal", round=1))
    assert progress_line(both, finished) == "  proposal: 2/2"
    assert next_phase_line(both, finished) == f"  critique: {coming}"
    assert next_phase_line(progress, finished) is None
    assert next_phase_line(both, critique) is None
    assert next_phase_line(both, made_event(PhaseFinished(activity="critique", round=1))) is None


def test_the_step_that_makes_the_answer_is_told() -> None:
    work = Work(activity="synthesis", doing="writes the answer", agent_id="judge")
    answering = StepStarted(work=work, is_answer=True)
    assert progress_line(DebateProgress(), made_event(answering)) == "judge writes the answer"
    progress = after(RoundStarted(number=3, total=3), (answering, "answer"))
    assert status_line(progress, 5) == "Answer · 0:05 · 0 tokens"


def test_work_outside_of_every_phase_is_told_and_work_of_a_phase_is_not() -> None:
    summary = start_step(Work(activity="summary", doing="summarizes", agent_id="judge"))
    assert progress_line(DebateProgress(), made_event(summary)) == "judge summarizes"
    assert (
        progress_line(DebateProgress(phases=(PhaseProgress("proposal", 1, 2),)), made_event(start_step(ADA)))
        is None
    )
    assert (
        progress_line(DebateProgress(), made_event(start_step(Work(activity="recall", doing="looks"))))
        is None
    )


def test_a_prompt_that_was_cut_for_a_route_is_told_once_a_route() -> None:
    said = reply()
    said.route, said.prompt_characters_left_out = "small", 12345
    cut = end_step(ADA, said)
    assert progress_line(DebateProgress(), made_event(cut)) == (
        "warning: 12,345 characters of a prompt were left out to fit the context of small; that may happen again"
    )
    assert progress_line(after(cut), made_event(cut)) is None
    assert progress_line(DebateProgress(), made_event(end_step(ADA, reply()))) is None


def test_what_was_found_after_a_round_is_told() -> None:
    found = RoundAssessed(round=2, finding="the agents do not agree yet (51 %, threshold 90 %)")
    assert progress_line(after(RoundStarted(number=2, total=3)), made_event(found)) == (
        "  after round 2: the agents do not agree yet (51 %, threshold 90 %)"
    )
    found.ends_rounds = True
    assert progress_line(DebateProgress(), made_event(found)) == (
        "ended after round 2: the agents do not agree yet (51 %, threshold 90 %)"
    )
    assert after(RoundStarted(number=2, total=3), found).rounds_ended_by == found.finding
    assert after(found, RoundStarted(number=3, total=3)).rounds_ended_by == ""


@pytest.mark.parametrize("kind", [Intervened, CheckpointClosed])
def test_rounds_that_a_person_ended_go_on_with_the_answer(
    kind: type[Intervened] | type[CheckpointClosed],
) -> None:
    asked = kind(intervention=Intervention(end=EndRounds()))
    progress = after(RoundStarted(number=1, total=3), asked, RoundFinished(number=1))
    assert resumed_text(progress) == "1 round was recorded; resumed with the answer"
    assessed = made_event(RoundAssessed(round=1, finding="not yet"))
    assert progress_line(progress, assessed) == "ended after round 1: a person asked for it"


def test_what_is_done_before_the_first_round_is_no_round_that_is_complete() -> None:
    before = (RoundStarted(number=0, total=8), RoundFinished(number=0))
    assert resumed_text(after(*before)) == "no round was recorded; resumed before the first"
    begun = after(*before, RoundStarted(number=1, total=8))
    assert resumed_text(begun) == "no round was complete; resumed in round 1"


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (DebateProgress(), "no round was recorded; resumed before the first"),
        (
            DebateProgress(round=1, rounds=3, phases=(PhaseProgress("critique", 1, 6, 2),)),
            "no round was complete; resumed in round 1 (critique 2/6)",
        ),
        (DebateProgress(round=1, rounds=3, completed_rounds=1), "1 round was recorded; resumed in round 2"),
        (
            DebateProgress(round=13, rounds=20, completed_rounds=12),
            "12 rounds were recorded; resumed in round 13",
        ),
        (
            DebateProgress(round=3, rounds=3, completed_rounds=3),
            "3 rounds were recorded; resumed with the answer",
        ),
        (
            DebateProgress(round=1, rounds=3, completed_rounds=1, rounds_ended_by="enough"),
            "1 round was recorded; resumed with the answer",
        ),
    ],
)
def test_a_resumed_debate_says_where_it_goes_on(progress: DebateProgress, text: str) -> None:
    assert resumed_text(progress) == text


def test_who_is_asked_the_same_twice_at_once_is_told_of_once() -> None:
    asked = StepStarted(
        work=Work(activity="grouping", doing="groups the positions", agent_id="judge", round=1)
    )
    begun = after(RoundStarted(number=1, total=3), (asked, "round/1/grouping"))
    assert progress_line(after(), made_event(asked, "round/1/grouping")) == "judge groups the positions"
    assert progress_line(begun, made_event(asked, "round/1/grouping/again")) is None
    done = advance(begun, made_event(end_step(asked.work, reply()), "round/1/grouping"))
    assert progress_line(done, made_event(asked, "k")) == "judge groups the positions"
