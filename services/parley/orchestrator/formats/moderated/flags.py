"""What is flagged in a round: recorded in the debate's log, and told to the moderator together with what was measured."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from parley.orchestrator.formats.moderated.discussion import Discussion, Round
from parley.orchestrator.formats.moderated.guards import (
    is_over_budget,
    is_repetition,
    on_topic_share,
    repeated_share,
    strays,
)
from parley.orchestrator.model.contributions import texts_of
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.convergence_pb2 import AssessResponse

__all__ = ["flag", "measures"]

_MOVED: Final = 80.0
"""The stability in percent below which a position has moved."""


async def flag(discussion: Discussion, held: Round) -> tuple[list[str], frozenset[str]]:
    """Record what guards find in a round; return it in lines for the moderator, and who strays from the question."""
    lines, astray = [], set()
    texts = [*_subject(discussion), *texts_of(held.made)]
    for agent, kind, line in await in_thread_if_large(texts, partial(_found, discussion, held)):
        name = discussion.name_of(agent)
        lines.append(f"{name} {line}")
        discussion.warn(f"round/{held.number}/guard/{kind}/{agent}", f"round {held.number}: {name} {line}")
        if kind == "topic":
            astray.add(agent)
    return lines, frozenset(astray)


def _found(discussion: Discussion, held: Round) -> list[tuple[str, str, str]]:
    return [(agent, kind, line) for agent in held.arguments for kind, line in _flags(discussion, held, agent)]


def _flags(discussion: Discussion, held: Round, agent: str) -> Iterator[tuple[str, str]]:
    argument = held.arguments[agent]
    points = "\n".join(each.text for each in argument.points)  # a position may stay the same
    before = next((each for each in reversed(discussion.rounds[:-1]) if agent in each.arguments), None)
    repeated = repeated_share(points, before.text_of(agent)) if before else None
    if repeated is not None and is_repetition(repeated):
        yield "repetition", f"repeats itself: {repeated:.0%} of its argument stood in its last round"
    others = [each.made.text for name, each in held.arguments.items() if name != agent]
    if strays(on_topic_share(argument.made.text, [*_subject(discussion), held.put, *others])):
        yield "topic", "has hardly a word in common with the question or the others: it may be off topic"
    tokens = [each.tokens for each in held.of(agent)]
    budget, end = discussion.settings.token_budget_per_round, _end(discussion, held, agent)
    if is_over_budget(tokens, budget, truncated=bool(end)):
        yield (
            "budget",
            f"came to the end of its {budget:,} tokens for the round ({sum(tokens):,} written){end}",
        )


def _end(discussion: Discussion, held: Round, agent: str) -> str:
    """Return what a debater's budget kept it from; empty for nothing. What the debate lets one answer have is no budget."""
    bound = discussion.debate.spec.max_output_tokens
    if agent in held.unpaid:
        return ": nothing was left for a rebuttal"
    is_cut_off = any(each.truncated and each.limit and each.limit != bound for each in held.of(agent))
    return " and was cut off" if is_cut_off else ""


def _subject(discussion: Discussion) -> list[str]:
    """Return all that says what the debate is about."""
    spec = discussion.debate.spec
    return [
        spec.question,
        discussion.debate.briefing,
        discussion.topic,
        *(each.text for each in spec.context),
    ]


def measures(discussion: Discussion, held: Round) -> list[str]:
    """Return what convergence says of a round, and who conceded what, in lines for the moderator."""
    lines = list(_convergence(discussion, held.assessed)) if held.assessed is not None else []
    letter = discussion.debate.letter
    for agent, speech in held.rebuttals.items():
        if speech.concedes:
            lines.append(f"agent {letter(agent)} concedes {', '.join(speech.concedes)}")
        if speech.agrees_with:
            others = ", ".join(f"agent {each}" for each in sorted(speech.agrees_with))
            lines.append(f"agent {letter(agent)} says that it could go along with {others}")
    return lines


def _convergence(discussion: Discussion, assessed: AssessResponse) -> Iterator[str]:
    letter = discussion.debate.letter
    yield f"agreement of the positions, by a model that reads them: {assessed.agreement_percent:.0f} %"
    for each in assessed.contradictions:
        yield f"the positions of agent {letter(each.agent_id)} and agent {letter(each.other_agent_id)} are different answers"
    moved = [each for each in assessed.stability if each.stability_percent < _MOVED]
    if moved:
        yield f"moved since the round before: {', '.join(f'agent {letter(each.agent_id)}' for each in moved)}"
    if assessed.HasField("novelty_percent"):
        yield f"new against the round before: {assessed.novelty_percent:.0f} % of the sentences"
