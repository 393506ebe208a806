"""The decision: the moderator writes it from the whole debate, and a person approves it."""

from typing import Final

from parley.orchestrator.engine.format import AnswerPart
from parley.orchestrator.formats.moderated.discussion import Discussion
from parley.orchestrator.formats.moderated.effect import effect_of_decision, list_debater_stands
from parley.orchestrator.formats.moderated.ends import CONFIDENCE_NAMES, max_confidence
from parley.orchestrator.formats.moderated.evaluate import moderator_preamble, summary_prompts
from parley.orchestrator.formats.moderated.outcome import (
    DecisionAnswer,
    ProseDecision,
    decision_parts,
    decision_shape,
    outcome_of,
)
from parley.orchestrator.formats.moderated.words import DECISION, REBUTTAL, quote_round
from parley.orchestrator.model.best_work import choose_best_work, describe_stand_in
from parley.orchestrator.model.contributions import Contribution, texts_of
from parley.orchestrator.model.errors import DebateFailedError
from parley.orchestrator.model.tasks import Prompt, Task, size_of_prompt, user_part
from parley.orchestrator.phases.account import describe_rounds
from parley.orchestrator.phases.answer_questions import AnswerQuestions
from parley.orchestrator.phases.effect import PositionQuestion, ask_positions
from parley.orchestrator.phases.history import available_tokens, count_prompt_tokens, shorten_to_fit
from parley.orchestrator.phases.past import PastQuestion
from parley.orchestrator.phases.prompting import FOR_READERS, guidance_of, quotation
from parley.orchestrator.phases.situation import history_prompt
from parley.orchestrator.phases.stand_in import ask_for_answer, create_stand_in
from parley.orchestrator.phases.summarize import summarize_for_judge
from parley.orchestrator.phases.usable import create_check
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.agent_pb2 import SummarySettings
from parley.v1.critique_pb2 import Critique
from parley.v1.debate_pb2 import Approval, Outcome
from parley.v1.event_pb2 import RoundsEnded, StepFailed
from parley.v1.moderated_pb2 import CONFIDENCE_LOW

_MAX_SYNTHESES: Final = 3
_TASK_TOKENS: Final = 2500
_TASK: Final = (
    f"The rounds are over. Write the decision for the person who asked, who has not read the debate. {FOR_READERS}\n"
    "- topic: what is decided on, in a few words.\n"
    "- perspectives: for every agent its key arguments at their strongest, as they stood in the end, each in a sentence or two"
    " without names of points.\n"
    "- agreements: on what all of them agree; only what all of them said or conceded.\n"
    "- tensions: where they pull in different directions, and on what. Say of each whether it is still open, and else"
    " how it was settled: whose point was conceded, or what was agreed.\n"
    "- recommendation: what to do, and why, complete in itself: begin with the decision in one sentence, then the reasons that"
    " carried it, and how to begin. Decide; where the debate leaves it open, say what to do first to find out.\n"
    "- confidence: high, medium or low. {cap}\n"
    "- caveats: conditions that would change the recommendation, each so that one can see whether it holds.\n"
    "- dissents: what an agent that strongly disagrees holds against your recommendation, in its own sense; none where nobody does.\n"
    "Claim no agreement that nobody stated. What you add yourself, say to be yours."
)
_REFUSAL: Final = "The person did not approve that decision{why}. Write another one that does justice to it."


