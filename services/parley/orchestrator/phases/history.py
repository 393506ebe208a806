"""What an agent reads of a debate's history: as much as fits its context, and a summary of what is left out.

Everything here is a plain function of contributions and numbers. What does not fit is left out oldest first.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import compress
from typing import Final

from msgspec import Struct

from parley.orchestrator.model.contributions import Contribution, Letters
from parley.orchestrator.model.open_issues import answers_of
from parley.orchestrator.model.tasks import Prompt, count_part
from parley.orchestrator.model.tokens import (
    ASSUMED_CONTEXT_TOKENS,
    CHARACTERS_A_TOKEN,
    count_upper_tokens,
    upper_tokens,
)
from parley.runtime.quotation import quote_in_marks

_MIN_SUMMARY_CHARACTERS: Final = 2500
_HEADING_TOKENS: Final = 36
_ANSWER_TOKENS: Final = 12
_HEAD_SHARE: Final = 0.65
"""Of a shortened text, this much of what is kept is its beginning, and the rest its end."""
_BETWEEN: Final = "\n\n"
"""Stands between the entries of a history."""

Name = tuple[int, str, str, str]
"""Of a contribution: round, activity, agent, target."""


class AgentHistory(Struct, frozen=True):
    """What an agent reads of the history.

    Attributes:
        summary: Of the contributions that were left out; empty for none.
        omitted: Names of those that were left out, in this round or before: the summary stands for them, or nothing does.
        contributions: Those that are read as they are, oldest first.
    """

    summary: str = ""
    omitted: frozenset[Name] = frozenset()
    contributions: tuple[Contribution, ...] = ()


EMPTY_HISTORY: Final = AgentHistory()


def available_tokens(context_tokens: int, max_output_tokens: int, other_tokens: int) -> int:
    """Return the tokens that are left for history in a context (0: not known), besides `other_tokens` for other things.

    An answer without a bound of its own takes a quarter of the context, as the gateway reckons, and marks around
    messages and a schema a thirty-second. An eighth of the context is left in any case: then it is documents that are
    left out.
    """
    context = context_tokens or ASSUMED_CONTEXT_TOKENS
    answer = min(max_output_tokens or context // 4, context // 2)
    return max(context - answer - context // 32 - other_tokens, context // 8)


def count_prompt_tokens(prompt: Prompt, context_tokens: int) -> int:
    """Return the tokens of a prompt's parts, of which documents take half of the context at most."""
    context = context_tokens or ASSUMED_CONTEXT_TOKENS
    documents = sum(count_part(part, upper_tokens) for part in prompt if part.document)
    return min(documents, context // 2) + sum(upper_tokens(part.text) for part in prompt if not part.document)


def split_to_fit(
    contributions: Sequence[Contribution], room: int, first: Collection[Name] = ()
) -> tuple[tuple[Contribution, ...], tuple[Contribution, ...]]:
    """Return which contributions stay whole in so many tokens, and which are left out.

    Those in `first` are left out whatever the room, and of the others the oldest.
    """
    stays = [not first or each.name not in first for each in contributions]
    sizes = [_tokens(each) for each in contributions]
    excess = sum(compress(sizes, stays)) - room
    for place, size in enumerate(sizes):
        if excess <= 0:
            break
        if stays[place]:
            stays[place] = False
            excess -= size
    kept = tuple(compress(contributions, stays))
    return kept, tuple(each for each, stayed in zip(contributions, stays, strict=True) if not stayed)


class LongestTexts(Struct, frozen=True):
    """The tokens of the longest work and of the longest critique in a part of a debate."""

    work: int = 0
    critique: int = 0


def find_longest(contributions: Iterable[Contribution]) -> LongestTexts:
    """Return how long the longest of these contributions are."""
    work = critique = 0
    for each in contributions:
        if each.target:
            critique = max(critique, _tokens(each))
        else:
            work = max(work, _tokens(each))
    return LongestTexts(work, critique)


def estimate_material_tokens(longest: Sequence[LongestTexts], critics: int) -> int:
    """Return the tokens to keep free for what a round will bring: a proposal, and as many critiques of it as there are critics.

    The longest ones of the rounds before say how long they may be; two proposals, since one's own of the round before is repeated.
    """
    work = max((each.work for each in longest), default=0)
    critique = max((each.critique for each in longest), default=0)
    return max(2 * work, work + critics * critique)


def summary_length(max_length: int, threshold: int, context_tokens: int, room: int) -> int:
    """Return the characters that a summary may have; 0 as length or threshold: automatic.

    An automatic one has 2500, with an automatic threshold a share of the context if that is more, and half of the room
    at most.
    """
    if max_length:
        return max_length
    if threshold:
        return _MIN_SUMMARY_CHARACTERS
    share = (context_tokens or ASSUMED_CONTEXT_TOKENS) * CHARACTERS_A_TOKEN // 32
    return min(max(share, _MIN_SUMMARY_CHARACTERS), room * CHARACTERS_A_TOKEN // 2)


def shorten_to_fit(contributions: Sequence[Contribution], room: int) -> tuple[Contribution, ...]:
    """Return contributions that together fit so many tokens: the longest lose the most, in their middle."""
    sizes = sorted(_tokens(each) for each in contributions)
    left, limit = room, 0
    for place, size in enumerate(sizes):
        limit = left // (len(sizes) - place)
        if size > limit:
            break
        left -= size
    else:
        return tuple(contributions)
    return _shorten_each(contributions, limit)


def _shorten_each(contributions: Sequence[Contribution], tokens: int) -> tuple[Contribution, ...]:
    return tuple(_truncate(each, max(tokens - _HEADING_TOKENS, 1)) for each in contributions)


class SummaryPart(Struct, frozen=True):
    """A part of a history that is summarized at once: as it is, and as it is shown, maybe shortened."""

    whole: tuple[Contribution, ...]
    shown: tuple[Contribution, ...]


def split_into_parts(contributions: Sequence[Contribution], room: int, most: int) -> list[SummaryPart]:
    """Return contributions in at most so many parts, each of which fits so many tokens.

    If they are too long for that, the longest lose the most, in their middle.
    """
    parts = _pack(contributions, contributions, room)
    if len(parts) <= most and all(_tokens(each) <= room for each in contributions):
        return parts
    # A part that is full to three quarters takes any text of at most a quarter.
    shown = _shorten_each(shorten_to_fit(contributions, (most - 1) * room * 3 // 4), room // 4)
    return _pack(contributions, shown, room)


def _pack(
    contributions: Sequence[Contribution], shown: Sequence[Contribution], room: int
) -> list[SummaryPart]:
    parts: list[SummaryPart] = []
    start = taken = 0
    for place, each in enumerate(shown):
        size = _tokens(each)
        if taken and taken + size > room:
            parts.append(SummaryPart(tuple(contributions[start:place]), tuple(shown[start:place])))
            start, taken = place, 0
        taken += size
    return [*parts, SummaryPart(tuple(contributions[start:]), tuple(shown[start:]))]


def render_history(letter: Letters, contributions: Iterable[Contribution], reader: str = "") -> str:
    """Return contributions one after the other, each below a line that says what it is; `letter` gives an agent's letter.

    Each stands between marks of its own, so that no text of one agent can pose as the entry of another.
    """
    return _BETWEEN.join(_entry(letter, each, reader) for each in contributions)


def count_rendered(letter: Letters, contributions: Sequence[Contribution], reader: str = "") -> int:
    """Return the characters of what `render_history` returns."""
    entries = sum(len(_entry(letter, each, reader)) for each in contributions)
    return entries + len(_BETWEEN) * max(len(contributions) - 1, 0)


def _entry(letter: Letters, made: Contribution, reader: str) -> str:
    whom = reader if reader in (made.agent, made.target) else ""
    key = f"entry/{whom}"
    entry: str | None = made.computed.get(key)
    if entry is None:
        entry = made.computed[key] = _render_entry(letter, made, whom)
    return entry


def _render_entry(letter: Letters, made: Contribution, reader: str) -> str:
    answers = answers_of(letter, made)
    text = f"{made.text}\n\nAnswers to issues:\n{answers}" if answers else made.text
    return f"[{heading(letter, made, reader)}]\n{quote_in_marks(text)}"


def heading(letter: Letters, made: Contribution, reader: str = "") -> str:
    """Return what a contribution is, such as `round 2, critique by agent A of your proposal`, for one who reads it."""
    by = "you" if made.agent == reader else f"agent {letter(made.agent)}"
    of = ""
    if made.target:
        of = " of your proposal" if made.target == reader else f" of agent {letter(made.target)}'s proposal"
    return f"round {made.round}, {made.activity} by {by}{of}"


def _tokens(made: Contribution) -> int:
    tokens: int | None = made.computed.get("tokens")
    if tokens is None:
        answers = sum(count_upper_tokens(each.reason) + _ANSWER_TOKENS for each in made.answers)
        tokens = made.computed["tokens"] = _text_tokens(made) + answers + _HEADING_TOKENS
    return tokens


def _text_tokens(made: Contribution) -> int:
    tokens: int | None = made.computed.get("text tokens")
    if tokens is None:
        tokens = made.computed["text tokens"] = count_upper_tokens(made.text)
    return tokens


def _truncate(made: Contribution, tokens: int) -> Contribution:
    size = _text_tokens(made)
    if size <= tokens:
        return made
    kept = len(made.text) * tokens // size
    head = round(kept * _HEAD_SHARE)
    mark = f"\n[… {len(made.text) - kept} characters left out …]\n"
    return made.with_text(made.text[:head] + mark + made.text[len(made.text) - (kept - head) :])
