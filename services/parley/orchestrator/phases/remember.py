"""What memory gets of a finished debate: what it decided and how clearly, who disagrees, where agents stood, and which issues came up.

All of it follows from the outcome and the log, so that every owner of the debate sends the same. Texts name agents as people
read them: letters mean nothing outside of their debate.
"""

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from typing import Final

from parley.orchestrator.model.disagreement import list_objections
from parley.orchestrator.model.issue_table import IssueTable, TrackedIssue
from parley.orchestrator.model.named_sources import list_citations
from parley.orchestrator.model.sources import count_citations, describe_place, name_sources
from parley.orchestrator.model.times import timestamp
from parley.orchestrator.model.voting import strength_of
from parley.orchestrator.peers.services import truncate_conclusion
from parley.orchestrator.phases.count_votes import list_alike
from parley.runtime.agent_names import Names
from parley.v1.critique_pb2 import Issue
from parley.v1.debate_pb2 import Contribution, DebateSpec, Outcome
from parley.v1.event_pb2 import StepSucceeded
from parley.v1.memory_pb2 import Evidence, FinalStand, PastDebate, RecordDebateRequest, RecordedIssue
from parley.v1.panel_pb2 import Objection
from parley.v1.source_pb2 import Source
from parley.v1.voting_pb2 import VOTE_STRENGTH_UNSPECIFIED, Vote, VoteStrength

_MAX_CHARACTERS: Final = 4_000
"""Of a text other than question and conclusion, so that it has at most the 16 KiB that memory accepts."""
_MAX_DISSENTS: Final = 32
_MAX_STANDS: Final = 64
_MAX_ISSUES: Final = 256
_MAX_EVIDENCE: Final = 32


def create_record(
    debate_id: str,
    spec: DebateSpec,
    outcome: Outcome,
    replies: Sequence[StepSucceeded],
    names: Names,
    sources: Sequence[Source],
    concluded_at: datetime,
) -> RecordDebateRequest:
    """Return what memory is to keep of a debate.

    `replies` are the answers of all agents in the order of the log; `sources`: what it could cite.
    """
    stands = list_final_stands(outcome, replies, names)
    past = PastDebate(
        debate_id=debate_id,
        question=spec.question,
        conclusion=truncate_conclusion(name_sources(outcome.description, sources)),
        domain=spec.domain,
        concluded_at=timestamp(concluded_at),
        strength=decision_strength(outcome),
        dissents=list_dissents(outcome, stands, names),
        evidence=list_evidence(outcome.description, sources),
        related=outcome.related,
    )
    if outcome.HasField("effect"):
        past.confidence.CopyFrom(outcome.effect.confidence)
    return RecordDebateRequest(debate=past, stands=stands, issues=list_issues(replies, names))


def decision_strength(outcome: Outcome) -> VoteStrength.ValueType:
    """Return how clear a decision is: by its vote, or else by the share of the agents that take its position."""
    if outcome.arena.strength:
        return outcome.arena.strength
    if outcome.panel.HasField("vote"):
        return outcome.panel.vote.strength
    sure = outcome.effect.confidence
    if not sure.votes_cast:
        return VOTE_STRENGTH_UNSPECIFIED
    return strength_of(Fraction(sure.votes, sure.votes_cast))


def list_final_stands(outcome: Outcome, replies: Sequence[StepSucceeded], names: Names) -> list[FinalStand]:
    """Return the first and the last position that each agent stated in a round, by agent id."""
    stated: dict[str, list[str]] = {}
    for each in replies:
        if each.work.round and not each.work.target_agent_id and each.reply.position:
            stated.setdefault(each.work.agent_id, []).append(each.reply.position)
    decided, firsts = outcome.effect.decided_position, _find_first_positions(outcome)
    supports = _find_supporters(outcome)
    return [
        FinalStand(
            agent_id=agent,
            agent_name=names.of(agent),
            text=_to_text(names, texts[-1]),
            for_decision=supports.get(agent),
            first_text=_to_text(names, texts[0]),
            first_for_decision=firsts[agent] == decided if decided and agent in firsts else None,
            first_position=firsts.get(agent, 0),
        )
        for agent, texts in sorted(stated.items())[:_MAX_STANDS]
    ]


