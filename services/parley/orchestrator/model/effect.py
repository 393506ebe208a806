"""What a debate changed: from the positions that its agents took, to how the decision compares with the first drafts.

Pure functions, the same for all formats. A format hands in where each agent stood from its first draft on, and what was decided.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct, field

from parley.orchestrator.model.stands import FIRST_DRAFT, Stand
from parley.orchestrator.model.stopping import posterior
from parley.v1.effect_pb2 import (
    DECISION_COMPARISON_OTHER,
    DECISION_COMPARISON_SAME,
    DECISION_COMPARISON_TIE_BROKEN,
    DECISION_COMPARISON_UNSPECIFIED,
    QUESTION_KIND_CLOSED,
    QUESTION_KIND_UNSPECIFIED,
    ChangedStand,
    DebateEffect,
    DecisionComparison,
    DecisionConfidence,
    QuestionKind,
    TakenPosition,
)

NO_POSITION: Final = ""
"""What was decided if it is known to be no position that an agent took."""
_JUDGE: Final = ""
"""Among voters, since an agent may judge that has a draft too."""


class Ballots(Struct, frozen=True):
    """Ballots besides the agents' own positions, and what each weighs.

    Attributes:
        judge: The position that the judge votes for; None if it has no ballot.
        judge_weight: What its ballot weighs; 0: it only breaks ties.
        weights: What agents weigh, as the binary logarithm of their odds of being right; 1 for one that is absent.
        last_vote: The positions that ballots of the last vote were for, a position a ballot.
    """

    judge: str | None = None
    judge_weight: float = 1.0
    weights: Mapping[str, float] = field(default_factory=dict)
    last_vote: Sequence[str] = ()


def create_effect(
    stands: Sequence[Stand],
    names: Mapping[str, str],
    decided: str | None,
    kind: QuestionKind.ValueType = QUESTION_KIND_UNSPECIFIED,
    ballots: Ballots | None = None,
    unknown: str = "",
) -> DebateEffect:
    """Return what a debate changed.

    Args:
        stands: Where agents stood, those of an agent in the order in which it took them.
        names: The name of each position by its words; one that is absent is not known.
        decided: The name of the position that was decided for; `NO_POSITION` if no agent took it, None if it is not known.
        unknown: Why a position is not known, for people.
    """
    cast = ballots or Ballots()
    courses = _courses(stands)
    firsts = [each[0] for each in courses if each[0].round == FIRST_DRAFT]
    lasts = [each[-1] for each in courses]
    first, last = _vote(firsts, names), _vote(lasts, names)
    texts = _texts(stands, names)
    counts = [Counter((vote or {}).values()) for vote in (first, last)]
    ordered = sorted(texts, key=lambda name: (*(-count[name] for count in counts), texts[name]))
    numbers = {name: number for number, name in enumerate(ordered, start=1)}
    return DebateEffect(
        positions=[
            TakenPosition(
                text=texts[name],
                first_agent_ids=_holders(first, name),
                first_share=_share(first, name),
                last_agent_ids=_holders(last, name),
                last_share=_share(last, name),
                ballots=list(cast.last_vote).count(name),
            )
            for name in ordered
        ],
        first_vote_unknown="" if first else _describe_unknown(firsts, unknown),
        last_vote_unknown="" if last else _describe_unknown(lasts, unknown),
        changes=_find_changes(courses, names, numbers),
        decided_position=numbers.get(decided or NO_POSITION, 0),
        comparison=_compare(first, decided),
        confidence=_create_confidence(first, last, decided, kind, cast),
    )


def _courses(stands: Iterable[Stand]) -> list[list[Stand]]:
    """Return the stands of each agent, in the order of the agents' ids."""
    by_agent: dict[str, list[Stand]] = {}
    for stand in stands:
        by_agent.setdefault(stand.agent, []).append(stand)
    return [by_agent[agent] for agent in sorted(by_agent)]