async def decide(discussion: Discussion, ended: RoundsEnded) -> Outcome:
    """Return the decision. If checkpoints are on, a person approves it, or has another one written, three in all.

    If the moderator writes none, what most debaters agree with stands in for it.

    Raises:
        DebateFailedError: the moderator is waited for.
    """
    debate = discussion.debate
    await discussion.update_steering("synthesis/control")
    asked = AnswerQuestions(
        ask_positions(debate, list_debater_stands(discussion)), PastQuestion(discussion.past)
    )
    material = await _gather_material(discussion, ended, asked.to_prompt())
    outcome, said = Outcome(), ""
    for time in range(1, _MAX_SYNTHESES + 1):
        key = "synthesis" if time == 1 else f"synthesis/{time}"
        discussion.enter_state("synthesizing", key)
        refused: Prompt = ()
        if time > 1:
            await discussion.update_steering(f"{key}/control")
            refused = _refusal_prompt(outcome, said)
        guidance = guidance_of(discussion.guidance)
        prompt = (*material, *guidance, *refused)
        try:
            before = outcome.moderated.recommendation
            outcome = await _write_decision(discussion, ended, key, prompt, asked, before)
        except DebateFailedError as failed:
            outcome = _let_stand_in(discussion, key, failed, asked.positions)
        if not discussion.settings.checkpoints:
            break
        discussion.enter_state("checkpoint", key)
        closed = await debate.run_checkpoint(f"{key}/approval", Approval(text=_approval_text(outcome, time)))
        outcome.moderated.approved = closed.intervention.approve.approved
        said = closed.intervention.approve.text.strip()
        if outcome.moderated.approved:
            break
    return outcome


async def _gather_material(discussion: Discussion, ended: RoundsEnded, asked: Prompt) -> Prompt:
    """Return what the decision is written from: how the rounds went, all that was said, and the moderator's own summaries.

    What does not fit the moderator's context is summarized, oldest first; the last round stays whole.
    """
    debate, judge, rounds = discussion.debate, discussion.debate.judge, discussion.rounds_with_arguments
    failed = [each for ended in rounds for each in ended.failed]
    account = describe_rounds(
        debate, len(rounds), discussion.settings.max_rounds, ended, failed, discussion.muted_by_person
    )
    muted = [
        f"You muted {discussion.name_of(agent)} from round {number} on, since it left the question again."
        for agent, number in discussion.muted_by_moderator.items()
    ]
    start = (*moderator_preamble(debate, names_agents=False), user_part("\n".join([account, *muted])))
    sums = summary_prompts(discussion, before=len(rounds) + 1)
    guidance = guidance_of(discussion.guidance)

    def last_round() -> tuple[Prompt, int]:
        others = (*start, *sums, *asked, *guidance)
        other_tokens = count_prompt_tokens(others, judge.context_tokens) + _TASK_TOKENS
        last = shorten_to_fit(
            rounds[-1].contributions, available_tokens(judge.context_tokens, 0, other_tokens)
        )
        final = quote_round(debate, last)
        other_tokens += count_prompt_tokens(final, judge.context_tokens)
        return final, available_tokens(judge.context_tokens, 0, other_tokens)

    size = size_of_prompt(start) + sum(map(len, texts_of(rounds[-1].contributions)))
    final, room = await in_thread_if_large(size, last_round)
    earlier = await summarize_for_judge(
        debate, judge, discussion.contributions_before(before=rounds[-1].number), room, SummarySettings()
    )
    return (*start, *history_prompt(debate, judge, earlier), *sums, *final, *asked)


async def _write_decision(
    discussion: Discussion,
    ended: RoundsEnded,
    key: str,
    material: Prompt,
    asked: AnswerQuestions,
    before: str,
) -> Outcome:
    """Have the decision written. `before`: the one that a person refused, by which the moderator may stand; empty for none."""
    debate, judge = discussion.debate, discussion.debate.judge
    assessed = discussion.rounds_with_arguments[-1].assessment
    most = max_confidence(ended.reason, assessed.verdict if assessed is not None else None)
    cap = f"As the rounds ended, say {CONFIDENCE_NAMES[most]}"
    cap += "." if most == CONFIDENCE_LOW else " at most, and less where open tensions weigh more."
    letters = [debate.letter(each) for each in discussion.viewpoints]
    prompt = (*material, user_part(_TASK.format(cap=cap) + asked.to_task()))
    shape = decision_shape(letters, asked)
    works = [*filter(None, [before]), *(each.text for each in _last_stands(discussion))]
    check = create_check(debate.spec.question, prompt, works, shape.json_schema)

    async def ask(key: str, again: Prompt) -> DecisionAnswer | StepFailed:
        task = Task(DECISION.create_work(judge.id), (*prompt, *again), is_answer=True, check=check)
        return await debate.ask_structured(key, judge, task, shape)

    answer = await ask_for_answer(debate, key, DECISION.name, ask)
    _warn_of_gaps(discussion, key, answer, asked)
    outcome = outcome_of(discussion, answer, most)
    outcome.related.extend(asked.past.list_related(answer.earlier_decisions))
    outcome.effect.CopyFrom(effect_of_decision(discussion, asked.positions, answer, outcome.moderated))
    return outcome


