"""What an evaluation comes to: averages of the scores that were given, and how they are shown."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from parley.orchestrator.engine.format import AnswerPart
from parley.orchestrator.formats.evaluation.dimensions import DIMENSIONS, MAX_SCORE
from parley.orchestrator.formats.evaluation.judgement import Judgement
from parley.v1.debate_pb2 import Debate, Outcome
from parley.v1.evaluation_pb2 import (
    DimensionAverage,
    DimensionScore,
    EvaluationDimension,
    EvaluationOutcome,
    EvaluatorScores,
    FailedEvaluator,
)

_TITLES = {each.number: each.title for each in DIMENSIONS}


def outcome_of(
    debate_id: str, judgements: Mapping[str, Judgement], failed: Sequence[FailedEvaluator]
) -> Outcome:
    """Return the outcome of the judgements, at least one, by the ids of their evaluators."""
    evaluators = [_scores(agent, judgement) for agent, judgement in judgements.items()]
    averages = list(_averages(evaluators))
    evaluation = EvaluationOutcome(
        debate_id=debate_id,
        evaluators=evaluators,
        averages=averages,
        overall=fmean(each.average for each in averages),
        failed=failed,
    )
    return Outcome(description=_summary(evaluation), evaluation=evaluation)


def answer_parts(debate: Debate) -> Iterator[AnswerPart]:
    """Yield the parts of an evaluation in the order in which they are read."""
    evaluation = debate.outcome.evaluation
    yield AnswerPart("", debate.outcome.description)
    yield AnswerPart("Scores", _table(evaluation))
    for each in evaluation.evaluators:
        reasons = [f"{_TITLES[score.dimension]}: {score.reason}" for score in each.scores if score.reason]
        yield AnswerPart(f"Reasons of {each.agent_id}", items=reasons)
    yield AnswerPart("Strengths", items=list(_points(evaluation, "strengths")))
    yield AnswerPart("Weaknesses", items=list(_points(evaluation, "weaknesses")))


def _scores(agent: str, judgement: Judgement) -> EvaluatorScores:
    judged = judgement.by_dimension()
    scores = [
        DimensionScore(dimension=each.number, score=score, reason=judged[each.name].reason)
        for each in DIMENSIONS
        if (score := judged[each.name].score) is not None
    ]
    return EvaluatorScores(
        agent_id=agent,
        scores=scores,
        overall=fmean(each.score for each in scores),
        strengths=judgement.strengths,
        weaknesses=judgement.weaknesses,
    )


def _averages(evaluators: Sequence[EvaluatorScores]) -> Iterator[DimensionAverage]:
    for dimension in DIMENSIONS:
        given = [score for each in evaluators if (score := _score(each, dimension.number)) is not None]
        if given:
            yield DimensionAverage(dimension=dimension.number, average=fmean(given), evaluators=len(given))


def _score(evaluator: EvaluatorScores, dimension: EvaluationDimension.ValueType) -> float | None:
    return next((each.score for each in evaluator.scores if each.dimension == dimension), None)


def _summary(evaluation: EvaluationOutcome) -> str:
    count = len(evaluation.evaluators)
    by = "1 evaluator" if count == 1 else f"{count} evaluators, each by itself"
    lines = [f"**{evaluation.overall:.1f} of {MAX_SCORE}** for {evaluation.debate_id}, by {by}."]
    lines += [f"{each.agent_id} gave no score: {each.reason}." for each in evaluation.failed]
    return "\n\n".join(lines)


def _table(evaluation: EvaluationOutcome) -> str:
    """Return a row for each dimension and the whole, and a column for each evaluator and the average."""
    evaluators = evaluation.evaluators
    averages = {each.dimension: each.average for each in evaluation.averages}
    rows = [["Dimension", *(each.agent_id for each in evaluators), "Average"]]
    rows.append(["---", *(["---:"] * (len(evaluators) + 1))])
    for dimension in DIMENSIONS:
        given = [_score(each, dimension.number) for each in evaluators]
        rows.append([dimension.title, *map(_cell, given), _cell(averages.get(dimension.number))])
    rows.append(["Overall", *(_cell(each.overall) for each in evaluators), _cell(evaluation.overall)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(score: float | None) -> str:
    return "–" if score is None else f"{score:.1f}"  # noqa: RUF001 - nothing was given


def _points(evaluation: EvaluationOutcome, field: str) -> Iterator[str]:
    for evaluator in evaluation.evaluators:
        for point in getattr(evaluator, field):
            yield f"{evaluator.agent_id}: {point}" if len(evaluation.evaluators) > 1 else point
