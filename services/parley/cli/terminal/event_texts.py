"""Limits, waits, checkpoints and the ends of rounds as texts, which several displays of the terminal share."""

from collections.abc import Iterator

from google.protobuf.message import Message

from parley.cli.terminal.checkpoints import closed_text, opened_text
from parley.cli.terminal.words import find_first_line
from parley.client import Debate
from parley.runtime.work_words import NO_PERSON_ANSWERED, TRYING_AGAIN, limit_text, trickster_text, wait_text
from parley.v1.arena_pb2 import TricksterFinding
from parley.v1.debate_pb2 import DraftGroups
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    LimitReached,
    RoundAssessed,
    WaitFinished,
    WaitStarted,
)


def limit_or_wait_text(payload: Message | None) -> str | None:  # noqa: PLR0911 (a case a kind)
    """Return one line on a limit, a wait or a checkpoint; None for any other event."""
    match payload:
        case LimitReached() as reached:
            return limit_text(reached)
        case WaitStarted() as started:
            return wait_text(started)
        case WaitFinished():
            return TRYING_AGAIN
        case CheckpointOpened() as opened:
            return opened_text(opened)
        case CheckpointClosed() as closed:
            return closed_text(closed)
        case CheckpointExpired():
            return NO_PERSON_ANSWERED
        case _:
            return None


def assessment_text(assessed: RoundAssessed, ended_by: str = "") -> str:
    """Return `ended after round 2: the agents agree`; `ended_by` is another reason for which the rounds end."""
    if assessed.ends_rounds or ended_by:
        return _after_round(
            "ended after", assessed.round, assessed.finding if assessed.ends_rounds else ended_by
        )
    return _after_round("  after", assessed.round, assessed.finding)


def trickster_line(finding: TricksterFinding) -> str:
    """Return what the trickster found after a round, such as `  after round 3: the agreement is hollow (87 %, threshold 60 %)`."""
    return _after_round("  after", finding.round, trickster_text(finding))


def rounds_end_text(debate: Debate) -> str:
    """Return why the rounds of a debate ended; empty if they have not, or if there is no reason to name."""
    if debate.stop_explanation:
        return f"ended: {debate.stop_explanation}"
    return (
        _after_round("ended after", debate.current_round, debate.rounds_ended_by)
        if debate.rounds_ended_by
        else ""
    )


def vote_text(drafts: DraftGroups) -> str:
    """Return `over the first drafts: 2 of 3 agree`, `…: no majority`, or `…: not certain`."""
    if not drafts.certain:
        return "over the first drafts: not certain"
    voters = sum(len(group.agent_ids) for group in drafts.groups)
    result = f"{len(drafts.groups[0].agent_ids)} of {voters} agree" if drafts.majority else "no majority"
    return f"over the first drafts: {result}"


def vote_lines(drafts: DraftGroups, width: int) -> Iterator[str]:
    """Yield the vote and its groups, a line each, with positions cut to the width."""
    yield f"  vote {vote_text(drafts)}"
    for group in drafts.groups:
        position = find_first_line(group.position, width) or "no position stated"
        yield f"    {', '.join(group.agent_ids)}: {position}"


def _after_round(place: str, number: int, why: str) -> str:
    return f"{place} round {number}: {why}" if why else f"{place} round {number}"
