"""Progress as a fold of events, and the lines that tell of it."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.cli.display import status_line
from parley.cli.early import RoundEnds
from parley.cli.events import EventLines
from parley.cli.progress import Phase, Progress, advance, news, resumed_text
from parley.client import DebateEvent, TextPiece
from parley.client.events import (
    Claimed,
    Closed,
    Concluded,
    DebateCreated,
    DebateFailed,
    Paused,
    Payload,
    PhaseFinished,
    PhaseStarted,
    Reply,
    Resumed,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    Usage,
    Warned,
    Work,
)

ADA = Work("proposal", "ada", 1)
BO = Work("proposal", "bo", 1)


def event(payload: Payload | None, key: str = "k", sequence: int = 1) -> DebateEvent:
    kind = type(payload).__name__
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind).lstrip("_")
    return DebateEvent(sequence, key, 1, snake, datetime(2026, 1, 2, tzinfo=UTC), payload, "{}")


def reply(cost: int | None = 100) -> Reply:
    return Reply("text", usage=Usage(30, 12, cost, 1), latency_ms=2100)


def after(*events: DebateEvent) -> Progress:
    progress = Progress()
    for each in events:
        progress = advance(progress, each)
    return progress


def test_a_round_shows_its_phases_who_works_and_what_it_took() -> None:
    progress = after(
        event(Claimed("x")),
        event(RoundStarted(2, 3)),
        event(PhaseStarted("proposal", 1, 2)),
        event(StepStarted(ADA), "a"),
        event(StepStarted(BO), "b"),
        event(StepSucceeded(ADA, reply()), "a"),
    )
    assert (progress.state, progress.round, progress.rounds) == ("running", 2, 3)
    assert progress.phases == (Phase("proposal", 1, 2, 1),)
    assert progress.working == {"b": BO}
    assert (progress.calls, progress.input_tokens, progress.output_tokens, progress.cost_micros) == (
        1,
        30,
        12,
        100,
    )
    assert status_line(progress, 65.4) == "Round 2/3 · 1:05 · 42 tokens · $0.0001"


def test_phases_that_overlap_are_counted_apart() -> None:
    critique = Work("critique", "bo", 1, "ada")
    progress = after(
        event(PhaseStarted("proposal", 1, 2)),
        event(PhaseStarted("critique", 1, 2)),
        event(StepSucceeded(critique, reply()), "c"),
        event(StepFailed(ADA, "CALL_TIMEOUT"), "a"),
        event(StepSucceeded(BO, reply()), "b"),
        event(PhaseFinished("proposal", 1)),
    )
    assert progress.phases == (Phase("critique", 1, 2, 1),)


def test_a_cost_that_is_unknown_once_stays_unknown() -> None:
    assert (
        after(event(StepSucceeded(ADA, reply(None))), event(StepSucceeded(BO, reply()))).cost_micros is None
    )


def test_work_of_an_earlier_owner_is_void() -> None:
    started = event(StepStarted(ADA), "a")
    for ending in (Claimed("y"), Paused(), Resumed(), DebateFailed("X"), Concluded("cancelled")):
        assert after(started, event(ending)).working == {}


@given(st.lists(st.sampled_from(["a", "b", "c"]).map(lambda key: (key, True)) | st.just(("a", False))))
def test_whoever_ended_is_not_at_work(steps: list[tuple[str, bool]]) -> None:
    progress, open_steps = Progress(), set[str]()
    for key, starts in steps:
        progress = advance(progress, event(StepStarted(ADA) if starts else StepSucceeded(ADA), key))
        (open_steps.add if starts else open_steps.discard)(key)
    assert set(progress.working) == open_steps


def test_plain_lines_tell_rounds_phases_failures_and_warnings() -> None:
    phase = Progress(phases=(Phase("proposal", 1, 2, 2),))
    assert news(Progress(), event(RoundStarted(1, 3))) == "round 1/3"
    assert news(Progress(), event(PhaseStarted("proposal", 1, 2))) == "  proposal: 2 to come"
    assert news(phase, event(PhaseFinished("proposal", 1))) == "  proposal: 2/2"
    assert news(Progress(), event(StepFailed(ADA, "PROVIDER_AUTH", "401"))) == (
        "  ada: round 1 proposal failed: PROVIDER_AUTH: 401"
    )
    assert news(Progress(), event(Warned("late"))) == "warning: late"
    assert news(Progress(), event(StepStarted(Work("synthesis", "judge")))) == "judge writes the answer"
    assert news(Progress(), event(None)) is None


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(), "no round is recorded; beginning with the first"),
        (
            Progress(round=1, rounds=3, phases=(Phase("critique", 1, 6, 2),)),
            "no round is complete; going on in round 1 (critique 2/6)",
        ),
        (Progress(round=1, rounds=3, complete=1), "1 round is recorded; going on in round 2"),
        (Progress(round=13, rounds=20, complete=12), "12 rounds are recorded; going on in round 13"),
        (Progress(round=3, rounds=3, complete=3), "3 rounds are recorded; going on with the answer"),
        (
            Progress(round=1, rounds=3, complete=1, ends=RoundEnds(1, "enough", "enough")),
            "1 round is recorded; going on with the answer",
        ),
    ],
)
def test_a_resumed_debate_says_where_it_goes_on(progress: Progress, text: str) -> None:
    assert resumed_text(progress) == text


def decided(activity: str, payload: dict[str, object], before: Progress | None = None) -> str | None:
    reply = Reply(json.dumps(payload)) if activity == "assessment" else None
    text = json.dumps({"value": payload})
    happened = replace(event(StepSucceeded(Work(activity, round=2), reply)), payload_json=text)
    begun = advance(before or Progress(), event(RoundStarted(2, 3)))
    return news(begun, happened)


def test_what_a_check_between_rounds_came_to_is_told() -> None:
    strict = advance(Progress(), event(DebateCreated({"termination": {"threshold_percent": 95}})))
    assert decided("convergence", {"verdict": "CONTINUE", "agreement_percent": 51.3}) == (
        "  after round 2: the agents do not agree yet (51 %, threshold 90 %)"
    )
    assert decided("convergence", {"verdict": "STABLE_DISAGREEMENT", "agreement_percent": 20}) == (
        "ended after round 2: the agents disagree and no longer move (agreement 20 %, threshold 90 %)"
    )
    assert decided("assessment", {"scores": {"A": 93, "B": 10}}) == (
        "ended after round 2: the judge scores the best work 93 of 100 (threshold 90)"
    )
    assert decided("assessment", {"scores": {"A": 93}}, strict) == (
        "  after round 2: the judge scores the best work 93 of 100 (threshold 95)"
    )


def lines(*seen: DebateEvent | TextPiece) -> list[str]:
    shown = EventLines("deb-20260102-030405-abcdefgh")
    return [line for each in seen for line in shown.of(each)]


def test_text_is_shown_line_by_line_and_the_rest_with_the_outcome() -> None:
    assert lines(
        event(StepStarted(ADA), "k", 4),
        TextPiece("k", 1, 1, 0, "Use o"),
        TextPiece("k", 1, 1, 5, "ne.\nThen"),
        event(StepSucceeded(ADA, reply()), "k", 5),
        event(Closed(), "x", 6),
    ) == [
        "4 ada proposes",
        "    k | Use one.",
        "    k | Then",
        "5 ada proposal: done (2.1 s, 42 tokens)",
        "6 closed",
    ]


def test_a_new_try_voids_the_text_before_and_repeated_text_is_shown_once() -> None:
    assert lines(
        TextPiece("k", 1, 1, 0, "wrong\n"),
        TextPiece("k", 1, 2, 0, "right"),
        TextPiece("k", 1, 2, 0, "right\n"),
        TextPiece("k", 1, 1, 6, "late\n"),
    ) == ["    k | wrong", "    k | (begins again)", "    k | right"]


def test_a_long_line_is_broken_between_words() -> None:
    shown = lines(TextPiece("k", 1, 1, 0, "word " * 50), event(StepSucceeded(ADA), "k"))
    assert all(len(line) <= 110 for line in shown)
    assert " ".join(line.split("| ")[1] for line in shown[:-1]).split() == ["word"] * 50
