from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.envelope import Draft
from parley.orchestrator.events import (
    Claimed,
    Closed,
    Concluded,
    ControlSeen,
    CorruptEventError,
    DebateFailed,
    Intervened,
    Json,
    Paused,
    Payload,
    PhaseFinished,
    PhaseStarted,
    Recalled,
    Resumed,
    RoundFinished,
    RoundStarted,
    Solution,
    StepStarted,
    StepSucceeded,
    Usage,
    Warned,
    Work,
)
from parley.orchestrator.state import FIRST_DRAFT_VOTE, DraftGroup, FirstDraftVote, advance, fold
from tests.unit.orchestrator.made_logs import CREATED, DEBATE, SPEC, START, failed, log, succeeded

PROPOSAL = Work("proposal", "ada", 1)
CRITIQUE = Work("critique", "bo", 1, "ada")
FAILURE = DebateFailed("CALL_TIMEOUT", "no answer", "ada", "round 1 proposal", ("1/proposal/ada",))


def test_an_accepted_debate_is_pending_and_says_what_it_is_about() -> None:
    state = fold(log(CREATED))

    assert state.status == "PENDING"
    assert (state.debate, state.spec, state.phase) == (DEBATE, SPEC, "")
    assert (state.created_at, state.updated_at, state.last_sequence) == (START, START, 1)
    assert state.usage == Usage()


@pytest.mark.parametrize(
    ("happened", "status"),
    [
        ([Claimed("a")], "RUNNING"),
        ([Claimed("a"), Intervened("w", "pause")], "RUNNING"),
        ([Claimed("a"), Intervened("w", "pause"), Paused()], "PAUSED"),
        ([Claimed("a"), Paused(), Claimed("b")], "PAUSED"),
        ([Claimed("a"), Paused(), Claimed("b"), Resumed()], "RUNNING"),
        ([Claimed("a"), FAILURE], "FAILED"),
        ([Claimed("a"), FAILURE, Paused()], "FAILED"),
        ([Claimed("a"), FAILURE, Claimed("b"), Intervened("w", "guide", "think")], "FAILED"),
        ([Claimed("a"), FAILURE, Claimed("b"), Resumed()], "RUNNING"),
        ([Claimed("a"), FAILURE, Claimed("b"), Concluded("cancelled")], "CANCELLED"),
        ([Claimed("a"), Concluded("completed", Solution("This one."))], "COMPLETED"),
        ([Claimed("a"), Concluded("completed", Solution("This one.")), Claimed("b"), Closed()], "COMPLETED"),
    ],
)
def test_the_status_follows_the_log(happened: list[Payload], status: str) -> None:
    assert fold(log(CREATED, *happened)).status == status


def test_a_failed_debate_says_why_until_it_goes_on() -> None:
    begun = log(CREATED, Claimed("a"), FAILURE, Resumed())

    assert fold(begun[:3]).failure == FAILURE
    assert fold(begun).failure is None


def test_contributions_stand_in_the_order_in_which_they_came() -> None:
    state = fold(log(CREATED, Claimed("a"), succeeded(PROPOSAL, "Use A."), succeeded(CRITIQUE, "Why A?")))

    assert [(made.work.agent, made.reply.text) for made in state.contributions] == [
        ("ada", "Use A."),
        ("bo", "Why A?"),
    ]
    assert state.contributions[1].recorded_at > state.contributions[0].recorded_at


def test_a_step_that_succeeds_after_a_failure_is_no_failure_and_both_attempts_are_paid_for() -> None:
    state = fold(log(CREATED, Claimed("a"), failed(PROPOSAL), succeeded(PROPOSAL, "Use A.", attempt=2)))

    assert state.failures == ()
    assert [(made.reply.text, made.attempt) for made in state.contributions] == [("Use A.", 2)]
    assert state.calls == 2
    assert state.usage == Usage(13, 5, 107, 3)


def test_a_step_that_is_made_again_stands_once_with_its_latest_outcome() -> None:
    again = fold(log(CREATED, succeeded(PROPOSAL, "Use A."), succeeded(PROPOSAL, "Use B.", attempt=2)))
    lost = fold(log(CREATED, succeeded(PROPOSAL, "Use A."), failed(PROPOSAL, attempt=2)))

    assert [made.reply.text for made in again.contributions] == ["Use B."]
    assert lost.contributions == ()
    assert [failure.attempt for failure in lost.failures] == [2]


def test_a_price_that_is_unknown_once_leaves_the_cost_unknown() -> None:
    unknown = succeeded(CRITIQUE, "Why?", usage=Usage(1, 1, None, 1))

    assert fold(log(CREATED, succeeded(PROPOSAL, "Use A."), unknown)).usage.cost_micros is None


