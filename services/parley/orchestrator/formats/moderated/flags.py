"""Flags: plain measures of what a debater says in a round, against repetition, straying from the question, and excess.

They never decide. What they find is recorded in the log, and passed to the moderator.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Final

from parley.orchestrator.formats.moderated.discussion import Discussion, Round
from parley.orchestrator.formats.moderated.wording import stem
from parley.orchestrator.model.contributions import texts_of
from parley.orchestrator.phases.prompting import environment_text
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.convergence_pb2 import AssessResponse

MAX_REPEATED: Final = 0.6
"""The share of an argument that may repeat what its author said in the round before."""
_MIN_ON_TOPIC: Final = 0.1
"""The share of an argument's long words that its question, or another debater, uses too, below which it strays."""
_RUN: Final = 3
"""Words in a row that count as repeated if they stood in the text before too."""
_MIN_WORDS: Final = 12
"""Of shorter texts nothing is known; of long words, `_MIN_LONG_WORDS` are enough."""
_MIN_LONG_WORDS: Final = 8
_LONG: Final = 6
"""Letters of a word that names a subject; short ones stand in every text, and so a language with short words alone is never flagged."""
_TOKEN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_EMPTY_WORDS: Final = frozenset(
    [
        "always",
        "another",
        "around",
        "because",
        "become",
        "before",
        "better",
        "between",
        "cannot",
        "change",
        "enough",
        "either",
        "having",
        "however",
        "instead",
        "little",
        "matter",
        "nothing",
        "number",
        "perhaps",
        "please",
        "position",
        "question",
        "rather",
        "really",
        "reason",
        "reasons",
        "second",
        "should",
        "simply",
        "someone",
        "something",
        "sometimes",
        "therefore",
        "though",
        "thought",
        "through",
        "toward",
        "towards",
        "trying",
        "unless",
        "whether",
        "without",
    ]
)


def repetition_share(text: str, before: str) -> float | None:
    """Return the share of a text's words that stand in runs which a text before has too, 0 to 1; None if it is too short."""
    words, earlier = _words(text), _words(before)
    if len(words) < _MIN_WORDS or len(earlier) < _RUN:
        return None
    known = set(_runs(earlier))
    repeated: set[int] = set()
    for place, run in enumerate(_runs(words)):
        if run in known:
            repeated.update(range(place, place + _RUN))
    return len(repeated) / len(words)


def is_repetition(share: float | None) -> bool:
    """Return whether an argument repeats too much of the round before."""
    return share is not None and share > MAX_REPEATED


def find_long_words(text: str) -> frozenset[str]:
    """Return the stems of a text's words that may name a subject."""
    words = set(_TOKEN.findall(text.casefold())) - _EMPTY_WORDS
    return frozenset(stem(word) for word in words if len(word) >= _LONG)


def on_topic_share(
    text: str,
    references: Iterable[str],
    long_words: Callable[[str], frozenset[str]] = find_long_words,
) -> float | None:
    """Return the share of a text's long words that stand in the question, or with others, too; None if it has too few.

    `long_words` is another way to find them: one that remembers those of texts that it has seen.
    """
    own = long_words(text)
    if len(own) < _MIN_LONG_WORDS:
        return None
    return len(own & frozenset().union(*map(long_words, references))) / len(own)


def is_off_topic(share: float | None) -> bool:
    """Return whether an argument has too little in common with its question and the others."""
    return share is not None and share < _MIN_ON_TOPIC


def is_over_budget(tokens: Sequence[int], budget: int, *, truncated: bool) -> bool:
    """Return whether a debater has written more than its budget for a round (0: no limit), or was cut off by it."""
    return bool(budget) and (truncated or sum(tokens) > budget)


def _words(text: str) -> list[str]:
    return [stem(word) for word in _TOKEN.findall(text.casefold())]


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[place:] for place in range(_RUN)), strict=False)