def _vote(stands: Sequence[Stand], names: Mapping[str, str]) -> dict[str, str] | None:
    """Return the position of each agent; None unless all are known."""
    found = {stand.agent: names[stand.words] for stand in stands if stand.words in names}
    return found if found and len(found) == len(stands) else None


def _texts(stands: Sequence[Stand], names: Mapping[str, str]) -> dict[str, str]:
    """Return each position in the words of the first agent that took it."""
    texts: dict[str, str] = {}
    for stand in sorted(stands, key=lambda each: (each.round, each.agent)):
        if stand.words in names:
            texts.setdefault(names[stand.words], stand.words)
    return texts


def _holders(vote: Mapping[str, str] | None, position: str) -> list[str]:
    return sorted(agent for agent, taken in (vote or {}).items() if taken == position)


def _share(vote: Mapping[str, str] | None, position: str) -> float:
    return len(_holders(vote, position)) / len(vote) if vote else 0.0


def _describe_unknown(stands: Sequence[Stand], unknown: str) -> str:
    """Return why it cannot be told which positions these are."""
    if not stands:
        return "no draft was written before its author had read another's work"
    silent = sum(not stand.words for stand in stands)
    return f"{silent} of {len(stands)} agents stated no position" if silent else unknown


def _find_changes(
    courses: Iterable[Sequence[Stand]], names: Mapping[str, str], numbers: Mapping[str, int]
) -> list[ChangedStand]:
    found = [change for course in courses for change in _changes_of(course, names, numbers)]
    return sorted(found, key=lambda each: (each.round, each.agent_id))


def _changes_of(
    course: Sequence[Stand], names: Mapping[str, str], numbers: Mapping[str, int]
) -> Iterator[ChangedStand]:
    """Yield the changes of an agent. If a stand between two is not known, it is not known in which round it left the first."""
    places = [place for place, stand in enumerate(course) if stand.words in names]
    for place, next_place in pairwise(places):
        before, after = names[course[place].words], names[course[next_place].words]
        if before != after:
            stand = course[next_place] if next_place == place + 1 else None
            yield ChangedStand(
                agent_id=course[place].agent,
                round=stand.round if stand else 0,
                from_position=numbers[before],
                to_position=numbers[after],
                issues=stand.issues if stand else (),
            )


def _compare(first: Mapping[str, str] | None, decided: str | None) -> DecisionComparison.ValueType:
    if first is None or decided is None:
        return DECISION_COMPARISON_UNSPECIFIED
    counts = Counter(first.values())
    leading = [position for position, count in counts.items() if count == max(counts.values())]
    if decided not in leading:
        return DECISION_COMPARISON_OTHER
    return DECISION_COMPARISON_SAME if len(leading) == 1 else DECISION_COMPARISON_TIE_BROKEN


def _create_confidence(
    first: Mapping[str, str] | None,
    last: Mapping[str, str] | None,
    decided: str | None,
    kind: QuestionKind.ValueType,
    ballots: Ballots,
) -> DecisionConfidence:
    """Return how sure a decision is: by the first drafts, which are independent of each other, or else by the last positions."""
    votes = first or last
    if votes is None:
        return DecisionConfidence(question_kind=kind, unknown="who takes which position cannot be told")
    if decided is None:
        return DecisionConfidence(
            question_kind=kind, unknown="which position the answer takes cannot be told"
        )
    confidence = DecisionConfidence(
        question_kind=kind,
        votes=len(_holders(votes, decided)),
        votes_cast=len(votes),
        by_first_drafts=first is not None,
    )
    weights = {agent: ballots.weights.get(agent, 1.0) for agent in votes}
    if ballots.judge is not None:
        confidence.judge_agrees = ballots.judge == decided
    if ballots.judge is not None and ballots.judge_weight:
        votes, weights = {**votes, _JUDGE: ballots.judge}, {**weights, _JUDGE: ballots.judge_weight}
    if kind == QUESTION_KIND_CLOSED:
        probable = posterior(votes, weights).get(decided)
        if probable is None:
            confidence.unknown = "no vote is for the position that was decided for"
        else:
            confidence.percent = 100 * probable
    return confidence