def _find_first_positions(outcome: Outcome) -> dict[str, int]:
    """Return the number of the position that the first draft of each agent takes, as far as it is known."""
    return {
        agent: number
        for number, each in enumerate(outcome.effect.positions, start=1)
        for agent in each.first_agent_ids
    }


def _find_supporters(outcome: Outcome) -> dict[str, bool]:
    """Return of each agent whose last position is known whether that was decided for; who objects is against it."""
    effect = outcome.effect
    known = {
        agent: number == effect.decided_position
        for number, each in enumerate(effect.positions, start=1)
        for agent in each.last_agent_ids
        if effect.decided_position
    }
    return known | {each.agent_id: False for each in list_objections(outcome)}


def list_dissents(outcome: Outcome, stands: Sequence[FinalStand], names: Names) -> list[Objection]:
    """Return who disagrees with a decision, by agent id: with its objection, or why it voted otherwise, or its own position."""
    against = {
        each.agent_id: each.text for each in stands if each.HasField("for_decision") and not each.for_decision
    }
    reasons = _reasons_of_minority(outcome.panel.vote, outcome.panel.synthesized_by)
    objections = {each.agent_id: each.text for each in list_objections(outcome)}
    found = sorted((against | reasons | objections).items())
    return [Objection(agent_id=agent, text=_to_text(names, text)) for agent, text in found[:_MAX_DISSENTS]]


def _reasons_of_minority(vote: Vote, standing: str) -> dict[str, str]:
    """Return why agents voted for another proposal than the one that stands, if they say so."""
    alike = list_alike(vote, standing)
    return {
        each.agent_id: each.reason
        for each in vote.ballots
        if each.choice_agent_id not in alike and each.reason
    }


def list_issues(replies: Sequence[StepSucceeded], names: Names) -> list[RecordedIssue]:
    """Return the issues of critiques with what their authors answered, most severe first."""
    made = [
        Contribution(sequence=number, work=each.work, reply=each.reply)
        for number, each in enumerate(replies, start=1)
    ]
    found = sorted(IssueTable(made).issues, key=lambda each: -(each.severity or 0))
    return [_create_issue(each, names) for each in found[:_MAX_ISSUES]]


def _create_issue(each: TrackedIssue, names: Names) -> RecordedIssue:
    return RecordedIssue(
        critic_agent_id=each.critic,
        target_agent_id=each.target,
        issue=Issue(
            number=each.issue.number,
            text=_to_text(names, each.issue.text),
            severity=each.severity,
            suggestion=_to_text(names, each.issue.suggestion),
        ),
        status=each.answer.status,
        reason=_to_text(names, each.answer.reason),
    )


def list_evidence(answer: str, sources: Sequence[Source]) -> list[Evidence]:
    """Return the sentences of an answer that name their source, in order; a number that no source has is none."""
    found = [
        Evidence(text=name_sources(sentence, sources)[:_MAX_CHARACTERS], source=place[:_MAX_CHARACTERS])
        for sentence, named in list_citations(answer)
        if (place := _find_place(named, sources))
    ]
    return found[:_MAX_EVIDENCE]


def _find_place(named: Sequence[str], sources: Sequence[Source]) -> str:
    """Return where to look up the first source that exists of those that a sentence names; empty if none does."""
    known = {each.number: describe_place(each) for each in sources}
    places = (
        "; ".join(known[number] for number in count_citations(each) if number in known)
        if each.startswith("[")
        else each
        for each in named
    )
    return next(filter(None, places), "")


def _to_text(names: Names, text: str) -> str:
    """Return a text with names for letters and without numbers of sources, shortened before as well: these are looked for in no more than is kept."""
    return names.put_in(name_sources(text[:_MAX_CHARACTERS], ()))[:_MAX_CHARACTERS]
