"""What a receipt says of a debate, read from the events up to its conclusion."""

from collections.abc import Iterable, Iterator, Sequence

from parley.orchestrator.api.folding import fold
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.disagreement import list_objections
from parley.orchestrator.model.spec import participants_of
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Contribution, Debate, Outcome
from parley.v1.event_pb2 import Intervened
from parley.v1.receipt_pb2 import AnsweringModel, DecisionReceipt, ReceiptIntervention, ReceiptParticipant
from parley.v1.voting_pb2 import Vote


def create_decision_receipt(events: Sequence[Envelope], *, machine_only: bool) -> DecisionReceipt:
    """Return what the receipt of a debate says, given its events up to and including `Concluded` with an outcome."""
    debate = fold(events)
    outcome, arena = debate.outcome, debate.outcome.arena
    effect, details = outcome.effect, outcome.details
    receipt = DecisionReceipt(
        debate_id=debate.id,
        question=debate.spec.question,
        format=debate.spec.format,
        create_time=debate.create_time,
        conclude_time=events[-1].message.time,
        requested_by=events[0].message.debate_created.requested_by,
        participants=_describe_participants(debate),
        votes=_votes_of(outcome),
        strength=arena.strength or outcome.panel.vote.strength,
        dissents=list_objections(outcome),
        confidence=effect.confidence if effect.HasField("confidence") else None,
        stated_confidence=details.confidence if details.HasField("confidence") else None,
        usage=debate.usage,
        calls=debate.calls,
        interventions=_list_interventions(events),
        approvals=debate.approvals,
        ended_by=debate.ended_by,
        stop_reason=debate.stop_reason,
        stand_in=outcome.stand_in if outcome.HasField("stand_in") else None,
        demonstration=debate.demonstration,
        machine_only=machine_only,
    )
    if arena.HasField("decision"):
        receipt.decision.CopyFrom(arena.decision)
        if receipt.decision.HasField("judge_ballot"):
            receipt.decision.judge_ballot.ClearField("reason")
        _leave_out_reasons(receipt.decision.count)
    for vote in receipt.votes:
        _leave_out_reasons(vote)
    return receipt


def _describe_participants(debate: Debate) -> Iterator[ReceiptParticipant]:
    """Yield those who debated, and the judge; whoever was not chosen is left out."""
    agents: dict[str, Agent] = {each.id: each for each in (*participants_of(debate), debate.spec.judge.agent)}
    answers: dict[str, list[Contribution]] = {}
    for each in debate.contributions:
        answers.setdefault(each.work.agent_id, []).append(each)
    for agent_id in dict.fromkeys((*agents, *answers)):
        if agent_id:
            agent = agents.get(agent_id, Agent(id=agent_id))
            yield ReceiptParticipant(
                agent_id=agent_id,
                name=agent.name,
                role=agent.role,
                answered_by=_count_models(answers.get(agent_id, ())),
            )


def _count_models(answers: Iterable[Contribution]) -> list[AnsweringModel]:
    found: dict[tuple[str, str], AnsweringModel] = {}
    for each in answers:
        model = AnsweringModel(route=each.reply.route, model=each.reply.model)
        found.setdefault((model.route, model.model), model).answers += 1
    return list(found.values())


def _votes_of(outcome: Outcome) -> Sequence[Vote]:
    if outcome.panel.HasField("vote"):
        return [outcome.panel.vote]
    return outcome.arena.votes


def _leave_out_reasons(vote: Vote) -> None:
    for each in vote.ballots:
        each.ClearField("reason")


def _list_interventions(events: Iterable[Envelope]) -> Iterator[ReceiptIntervention]:
    for each in events:
        if isinstance(each.payload, Intervened):
            yield ReceiptIntervention(
                sequence=each.sequence,
                act=each.payload.intervention.WhichOneof("act") or "",
                intervened_by=each.payload.intervened_by,
                time=each.message.time,
            )
