"""What a panel comes to: the judge's answer, and how it is shown."""

from collections.abc import Iterator, Sequence

from parley.orchestrator.engine.format import AnswerPart
from parley.orchestrator.phases.count_votes import vote_lines
from parley.orchestrator.phases.requirements import Requirements
from parley.orchestrator.phases.synthesize import JudgeAnswer
from parley.v1.debate_pb2 import AgentScore, Outcome
from parley.v1.panel_pb2 import Objection, PanelOutcome, UnfulfilledRequirement
from parley.v1.voting_pb2 import Vote

MAX_CONFIDENCE_WITH_UNMET_REQUIREMENT = 40
"""The most confidence an answer may have while a stated hard requirement is unmet."""


def outcome_of(
    answer: JudgeAnswer, judge: str, letters: Sequence[tuple[str, str]], requirements: Requirements
) -> Outcome:
    """Return the outcome that a judge's answer makes; `letters` are the agents it was to score, each with its letter.

    What is required is what was drawn up at the start; the judge's own words count if nothing could be.
    """
    unmet = [
        UnfulfilledRequirement(text=each.text, hard=each.hard) for each in answer.unfulfilled_requirements
    ]
    if requirements.is_known:
        unmet = requirements.unmet(answer.requirements_met)
    cap = MAX_CONFIDENCE_WITH_UNMET_REQUIREMENT if any(each.hard for each in unmet) else 100
    scores = [
        AgentScore(agent_id=agent, score=answer.scores[letter])
        for agent, letter in sorted(letters)
        if letter in answer.scores
    ]
    panel = PanelOutcome(
        implementation=answer.implementation,
        tradeoffs=answer.tradeoffs,
        recommendations=answer.recommendations,
        unfulfilled_requirements=unmet,
        open_questions=answer.open_questions,
        confidence=None if answer.confidence is None else min(answer.confidence, cap),
        synthesized_by=judge,
    )
    return Outcome(description=answer.description, scores=scores, panel=panel)


def outcome_of_vote(text: str, author: str, vote: Vote) -> Outcome:
    """Return the outcome that a vote makes: the proposal that stands is the answer."""
    return Outcome(description=text, panel=PanelOutcome(synthesized_by=author, vote=vote))


def outcome_of_merge(text: str, writer: str, objections: Sequence[Objection]) -> Outcome:
    """Return the outcome that a merge makes."""
    return Outcome(description=text, panel=PanelOutcome(synthesized_by=writer, objections=objections))


def answer_parts(outcome: Outcome) -> Iterator[AnswerPart]:
    """Yield the parts of the answer in the order in which they are read."""
    panel = outcome.panel
    unmet = [
        f"{f'R{each.number}: ' if each.number else ''}{each.text}{' (a must)' if each.hard else ''}"
        for each in panel.unfulfilled_requirements
    ]
    yield AnswerPart("", outcome.description)
    yield AnswerPart("Implementation", panel.implementation)
    yield AnswerPart("Trade-offs", items=panel.tradeoffs)
    yield AnswerPart("Recommendations", items=panel.recommendations)
    yield AnswerPart("Unfulfilled requirements", items=unmet)
    yield AnswerPart("Open questions", items=panel.open_questions)
    if panel.HasField("vote"):
        lines = vote_lines(
            panel.vote, without_winner="the proposal with the most votes stands", with_shares=False
        )
        yield AnswerPart("Vote", items=list(lines), quoted=False)
    if panel.objections:
        yield AnswerPart("Objections", items=[f"{each.agent_id}: {each.text}" for each in panel.objections])
    if panel.HasField("confidence"):
        yield AnswerPart("Confidence", f"{panel.confidence} of 100, by {panel.synthesized_by}", quoted=False)
