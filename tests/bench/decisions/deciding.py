"""What is decided from recorded ballots, by the functions that count them in a debate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from parley.orchestrator.model import voting
from tests.bench.decisions.debates import NAMES


@dataclass(frozen=True, slots=True)
class Ballots:
    """Who votes for what, seat by seat: each for the proposal with its own answer. `confidences`: how sure each is, 0 to 1."""

    stands: tuple[str, ...]
    confidences: tuple[float, ...]


def decide(cast: Ballots, weights: Sequence[float] = ()) -> str:
    """Return the answer that stands; without weights each ballot counts 1. Proposals with one answer are one choice."""
    names = NAMES[: len(cast.stands)]
    found = _count(cast.stands, tuple(weights))
    stands = voting.most_confident_option(found, zip(names, cast.confidences, strict=True))
    return cast.stands[names.index(stands)]


def decide_by_drafts(
    drafts: tuple[str, ...], weights: Sequence[float], judge: str, weight: float = 0.0
) -> str:
    """Return what an arena decides by default: the drafts, and the judge's choice of this weight; 0: it breaks ties alone.

    Drafts state no confidence. A judge that holds none of them right chooses nothing.
    """
    return _with_judge(Ballots(drafts, (0.0,) * len(drafts)), weights, judge, weight)


def rate_by_drafts(
    right: str, drafts: tuple[str, ...], weights: Sequence[float] = (), judge: str = ""
) -> float:
    """Return how right that is, 0 to 1: of answers that stay tied each counts by its share, as nothing said so far decides."""
    found = _count(drafts, tuple(weights), judge if judge in drafts else "", 0.0)
    tied = [drafts[NAMES.index(each)] for each in found.leaders]
    return float(judge == right) if judge in tied else tied.count(right) / len(tied)


def decide_by_last_vote(cast: Ballots, judge: str) -> str:
    """Return what it decides where the last ballots count: a judge without a record scores best what agrees with it."""
    return _with_judge(cast, (), judge, 0.0)


def _with_judge(cast: Ballots, weights: Sequence[float], judge: str, weight: float) -> str:
    names = NAMES[: len(cast.stands)]
    found = _count(cast.stands, tuple(weights), judge if judge in cast.stands else "", weight)
    tied = [cast.stands[names.index(each)] for each in found.leaders]
    if len(tied) > 1 and judge in tied:
        return judge
    said = list(zip(names, cast.confidences, strict=True))
    return cast.stands[names.index(voting.most_confident_option(found, said))]


def decide_by_judge(cast: Ballots, judge: str) -> str:
    """Return the answer that a judge ranks first: its own where an agent gives it, else the one of the vote."""
    return judge if judge in cast.stands else decide(cast)


@lru_cache(maxsize=65536)
def _count(
    stands: tuple[str, ...], weights: tuple[float, ...], judge: str = "", weight: float = 0.0
) -> voting.VoteCount:
    names = NAMES[: len(stands)]
    holders: dict[str, list[str]] = {}
    for name, stand in zip(names, stands, strict=True):
        holders.setdefault(stand, []).append(name)
    cast = zip(names, weights or [1.0] * len(names), strict=True)
    groups = voting.group_options(names, holders.values(), ())
    ballots = [voting.Ballot(name, name, weight) for name, weight in cast]
    if judge and weight:
        ballots.append(voting.Ballot("judge", holders[judge][0], weight))
    return voting.count_votes(ballots, len(ballots), groups=groups)
