"""A round: arguments in parallel, rebuttals in sequence, the moderator's evaluation, and what follows from it."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from parley.orchestrator.formats.moderated.argue import argue, argument_key
from parley.orchestrator.formats.moderated.discussion import Discussion, Round
from parley.orchestrator.formats.moderated.ends import CLEAR_WINNER, ENDS
from parley.orchestrator.formats.moderated.evaluate import Decision, Evaluation, evaluate, plain_summary
from parley.orchestrator.formats.moderated.flags import flag_round, measures
from parley.orchestrator.formats.moderated.perspectives import opposing_pairs
from parley.orchestrator.formats.moderated.points import Speech
from parley.orchestrator.formats.moderated.rebut import rebut
from parley.orchestrator.formats.moderated.standing import RoundBriefing
from parley.orchestrator.formats.moderated.words import ARGUMENT, REBUTTAL, REPLY, quote_round
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.tasks import Task, user_part
from parley.orchestrator.phases.agreement import assess_agreement
from parley.orchestrator.phases.failing import answer_failure, debate_failure
from parley.orchestrator.phases.past import past_prompt
from parley.orchestrator.phases.progress import PhaseMarks
from parley.orchestrator.phases.prompting import direction, length_limit
from parley.v1.agent_pb2 import Agent
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONVERGED,
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT,
    ConvergenceVerdict,
)
from parley.v1.critique_pb2 import Critique
from parley.v1.event_pb2 import RoundAssessed, RoundsEnded, StepFailed

_AGREEMENT: Final = 90
"""Percent of agreement from which a round has converged."""
_DECISION_BY_VERDICT: Final[Mapping[ConvergenceVerdict.ValueType, Decision]] = {
    CONVERGENCE_VERDICT_CONVERGED: "agreement",
    CONVERGENCE_VERDICT_STABLE_DISAGREEMENT: "stagnation",
}
"""What an assessment comes to if the moderator says nothing."""
_REPLY: Final = "Answer it in a few sentences, to the point."


class Verdict(Struct, frozen=True):
    """What the moderator makes of a round.

    Attributes:
        finding: In a line, for people.
        end: Why the rounds end by it; None if they go on.
        next_prompt: What it puts to the debaters next.
    """

    finding: str
    end: RoundsEnded | None
    next_prompt: str


async def run_round(discussion: Discussion, put: str) -> Verdict:
    """Hold the next round, to which the moderator puts this, and return what it makes of it.

    Raise DebateFailedError if too few debaters have an argument.
    """
    async with discussion.run_round(put) as current:
        standing = _create_briefing(discussion, current)
        await _run_arguments(discussion, current, standing)
        before = discussion.rounds[-2].positions() if current.number > 1 else []
        await _run_rebuttals(discussion, current, standing)
        flags, astray = await flag_round(discussion, current)
        await _assess(discussion, current, before)
        found = await evaluate(discussion, current, [*measures(discussion, current), *flags])
        if isinstance(found, StepFailed):
            found = _evaluate_by_measures(discussion, current, found, astray)
        current.summary = found.summary
        reply = await _ask_for_reply(discussion, current, standing, found)
        redirected = _redirect(discussion, current, found)
        verdict = _create_verdict(discussion, current, found, reply, redirected)
        discussion.debate.record_event(
            f"round/{current.number}/evaluate/finding",
            RoundAssessed(round=current.number, ends_rounds=verdict.end is not None, finding=verdict.finding),
        )
    return verdict


def _create_briefing(discussion: Discussion, current: Round) -> RoundBriefing:
    return RoundBriefing(
        number=current.number,
        total=discussion.settings.max_rounds,
        prompt=current.prompt,
        contributions=discussion.contributions_before(before=current.number),
        summaries=[each.summary for each in discussion.rounds[:-2]],
        past=past_prompt(discussion.past),
        guidance=discussion.guidance,
        budget=discussion.settings.token_budget_per_round,
        bound=discussion.debate.spec.max_output_tokens,
        debaters=len(current.debaters),
    )


async def _run_arguments(discussion: Discussion, current: Round, standing: RoundBriefing) -> None:
    """Let all debaters argue at once; who fails is absent. Half of them, rounded up, is enough."""
    debate, number = discussion.debate, current.number
    if not current.debaters:
        raise DebateFailedError(
            "QUORUM_LOST", "every debater is muted", phase=f"round {number} {ARGUMENT.name}"
        )
    marks = PhaseMarks(debate, number, ARGUMENT, len(current.debaters))

    async def argue_with_marks(agent: Agent) -> Speech | StepFailed:
        marks.mark_start()
        made = await argue(debate, agent, standing)
        marks.mark_end()
        return made

    async with asyncio.TaskGroup() as tasks:
        asked = {each.id: tasks.create_task(argue_with_marks(each)) for each in current.debaters}
    for agent, task in asked.items():
        made = task.result()
        if isinstance(made, StepFailed):
            current.failed.append(made)
        else:
            current.arguments[agent] = made
    _require_arguments(discussion, current)


def _require_arguments(discussion: Discussion, current: Round) -> None:
    """Raise DebateFailedError unless half of the debaters, rounded up, have argued; at the end of the debate any argument is enough."""
    debate, number = discussion.debate, current.number
    enough = (len(current.debaters) + 1) // 2
    if len(current.arguments) >= enough or (debate.ending and (current.arguments or number > 1)):
        return
    failed = {argument_key(number, each.work.agent_id): each for each in current.failed}
    phase = f"round {number} {ARGUMENT.name}"
    if debate.ending:
        raise DebateFailedError(
            debate.ending.upper(),
            "the debate's limit was reached before any argument stood",
            phase=phase,
            steps=tuple(failed),
        )
    fail = debate_failure if number == 1 else partial(answer_failure, debate)
    raise fail(failed, phase, needed=enough - len(current.arguments))


async def _run_rebuttals(discussion: Discussion, current: Round, standing: RoundBriefing) -> None:
    """Let one debater after the other answer; each sees all arguments and the rebuttals before its own."""
    if len(current.arguments) < 2:
        return
    debate, number = discussion.debate, current.number
    marks = PhaseMarks(debate, number, REBUTTAL, len(current.arguments))
    for agent in current.debaters:
        if agent.id not in current.arguments:
            continue
        limit = standing.rebuttal_tokens(current.arguments[agent.id].tokens)
        marks.mark_start()
        if limit >= 0:
            made = await rebut(debate, agent, standing, current.speeches, limit)
            if isinstance(made, StepFailed):
                current.failed.append(made)
            else:
                current.rebuttals[agent.id] = made
        else:
            current.without_budget.add(agent.id)
        marks.mark_end()


async def _assess(discussion: Discussion, current: Round, before: Sequence[Contribution]) -> None:
    """Have convergence look at where the debaters stand, and stood before."""
    if len(current.arguments) < 2:
        return
    verdicts = [
        Contribution(
            agent,
            REBUTTAL.name,
            current.number,
            speech.contribution.text,
            target=other,
            critique=Critique(agrees=discussion.debate.letter(other) in speech.agrees_with),
        )
        for agent, speech in current.rebuttals.items()
        if speech.agrees_with is not None
        for other in current.arguments
        if other != agent
    ]
    current.assessment = await assess_agreement(
        discussion.debate, current.number, current.positions(), before, _AGREEMENT, verdicts
    )


def _evaluate_by_measures(
    discussion: Discussion, current: Round, failed: StepFailed, astray: frozenset[str]
) -> Evaluation:
    """Return what is known of a round without its moderator, and say in the log that it said nothing."""
    discussion.warn(
        f"round/{current.number}/evaluate/warning",
        f"the moderator did not evaluate round {current.number}; what was measured decides: {failed.message}",
    )
    measured = current.assessment.verdict if current.assessment is not None else None
    # It is no answer that was read, and may say nothing: a limit may have ended the round before anybody spoke.
    return Evaluation.model_construct(
        summary=plain_summary(discussion, current),
        off_topic=[discussion.debate.letter(each) for each in sorted(astray)],
        decision=_DECISION_BY_VERDICT.get(measured, "go_on") if measured is not None else "go_on",
        reason="by what was measured" if measured in _DECISION_BY_VERDICT else "",
    )


async def _ask_for_reply(
    discussion: Discussion, current: Round, standing: RoundBriefing, found: Evaluation
) -> Contribution | None:
    """Ask a debater what the moderator wants to know from it; None if there is nothing to ask, or no answer."""
    debate, number = discussion.debate, current.number
    agent = next((each for each in current.debaters if debate.letter(each.id) == found.agent), None)
    if (
        found.decision != "clarify"
        or not found.question
        or agent is None
        or agent.id not in current.arguments
    ):
        return None
    limit = standing.rebuttal_tokens(sum(each.tokens for each in current.speeches_of(agent.id)))
    if limit < 0:
        return None
    prompt = (
        *(await standing.create_preamble(debate, agent)),
        *quote_round(debate, [each.contribution for each in current.speeches], agent.id),
        direction("What the moderator asks you", found.question),
        user_part(f"{_REPLY}{length_limit(limit)}"),
    )
    task = Task(REPLY.create_work(agent.id, number), prompt, limit, retry_once=True)
    said = await debate.ask(f"round/{number}/reply/{agent.id}", agent, task)
    if isinstance(said, StepFailed):
        current.failed.append(said)
        return None
    reply = Contribution(agent.id, REPLY.title, number, said.text)
    current.replies.append(reply)
    return reply


def _redirect(discussion: Discussion, current: Round, found: Evaluation) -> list[str]:
    """Return what is said to those who left the question; who does so again is muted, if enough others are left."""
    said = []
    for agent in [each for each in current.arguments if discussion.debate.letter(each) in found.off_topic]:
        name = discussion.name_of(agent)
        discussion.off_topic_counts[agent] = discussion.off_topic_counts.get(agent, 0) + 1
        left = [discussion.viewpoints[each.id] for each in discussion.active_debaters if each.id != agent]
        if discussion.off_topic_counts[agent] > 1 and opposing_pairs(left):
            discussion.muted_by_moderator[agent] = current.number + 1
            said.append(f"{name} has left the question again and is not heard any more.")
            perspective = discussion.viewpoints[agent].name
            message = (
                f"{perspective} is muted from round {current.number + 1} on, since it left the question again"
            )
            discussion.warn(f"round/{current.number}/muted/{agent}", message)
        else:
            said.append(f"{name}: your argument has left the question. Come back to it.")
    return said


def _create_verdict(
    discussion: Discussion,
    current: Round,
    found: Evaluation,
    reply: Contribution | None,
    redirected: list[str],
) -> Verdict:
    """Return what follows from an evaluation, with what is put to the debaters next."""
    letters = {discussion.debate.letter(each): each for each in current.arguments}
    end = ENDS.get(found.decision)
    words = end.description if end is not None else "the debate goes on"
    if end is CLEAR_WINNER and found.agent in letters:
        words = f"{discussion.name_of(letters[found.agent])} has won"
    finding = f"{words}: {found.reason}" if found.reason else words
    ended = None if end is None else RoundsEnded(reason=end.reason, explanation=finding)
    blocks = [f"Round {current.number} in sum:\n{current.summary}"]
    if found.decision == "clarify" and found.question and found.agent in letters:
        asked = discussion.name_of(letters[found.agent])
        blocks.append(
            f"I asked {asked}: {found.question} It answered: {reply.text}"
            if reply is not None
            else f"{asked} is to answer this first: {found.question}"
        )
    blocks += redirected
    blocks.append(
        f"To be settled now: {found.open}" if found.open else "Settle now what is still open between you."
    )
    return Verdict(finding, ended, "\n\n".join(blocks))