def test_a_service_answer_is_no_model_call() -> None:
    vote = StepSucceeded(Work(FIRST_DRAFT_VOTE), "digest", value={"groups": [], "majority": False})

    state = fold(log(CREATED, vote))

    assert (state.calls, state.contributions) == (0, ())


def test_the_vote_over_the_first_drafts_is_read_from_its_step() -> None:
    value: Json = {
        "groups": [{"agents": ["ada", "bo"], "position": "A."}, {"agents": ["cy"], "position": "B."}],
        "majority": True,
    }

    state = fold(log(CREATED, StepSucceeded(Work(FIRST_DRAFT_VOTE), "digest", value=value)))

    assert state.first_draft_vote == FirstDraftVote(
        (DraftGroup(("ada", "bo"), "A."), DraftGroup(("cy",), "B.")), majority=True
    )


def test_the_phase_is_that_of_the_step_started_last() -> None:
    state = fold(log(CREATED, StepStarted(PROPOSAL, "digest"), StepStarted(CRITIQUE, "digest")))

    assert state.phase == "round 1 critique"


def test_rounds_warnings_wishes_and_recalled_debates_are_kept() -> None:
    wish = Intervened("w", "guide", "Mind the budget.")

    state = fold(
        log(CREATED, Recalled(("deb-1",)), RoundStarted(1, 2), RoundStarted(2, 2), Warned("late"), wish)
    )

    assert (state.recalled, state.current_round) == (("deb-1",), 2)
    assert (state.warnings, state.wishes) == (("late",), (wish,))


def test_kinds_that_are_not_known_are_passed_over() -> None:
    events = log(CREATED, Claimed("a"), Warned("late"))
    events[1] = replace(events[1], kind="trumpet_blown", payload=None)

    state = fold(events)

    assert (state.status, state.warnings, state.last_sequence) == ("PENDING", ("late",), 3)


@pytest.mark.parametrize("events", [[], log(Claimed("a"))])
def test_a_log_that_does_not_begin_with_its_creation_is_refused(events: list[object]) -> None:
    with pytest.raises(CorruptEventError, match="begins with its creation"):
        fold(events)  # type: ignore[arg-type]


AGENTS = st.sampled_from(["ada", "bo", "judge", ""])
WORKS = st.builds(
    Work,
    st.sampled_from(["proposal", "critique", "summary", FIRST_DRAFT_VOTE]),
    AGENTS,
    st.integers(0, 3),
    AGENTS,
)
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["groups", "majority"]), inner)
    ),
    max_leaves=5,
)
PAYLOADS: st.SearchStrategy[Draft | Payload] = st.one_of(
    st.builds(Claimed, st.just("a")),
    st.builds(Recalled, st.just(("deb-1",))),
    st.builds(RoundStarted, st.integers(1, 3), st.just(3)),
    st.builds(RoundFinished, st.integers(1, 3)),
    st.builds(PhaseStarted, st.just("proposal"), st.integers(1, 3), st.just(2)),
    st.builds(PhaseFinished, st.just("proposal"), st.integers(1, 3)),
    st.builds(StepStarted, WORKS, st.just("digest")),
    st.builds(lambda work, value: StepSucceeded(work, "digest", value=value), WORKS, JSON),
    st.builds(lambda work, attempt: succeeded(work, "text", attempt=attempt), WORKS, st.integers(1, 3)),
    st.builds(lambda work, attempt: failed(work, attempt=attempt), WORKS, st.integers(1, 3)),
    st.builds(Warned, st.text(max_size=5)),
    st.builds(Intervened, st.just("w"), st.sampled_from(["cancel", "pause", "resume", "end"])),
    st.builds(ControlSeen, st.integers(0, 9)),
    st.builds(Paused),
    st.builds(Resumed),
    st.just(FAILURE),
    st.builds(Concluded, st.sampled_from(["completed", "cancelled"])),
    st.builds(Closed),
)


@given(st.lists(PAYLOADS, max_size=30), st.data())
def test_folding_a_log_in_parts_is_folding_it_whole(
    happened: list[Draft | Payload], data: st.DataObject
) -> None:
    events = log(CREATED, *happened)
    cut = data.draw(st.integers(1, len(events)))

    assert advance(fold(events[:cut]), events[cut:]) == fold(events)


@given(st.lists(PAYLOADS, max_size=30))
def test_each_step_stands_once_and_every_attempt_of_an_agent_is_counted(
    happened: list[Draft | Payload],
) -> None:
    events = log(CREATED, *happened)
    state = fold(events)

    keys = [made.key for made in state.contributions] + [lost.key for lost in state.failures]
    assert len(keys) == len(set(keys))
    assert state.last_sequence == len(events)
    assert (state.failure is not None) == (state.status == "FAILED")
    assert state.calls >= len(state.contributions)