async def flag_round(discussion: Discussion, current: Round) -> tuple[list[str], frozenset[str]]:
    """Record what guards find in a round; return it in lines for the moderator, and who strays from the question."""
    lines, astray = [], set()
    documents = discussion.debate.documents.texts.values()
    size = sum(len(each.utf8) for each in documents) + sum(map(len, texts_of(current.contributions)))
    for agent, kind, line in await in_thread_if_large(size, partial(_find_flags, discussion, current)):
        lines.append(f"{discussion.name_of(agent)} {line}")
        warning = f"round {current.number}: {discussion.viewpoints[agent].name} {line}"
        discussion.warn(f"round/{current.number}/guard/{kind}/{agent}", warning)
        if kind == "topic":
            astray.add(agent)
    return lines, frozenset(astray)


def _find_flags(discussion: Discussion, current: Round) -> list[tuple[str, str, str]]:
    long_words = cache(find_long_words)  # each argument is compared with all others, and with the documents
    return [
        (agent, kind, line)
        for agent in current.arguments
        for kind, line in _flags_of(discussion, current, agent, long_words)
    ]


def _flags_of(
    discussion: Discussion, current: Round, agent: str, long_words: Callable[[str], frozenset[str]]
) -> Iterator[tuple[str, str]]:
    argument = current.arguments[agent]
    points = "\n".join(each.text for each in argument.points)  # a position may stay the same
    before = next((each for each in reversed(discussion.rounds[:-1]) if agent in each.arguments), None)
    repeated = repetition_share(points, before.text_of(agent)) if before else None
    if repeated is not None and is_repetition(repeated):
        yield "repetition", f"repeats itself: {repeated:.0%} of its argument stood in its last round"
    others = [each.contribution.text for name, each in current.arguments.items() if name != agent]
    references = [*_subject(discussion), current.prompt, *others]
    if is_off_topic(on_topic_share(argument.contribution.text, references, long_words)):
        yield "topic", "has hardly a word in common with the question or the others: it may be off topic"
    tokens = [each.tokens for each in current.speeches_of(agent)]
    budget, end = discussion.settings.token_budget_per_round, _describe_end(discussion, current, agent)
    if is_over_budget(tokens, budget, truncated=bool(end)):
        yield (
            "budget",
            f"came to the end of its {budget:,} tokens for the round ({sum(tokens):,} written){end}",
        )


def _describe_end(discussion: Discussion, current: Round, agent: str) -> str:
    """Return what a debater's budget kept it from; empty for nothing. What the debate lets one answer have is no budget."""
    bound = discussion.debate.spec.max_output_tokens
    if agent in current.without_budget:
        return ": nothing was left for a rebuttal"
    is_cut_off = any(
        each.truncated and each.limit and each.limit != bound for each in current.speeches_of(agent)
    )
    return " and was cut off" if is_cut_off else ""


def _subject(discussion: Discussion) -> list[str]:
    """Return all that says what the debate is about."""
    debate = discussion.debate
    return [
        debate.spec.question,
        environment_text(debate.spec),
        debate.briefing,
        discussion.topic,
        *(each.text for each in debate.documents.texts.values()),
    ]


def measures(discussion: Discussion, current: Round) -> list[str]:
    """Return what convergence says of a round, and who conceded what, in lines for the moderator."""
    lines = (
        list(_describe_convergence(discussion, current.assessment)) if current.assessment is not None else []
    )
    letter = discussion.debate.letter
    for agent, speech in current.rebuttals.items():
        if speech.concedes:
            lines.append(f"agent {letter(agent)} concedes {', '.join(speech.concedes)}")
        if speech.agrees_with:
            others = ", ".join(f"agent {each}" for each in sorted(speech.agrees_with))
            lines.append(f"agent {letter(agent)} says that it could go along with {others}")
    return lines


def _describe_convergence(discussion: Discussion, assessed: AssessResponse) -> Iterator[str]:
    letter = discussion.debate.letter
    if not assessed.unsure:
        yield f"agreement of the positions: {assessed.agreement_percent:.0f} %"
    for each in assessed.contradictions:
        yield f"the positions of agent {letter(each.agent_id)} and agent {letter(each.other_agent_id)} are different answers"
    moved = [each for each in assessed.stability if each.HasField("kept") and not each.kept]
    if moved:
        yield f"moved since the round before: {', '.join(f'agent {letter(each.agent_id)}' for each in moved)}"
    if assessed.HasField("novelty_percent"):
        yield f"new against the round before: {assessed.novelty_percent:.0f} % of the sentences"
