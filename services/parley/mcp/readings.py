"""Read debates and memory at the orchestrator, as the results of tools."""

from collections.abc import Iterator
from typing import Final, get_args

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

from parley.client import Debate, DebateStatus, DebateSummary, ParleyClient
from parley.mcp.results import (
    ANSWER_CHARACTERS,
    Confidence,
    Cost,
    DebateLine,
    DebateResult,
    Kind,
    Objection,
    PastDecision,
    Question,
    Status,
    VoteShare,
    Wait,
)
from parley.runtime.printable import printable
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_CANCELLED,
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_FAILED,
    DEBATE_STATUS_PAUSED,
    DEBATE_STATUS_WAITING,
    Outcome,
    Waiting,
)
from parley.v1.memory_pb2 import PastDebate
from parley.v1.moderated_pb2 import Confidence as ModeratorConfidence
from parley.v1.orchestrator_pb2 import GetAnswerResponse
from parley.v1.voting_pb2 import Vote, VoteStrength

_KINDS: Final = frozenset(get_args(Kind))
_DOLLAR_MICROS: Final = 1_000_000
_HOW: Final = {
    "questions": "steer_debate with action `answer` and text, or answers by the questions' ids; `continue` goes on without",
    "direction": "steer_debate with action `continue`, `guide` and text, or `end`",
    "approval": "steer_debate with action `approve` or `refuse`, and text if there is something to say",
}
_NEXT: Final = {
    DEBATE_STATUS_COMPLETED: "read the report for the contributions, critiques and sources",
    DEBATE_STATUS_FAILED: "steer_debate with action `resume` tries again, once the cause is gone",
    DEBATE_STATUS_CANCELLED: "it is over; start another one",
    DEBATE_STATUS_PAUSED: "steer_debate with action `resume` goes on",
}


async def read_debate(parley: ParleyClient, debate_id: str) -> DebateResult:
    """Return the debate as it stands, with its answer if it has one. Raise ParleyError."""
    debate = await parley.get_summary(debate_id)
    result = _to_result(debate)
    if debate.status == DEBATE_STATUS_COMPLETED:
        _add_answer(result, await parley.get_answer(debate_id))
    return result


def to_line(summary: DebateSummary) -> DebateLine:
    """Return a debate as it stands in a list."""
    return DebateLine(
        debate_id=summary.id,
        status=to_status(summary.status),
        format=summary.format,
        question=summary.question,
        created=_to_time(summary.create_time),
    )


def to_past_decision(past: PastDebate) -> PastDecision:
    """Return a past debate as a result has it."""
    confidence = past.confidence
    return PastDecision(
        debate_id=past.debate_id,
        question=past.question,
        conclusion=past.conclusion,
        concluded=_to_time(past.concluded_at),
        domain=past.domain,
        strength=_to_word(VoteStrength.DESCRIPTOR, past.strength),
        percent=confidence.percent if confidence.HasField("percent") else None,
        similarity_percent=round(past.relevance.similarity_percent, 1),
        dissent=[Objection(agent_id=each.agent_id, text=each.text) for each in past.dissents],
    )


def to_wait(waiting: Waiting) -> Wait:
    """Return what is waited for, and how to answer."""
    kind = waiting.WhichOneof("request") or "other"
    return Wait(
        checkpoint=waiting.checkpoint,
        kind=kind if kind in _KINDS else "other",
        text=waiting.message,
        questions=[
            Question(id=each.id, text=each.text, agent_id=each.agent_id)
            for each in waiting.questions.questions
        ],
        until=_to_time(waiting.until),
        how_to_answer=_HOW.get(kind, ""),
    )


def to_status(status: DebateStatus.ValueType) -> Status:
    """Return the status as a word; `unknown` for one of a later version."""
    word = _to_word(DebateStatus.DESCRIPTOR, status)
    return next((each for each in get_args(Status) if each == word), "unknown")


def _to_result(debate: Debate) -> DebateResult:
    return DebateResult(
        debate_id=debate.id,
        status=to_status(debate.status),
        format=debate.spec.format,
        question=debate.spec.question,
        phase=debate.phase,
        stopped_because=debate.stop_explanation,
        waiting=to_wait(debate.waiting) if debate.status == DEBATE_STATUS_WAITING else None,
        failure=debate.failure.message if debate.status == DEBATE_STATUS_FAILED else "",
        warnings=list(debate.warnings),
        cost=_to_cost(debate),
        demonstration=debate.demonstration,
        report=f"parley://debates/{debate.id}/report",
        next=_say_next(debate),
    )


def _add_answer(result: DebateResult, answer: GetAnswerResponse) -> None:
    text = printable(answer.markdown)
    outcome = answer.outcome
    result.answer = text[:ANSWER_CHARACTERS]
    result.answer_characters_left_out = max(0, len(text) - ANSWER_CHARACTERS)
    result.confidence = _to_confidence(outcome)
    vote = _find_vote(outcome)
    result.votes = [
        VoteShare(agent_id=each.agent_id, votes=each.votes, share=round(each.share, 4))
        for each in vote.options
    ]
    result.dissent = list(_list_dissent(outcome))
    if outcome.HasField("moderated"):
        result.decision = f"parley://debates/{result.debate_id}/decision"


def _list_dissent(outcome: Outcome) -> Iterator[Objection]:
    """Yield what agents object to; where no agent voted, then the positions of others who take another one in the end."""
    stated = (*outcome.panel.objections, *outcome.arena.dissent, *outcome.moderated.dissents)
    yield from (Objection(agent_id=each.agent_id, text=each.text) for each in stated)
    effect = outcome.effect
    if outcome.HasField("arena") or outcome.panel.HasField("vote") or not effect.decided_position:
        return
    objectors = {each.agent_id for each in stated}
    for number, position in enumerate(effect.positions, start=1):
        others = () if number == effect.decided_position else position.last_agent_ids
        yield from (Objection(agent_id=each, text=position.text) for each in others if each not in objectors)


def _to_confidence(outcome: Outcome) -> Confidence:
    sure = outcome.effect.confidence
    word = sure.judge_word or _to_word(ModeratorConfidence.DESCRIPTOR, outcome.moderated.confidence)
    return Confidence(
        percent=round(sure.percent, 1) if sure.HasField("percent") else None,
        votes=sure.votes,
        votes_cast=sure.votes_cast,
        strength=_to_word(VoteStrength.DESCRIPTOR, outcome.arena.strength or _find_vote(outcome).strength),
        writer_word=word,
    )


def _find_vote(outcome: Outcome) -> Vote:
    """Return the vote that decided; an empty one if there was none."""
    if outcome.arena.HasField("decision"):
        return outcome.arena.decision.count
    return outcome.panel.vote


def _to_cost(debate: Debate) -> Cost:
    usage = debate.usage
    return Cost(
        dollars=usage.cost_micros / _DOLLAR_MICROS if usage.HasField("cost_micros") else None,
        calls=debate.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )


def _say_next(debate: Debate) -> str:
    if debate.status == DEBATE_STATUS_WAITING and debate.waiting.checkpoint:
        return "answer what it waits for, then get_debate"
    return _NEXT.get(debate.status, "it goes on by itself; get_debate shows how it stands")


def _to_word(enum: EnumDescriptor, number: int) -> str:
    """Return `strong` for VOTE_STRENGTH_STRONG; empty for the first, unspecified, and for one of a later version."""
    value = enum.values_by_number.get(number)
    if value is None or not number:
        return ""
    prefix = str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")
    return str(value.name).removeprefix(prefix).lower()


def _to_time(stamp: Timestamp) -> str:
    return stamp.ToJsonString() if stamp.seconds else ""
