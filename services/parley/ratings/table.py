"""The ratings of a tenant's agents: a fold of its matches."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from parley.ratings.calibration import NO_RECORD, Record
from parley.ratings.elo import START, rating_changes
from parley.ratings.match import Correction, Feedback, Match
from parley.ratings.profiles import AgentProfiles
from parley.v1.ratings_pb2 import RatingChange

OVERALL: Final = ""
"""The domain in which all matches count."""
MATCHES_PER_PAGE: Final = 250
"""So many matches are loaded at a time. A match takes 20 KB in memory, and a page the Elo of all agents."""


class Rating(Struct, frozen=True):
    """An agent's rating, overall or in a domain."""

    agent_id: str
    domain: str
    elo: float = START
    matches: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0
    last_match_at: datetime | None = None
    approvals: int = 0
    disapprovals: int = 0
    record: Record = NO_RECORD


class PastMatch(Struct, frozen=True):
    """A recorded match, its correction, and the changes that it made.

    Attributes:
        correction: The last correction, or None.
        changes: Of overall ratings; empty for a removed match.
    """

    recorded: Match
    correction: Correction | None
    changes: tuple[RatingChange, ...]

    @property
    def match(self) -> Match | None:
        """The match that counts: recorded or corrected; None if it was removed."""
        return self.recorded if self.correction is None else self.correction.match


class Page(Struct, frozen=True):
    """Where a page of matches begins: its first entry in the log, and the overall Elo of all agents before it."""

    sequence: int
    elos: Mapping[str, float]