def _warn_of_gaps(discussion: Discussion, key: str, answer: DecisionAnswer, asked: AnswerQuestions) -> None:
    if isinstance(answer, ProseDecision):
        message = (
            "the moderator's decision is not of the form that was asked for: it is shown as it was written, without confidence,"
            " agreements, tensions and dissent"
        )
        discussion.warn(f"{key}/warning", message)
    elif not answer.confidence:
        discussion.warn(
            f"{key}/warning", "the moderator did not say how sure it is of its decision; it counts as low"
        )
    unrelated = asked.past.list_unanswered(answer.earlier_decisions)
    if unrelated:
        unsaid = f"the moderator did not say how its decision stands to {', '.join(unrelated)}"
        discussion.warn(f"{key}/past/warning", unsaid)


def _last_stands(discussion: Discussion) -> list[Contribution]:
    """Return the last argument of each debater, in the order in which they joined."""
    last: dict[str, Contribution] = {}
    for each in discussion.rounds_with_arguments:
        last |= {made.agent: made for made in each.positions()}
    return [last[agent] for agent in discussion.viewpoints if agent in last]


def _let_stand_in(
    discussion: Discussion, key: str, failed: DebateFailedError, positions: PositionQuestion
) -> Outcome:
    """Return the outcome of the argument that most debaters agree with, as they said last, in place of a decision."""
    stands, debate = _last_stands(discussion), discussion.debate
    verdicts = [
        Contribution(agent, REBUTTAL.name, each.number, "", target=made.agent, critique=Critique(agrees=True))
        for each in discussion.rounds_with_arguments[-1:]
        for agent, speech in each.rebuttals.items()
        for made in stands
        if made.agent != agent and debate.letter(made.agent) in (speech.agrees_with or ())
    ]
    best = choose_best_work(stands, verdicts)
    stand_in = create_stand_in(debate, key, best, failed, debate.judge.id)
    answer = DecisionAnswer(recommendation=best.work.text)
    outcome = outcome_of(discussion, answer, CONFIDENCE_LOW)
    outcome.stand_in.CopyFrom(stand_in)
    outcome.effect.CopyFrom(effect_of_decision(discussion, positions, answer, outcome.moderated))
    return outcome


def _refusal_prompt(outcome: Outcome, said: str) -> Prompt:
    why = " and did not say why" if not said else ", and said why below"
    parts = [quotation("Your decision before", _full_text(outcome))]
    parts += [user_part(f"The person says:\n{said}")] if said else []
    return (*parts, user_part(_REFUSAL.format(why=why)))


def _approval_text(outcome: Outcome, time: int) -> str:
    """Return a decision as it is put to a person, with what a refusal leads to."""
    left = _MAX_SYNTHESES - time
    if left:
        again = f"{left} more can be written" if left > 1 else "one more can be written"
        refusal = (
            f"Refuse, best with a word on why: the moderator writes another one with that in mind ({again})."
        )
    else:
        refusal = "Refuse: the debate ends all the same, and the decision is kept as not approved; this was the last one."
    return f"{_full_text(outcome)}\n\nApprove: the debate ends with this decision. {refusal}"


def _full_text(outcome: Outcome) -> str:
    """Return a decision with all that belongs to it: who approves it reads what speaks against it too."""
    parts = [_part_text(each) for each in decision_parts(outcome) if each.text or each.items]
    stand_in = [f"{describe_stand_in(outcome.stand_in)}."] if outcome.HasField("stand_in") else []
    return "\n\n".join([*stand_in, *parts])


def _part_text(part: AnswerPart) -> str:
    if part.items:
        return "\n".join([f"{part.title}:", "", *(f"- {' '.join(each.split())}" for each in part.items)])
    return f"{part.title}: {part.text}" if part.title else part.text
