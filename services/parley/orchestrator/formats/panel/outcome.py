"""What a panel comes to: the judge's answer, and how it is shown."""

from collections.abc import Iterator, Sequence

from parley.orchestrator.engine.format import NOT_ASKED, AnswerPart, Verdict
from parley.orchestrator.model.effect_text import describe_votes
from parley.orchestrator.model.names import names_of
from parley.orchestrator.model.spec import participants_of
from parley.orchestrator.phases.answer_details import create_details, detail_parts
from parley.orchestrator.phases.count_votes import (
    count_votes_for,
    describe_minority,
    describe_result,
    describe_voters_word,
    result_lines,
    vote_lines,
)
from parley.orchestrator.phases.propose import PROPOSAL
from parley.orchestrator.phases.requirements import Requirements
from parley.orchestrator.phases.synthesize import JudgeAnswer
from parley.v1.debate_pb2 import AgentScore, Debate, Outcome, StandIn
from parley.v1.panel_pb2 import SYNTHESIS_METHOD_MERGE, Objection, PanelOutcome
from parley.v1.voting_pb2 import Vote


def outcome_of(
    answer: JudgeAnswer, judge: str, letters: Sequence[tuple[str, str]], requirements: Requirements
) -> Outcome:
    """Return the outcome that a judge's answer makes; `letters` are the agents it was to score, each with its letter."""
    scores = [
        AgentScore(agent_id=agent, score=answer.scores[letter])
        for agent, letter in sorted(letters)
        if letter in answer.scores
    ]
    return Outcome(
        description=answer.description,
        scores=scores,
        details=create_details(answer, requirements),
        panel=PanelOutcome(synthesized_by=judge),
    )


def outcome_of_vote(text: str, author: str, vote: Vote) -> Outcome:
    """Return the outcome that a vote makes: the proposal that stands is the answer."""
    return Outcome(description=text, panel=PanelOutcome(synthesized_by=author, vote=vote))


def outcome_of_merge(text: str, writer: str, objections: Sequence[Objection]) -> Outcome:
    """Return the outcome that a merge makes."""
    return Outcome(description=text, panel=PanelOutcome(synthesized_by=writer, objections=objections))


def outcome_of_stand_in(text: str, stand_in: StandIn) -> Outcome:
    """Return the outcome of an agent's work that stands in for the answer."""
    return Outcome(description=text, stand_in=stand_in, panel=PanelOutcome(synthesized_by=stand_in.agent_id))


def verdict(debate: Debate) -> Verdict:
    """Return what a panel decided: who made the answer, who voted for it, and what is held against it."""
    panel, names = debate.outcome.panel, names_of(debate)
    objections = [
        f"{names.of(each.agent_id)} objects: {names.put_in(each.text)}" for each in panel.objections
    ]
    if panel.HasField("vote"):
        return Verdict(
            decision=describe_result(panel.vote, names, panel.synthesized_by),
            confidence=describe_voters_word(panel.vote, panel.synthesized_by),
            dissent=list(describe_minority(panel.vote, names, panel.synthesized_by)),
            no_dissent="No agent voted for another proposal.",
            votes=count_votes_for(panel.vote, panel.synthesized_by),
        )
    writer, authors = names.of_judge(panel.synthesized_by), names.list_of(_authors(debate))
    confidence = debate.outcome.effect.confidence
    votes = describe_votes(confidence) if confidence.votes else ""
    chosen = f" {votes[:1].upper()}{votes[1:]} chose it." if votes else ""
    merged = debate.spec.panel.synthesis_method == SYNTHESIS_METHOD_MERGE
    return Verdict(
        decision=f"Written by {writer} from the work of {authors}.{chosen}" if authors else "",
        dissent=objections,
        no_dissent="No agent objected to the answer." if merged else NOT_ASKED,
        by_positions=not merged,
    )


def _authors(debate: Debate) -> list[str]:
    """Return the agents that wrote a proposal."""
    authors = {made.work.agent_id for made in debate.contributions if made.work.activity == PROPOSAL.name}
    return [each.id for each in participants_of(debate) if each.id in authors]


def answer_parts(debate: Debate) -> Iterator[AnswerPart]:
    """Yield the parts of the answer of a debate in the order in which they are read."""
    panel, details, names = debate.outcome.panel, debate.outcome.details, names_of(debate)
    yield AnswerPart("", debate.outcome.description)
    yield from detail_parts(details, debate.requirements)
    if panel.HasField("vote"):
        lines = [*result_lines(panel.vote, names), *vote_lines(panel.vote, names, with_shares=False)]
        yield AnswerPart("Vote", items=lines, quoted=False)
    if panel.objections:
        objections = [f"{names.of(each.agent_id)}: {each.text}" for each in panel.objections]
        yield AnswerPart("Objections", items=objections, is_dissent=True)