class Table:
    """Ratings by domain and agent after some matches, and the agents' profiles.

    It knows the debates of all matches. The matches themselves it keeps of the last page; earlier ones it has once `load_page` was called, until
    a page begins.

    Attributes:
        profiles: The agents' profiles.
        pages: Where each page of `MATCHES_PER_PAGE` matches begins.
    """

    def __init__(self) -> None:
        self._ratings: dict[str, dict[str, Rating]] = {}
        self._past_matches: dict[str, PastMatch | None] = {}
        self.pages: list[Page] = []
        self._corrections: dict[str, Correction] = {}
        self._feedback: dict[str, Feedback] = {}
        self.profiles = AgentProfiles()

    @classmethod
    def restore(
        cls,
        ratings: Iterable[Rating],
        profiles: AgentProfiles,
        debates: Iterable[str],
        pages: Iterable[Page],
    ) -> "Table":
        """Return the table that has these parts, without feedback and corrections; `debates` are those of all matches, in order."""
        table = cls()
        for each in ratings:
            table._ratings.setdefault(each.domain, {})[each.agent_id] = each
        table.profiles = profiles
        table._past_matches = dict.fromkeys(debates)
        table.pages = list(pages)
        return table

    def count(self, match: Match, sequence: int = 0) -> tuple[RatingChange, ...]:
        """Count a match, overall and in its domain; a debate counts only once. `sequence` is its place in the log.

        Return what it changed; nothing if it has counted before and is not loaded.
        """
        if match.debate_id not in self._past_matches:
            if len(self._past_matches) % MATCHES_PER_PAGE == 0:
                self._begin_page(sequence)
            self._count(match)
        past = self.past_match(match.debate_id)
        return past.changes if past else ()

    def debates(self) -> Collection[str]:
        """Return the debates of all matches, in the order in which they were recorded."""
        return self._past_matches.keys()

    def past_match(self, debate_id: str) -> PastMatch | None:
        """Return the match of a debate; None if it has not been counted, or is not loaded."""
        return self._past_matches.get(debate_id)

    def list_unloaded_pages(self) -> list[int]:
        """Return the pages that have a match which is not loaded."""
        places = (place for place, past in enumerate(self._past_matches.values()) if past is None)
        return sorted({place // MATCHES_PER_PAGE for place in places})

    def load_page(self, number: int, matches: Iterable[Match]) -> None:
        """Load the matches of a page, which are all entries of the log from its first one to that of the next page."""
        elos = dict(self.pages[number].elos)
        start = number * MATCHES_PER_PAGE
        expected = set(islice(self._past_matches, start, start + MATCHES_PER_PAGE))
        for recorded in matches:
            if recorded.debate_id not in expected:
                continue  # its debate has counted before
            expected.discard(recorded.debate_id)
            correction = self._corrections.get(recorded.debate_id)
            match = recorded if correction is None else correction.match
            moved = {} if match is None else rating_changes(elos, match.scores)
            changes = []
            for agent_id in sorted(moved):
                before = elos.get(agent_id, START)
                elos[agent_id] = before + moved[agent_id]
                changes.append(RatingChange(agent_id=agent_id, before=before, after=elos[agent_id]))
            self._past_matches[recorded.debate_id] = PastMatch(recorded, correction, tuple(changes))

    def know_corrections(self, corrections: Iterable[Correction]) -> None:
        """Note the corrections with which a restored table was counted."""
        for each in corrections:
            before = self._corrections.get(each.debate_id)
            if before is None or before.number < each.number:
                self._corrections[each.debate_id] = each

    def is_changed_by(self, corrections: Iterable[Correction]) -> bool:
        """Return whether corrections are newer than those of their matches, so that all matches must be counted again."""
        return any(
            (known := self._corrections.get(each.debate_id)) is None or known.number < each.number
            for each in corrections
            if each.debate_id in self._past_matches
        )

    def correct(self, corrections: Iterable[Correction]) -> None:
        """Count all matches again, each with its last correction; ignore corrections that are not newer. All matches must be loaded."""
        changed = False
        for each in corrections:
            before = self._corrections.get(each.debate_id)
            if before is None or before.number < each.number:
                self._corrections[each.debate_id] = each
                changed |= each.debate_id in self._past_matches
        if changed:
            self._recount()

    def correction(self, debate_id: str) -> Correction | None:
        """Return the last correction of a debate's match, or None."""
        return self._corrections.get(debate_id)

    def count_feedback(self, feedback: Feedback) -> None:
        """Count feedback on a debate, overall and in its domain, in place of earlier feedback; ignore feedback that is not newer."""
        before = self._feedback.get(feedback.debate_id)
        if before is not None and before.number >= feedback.number:
            return
        if before is not None:
            self._add_feedback(before, -1)
        self._add_feedback(feedback, 1)
        self._feedback[feedback.debate_id] = feedback

    def feedback(self, debate_id: str) -> Feedback | None:
        """Return the last feedback on a debate, or None."""
        return self._feedback.get(debate_id)

    def rating(self, agent_id: str, domain: str = OVERALL) -> Rating:
        """Return the rating of an agent; an agent without matches has the start rating."""
        return self._ratings.get(domain, {}).get(agent_id) or Rating(agent_id, domain)

    def rating_for_vote(self, agent_id: str, domain: str) -> Rating:
        """Return the rating that weighs a vote in a domain: the overall rating if the agent has no matches in it."""
        rating = self.rating(agent_id, domain)
        return rating if rating.matches else self.rating(agent_id, OVERALL)

    def record_for_vote(self, agent_id: str, domain: str) -> Record:
        """Return the judged answers that weigh a vote in a domain: all answers if the agent has none in it."""
        record = self.rating(agent_id, domain).record
        return record if record.answers else self.rating(agent_id, OVERALL).record

    def ratings(self, domain: str = OVERALL) -> list[Rating]:
        """Return all ratings of a domain, best first, equal ones by agent id."""
        return sorted(self._ratings.get(domain, {}).values(), key=_rank)

    def all_ratings(self) -> list[Rating]:
        """Return the ratings of all domains, without feedback."""
        return [
            replace(each, approvals=0, disapprovals=0)
            for table in self._ratings.values()
            for each in table.values()
        ]

    def page(
        self, domain: str, after: tuple[float, str] | None, size: int, min_matches: int = 0
    ) -> tuple[list[Rating], bool]:
        """Return at most `size` ratings of a domain as `ratings` orders them, and whether there are more.

        With `after`, the Elo and the agent id at the end of an earlier page, only the ratings after it.
        """
        ratings = [each for each in self.ratings(domain) if each.matches >= min_matches]
        if after is not None:
            elo, agent_id = after
            ratings = [each for each in ratings if _rank(each) > (-elo, agent_id)]
        return ratings[:size], len(ratings) > size

    def _recount(self) -> None:
        past_matches, sequences = self._past_matches, [each.sequence for each in self.pages]
        self._ratings, self._past_matches, self.profiles, self.pages = {}, {}, AgentProfiles(), []
        for place, (debate_id, past) in enumerate(past_matches.items()):
            if place % MATCHES_PER_PAGE == 0:
                self._begin_page(sequences[place // MATCHES_PER_PAGE])
            if past is None:
                # Its entry can no longer be read. It counts no more, but keeps its place: the pages begin where they did.
                self._past_matches[debate_id] = None
            else:
                self._count(past.recorded)
        for feedback in self._feedback.values():
            self._add_feedback(feedback, 1)

    def _begin_page(self, sequence: int) -> None:
        self._past_matches = dict.fromkeys(self._past_matches)
        self.pages.append(Page(sequence, self._elos()))

    def _count(self, recorded: Match) -> None:
        """Count a match with its present correction."""
        correction = self._corrections.get(recorded.debate_id)
        match = recorded if correction is None else correction.match
        moved = () if match is None else self._apply(match)
        self._past_matches[recorded.debate_id] = PastMatch(recorded, correction, moved)

    def _elos(self) -> dict[str, float]:
        return {agent_id: each.elo for agent_id, each in self._ratings.get(OVERALL, {}).items()}

    def _apply(self, match: Match) -> tuple[RatingChange, ...]:
        before = {agent_id: self.rating(agent_id).elo for agent_id in match.scores}
        for domain in {OVERALL, match.domain}:
            self._count_in(domain, match)
        self.profiles.count(match)
        return tuple(
            RatingChange(agent_id=each, before=before[each], after=self.rating(each).elo)
            for each in sorted(match.scores)
        )

    def _add_feedback(self, feedback: Feedback, times: int) -> None:
        for domain in {OVERALL, feedback.domain}:
            table = self._ratings.setdefault(domain, {})
            for agent_id in feedback.agent_ids:
                rating = table.get(agent_id) or Rating(agent_id, domain)
                table[agent_id] = replace(
                    rating,
                    approvals=rating.approvals + times * (feedback.value > 0),
                    disapprovals=rating.disapprovals + times * (feedback.value < 0),
                )

    def _count_in(self, domain: str, match: Match) -> None:
        table = self._ratings.setdefault(domain, {})
        moved = rating_changes({agent_id: each.elo for agent_id, each in table.items()}, match.scores)
        for agent_id, gain in moved.items():
            rating = table.get(agent_id) or Rating(agent_id, domain)
            score = match.scores[agent_id]
            others = [value for other, value in match.scores.items() if other != agent_id]
            table[agent_id] = replace(
                rating,
                elo=rating.elo + gain,
                matches=rating.matches + 1,
                wins=rating.wins + sum(score > other for other in others),
                draws=rating.draws + sum(score == other for other in others),
                losses=rating.losses + sum(score < other for other in others),
                last_match_at=match.recorded_at,
            )
        for answer in match.answers:
            rating = table.get(answer.agent_id) or Rating(answer.agent_id, domain)
            table[answer.agent_id] = replace(rating, record=rating.record.with_answer(answer))


def _rank(rating: Rating) -> tuple[float, str]:
    return -rating.elo, rating.agent_id
