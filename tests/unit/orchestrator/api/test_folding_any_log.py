"""What holds of the state of any log, however it is folded."""

from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.api.folding import DebateFold, fold
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.events import Payload
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import (
    TRICKSTER_VERDICT_CHALLENGED,
    TRICKSTER_VERDICT_NO_ROUND_LEFT,
    TricksterFinding,
)
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_FAILED,
    Direction,
    DraftGroups,
    Work,
)
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Closed,
    ContributionObserved,
    DraftsGrouped,
    Event,
    ParticipantJoined,
    Paused,
    PhaseEntered,
    PhaseFinished,
    PhaseStarted,
    Recalled,
    Resumed,
    RoundAssessed,
    RoundFinished,
    RoundStarted,
    SteeringRead,
    StepStarted,
    StepSucceeded,
    TricksterChecked,
    WaitFinished,
    WaitStarted,
    Warned,
)
from parley.v1.rhetoric_pb2 import RhetoricalMark
from tests.support.interventions import intervention
from tests.unit.orchestrator.api.folded_events import ANSWERED, CANCELLED, CLAIMED, FAILURE
from tests.unit.orchestrator.made_logs import (
    CREATED,
    key_of,
    log,
    make_failure,
    make_success,
)

AGENTS = st.sampled_from(["ada", "bo", "judge"])


def works(agents: st.SearchStrategy[str]) -> st.SearchStrategy[Work]:
    return st.builds(
        Work,
        activity=st.sampled_from(["proposal", "critique", "summary", "first-draft-vote"]),
        agent_id=agents,
        round=st.integers(0, 3),
        target_agent_id=AGENTS | st.just(""),
    )


WORKS = works(AGENTS | st.just(""))


AGENTS_WORKS = works(AGENTS)


ROUNDS = st.integers(1, 3)


PAYLOADS: st.SearchStrategy[Event | Payload] = st.one_of(
    st.just(CLAIMED),
    st.just(Recalled(debate_ids=["deb-1"])),
    st.builds(RoundStarted, number=ROUNDS, total=st.just(3)),
    st.builds(RoundFinished, number=ROUNDS),
    st.builds(RoundAssessed, round=ROUNDS, ends_rounds=st.booleans(), finding=st.text(max_size=5)),
    st.builds(
        lambda number, verdict: TricksterChecked(finding=TricksterFinding(round=number, verdict=verdict)),
        ROUNDS,
        st.sampled_from([TRICKSTER_VERDICT_CHALLENGED, TRICKSTER_VERDICT_NO_ROUND_LEFT]),
    ),
    st.builds(
        lambda work: ContributionObserved(work=work, patterns=[RhetoricalMark(name="question")]), AGENTS_WORKS
    ),
    st.builds(PhaseStarted, activity=st.just("proposal"), round=ROUNDS, expected=st.just(2)),
    st.builds(PhaseFinished, activity=st.just("proposal"), round=ROUNDS),
    st.builds(PhaseEntered, name=st.text(max_size=5)),
    st.builds(
        lambda work, is_answer: create_event(
            key_of(work), StepStarted(work=work, digest="digest", is_answer=is_answer), 1
        ),
        WORKS,
        st.booleans(),
    ),
    st.builds(lambda work: StepSucceeded(work=work, digest="digest"), WORKS),
    st.builds(
        lambda work, attempt: make_success(work, "text", attempt=attempt), AGENTS_WORKS, st.integers(1, 3)
    ),
    st.builds(lambda work, attempt: make_failure(work, attempt=attempt), WORKS, st.integers(1, 3)),
    st.builds(Warned, message=st.text(max_size=5)),
    st.builds(intervention, st.sampled_from(["cancel", "pause", "resume", "end"]), st.just("w")),
    st.builds(SteeringRead, through=st.integers(0, 9)),
    st.just(CheckpointOpened(direction=Direction(text="Go on?"))),
    st.just(CheckpointClosed()),
    st.just(CheckpointExpired()),
    st.just(WaitStarted(reason="R")),
    st.just(WaitFinished()),
    st.just(DraftsGrouped(drafts=DraftGroups(majority=True, certain=True))),
    st.just(ParticipantJoined(agent=Agent(id="cy", name="Cy", role="testing"))),
    st.builds(Paused),
    st.builds(Resumed),
    st.just(FAILURE),
    st.sampled_from([ANSWERED, CANCELLED]),
    st.builds(Closed),
)


@given(st.lists(PAYLOADS, max_size=30), st.data())
def test_folding_a_log_in_parts_is_folding_it_whole(
    happened: list[Event | Payload], data: st.DataObject
) -> None:
    events = log(CREATED, *happened)
    cut = data.draw(st.integers(1, len(events)))

    folded = DebateFold(events[:cut])
    before = folded.debate
    folded.extend(events[cut:])
    assert (before, folded.debate) == (fold(events[:cut]), fold(events))
    assert folded.log_bytes == sum(len(each.entry) for each in events)


@given(st.lists(PAYLOADS, max_size=30))
def test_each_step_stands_once_and_every_attempt_of_an_agent_is_counted(
    happened: list[Event | Payload],
) -> None:
    events = log(CREATED, *happened)
    state = fold(events)

    keys = [made.key for made in state.contributions] + [lost.key for lost in state.failures]
    assert len(keys) == len(set(keys))
    assert state.last_sequence == len(events)
    assert state.HasField("failure") == (state.status == DEBATE_STATUS_FAILED)
    assert state.calls >= len(state.contributions)
