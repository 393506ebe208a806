"""Whose last work is best, by what is known without a judge: what its critics say of it; and how it stands in for an answer. Pure functions."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.critiques import SEVERE
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP
from parley.v1.debate_pb2 import DraftGroups, StandIn


class BestWork(Struct, frozen=True):
    """The work that was chosen, and why, in a few words."""

    work: Contribution
    reason: str


class _Standing(Struct, frozen=True):
    """What critics say of a work: how many of them agree with it, and how many serious issues they leave open.

    Attributes:
        drafts: How many first drafts take the position of its author's, if that is the largest group; else 0.
    """

    agreeing: int
    critics: int
    serious: int
    drafts: int

    @property
    def rank(self) -> tuple[int, int, int]:
        return -self.agreeing, self.serious, -self.drafts


def choose_best_work(
    works: Sequence[Contribution], said: Iterable[Contribution], drafts: DraftGroups | None = None
) -> BestWork:
    """Return the work that most critics agree with; of equals the one with the fewest open serious issues.

    Of equals again it is one whose author's first draft takes the position of the most, then the first. `works`: one or more; `said`:
    all contributions. Of critiques those of the last round count in which a work was criticized.
    """
    made = list(said)
    standings = [_find_standing(each.agent, made, drafts) for each in works]
    place = min(range(len(works)), key=lambda each: (standings[each].rank, each))
    others = [each for each in standings if each is not standings[place]]
    return BestWork(works[place], _describe_choice(standings[place], others, drafts))


def _find_standing(agent: str, made: Sequence[Contribution], drafts: DraftGroups | None) -> _Standing:
    critiques = [each for each in made if each.target == agent and each.critique is not None]
    number = max((each.round for each in critiques), default=0)
    answers = (answer for each in made if each.agent == agent and not each.target for answer in each.answers)
    taken_up = {
        (answer.critic_agent_id, answer.number)
        for answer in answers
        if answer.status == ISSUE_STATUS_TAKEN_UP
    }
    last = {each.agent: each.critique for each in critiques if each.round == number and each.critique}
    open_issues = [
        issue
        for critic, critique in last.items()
        for issue in critique.issues
        if issue.severity >= SEVERE and (critic, issue.number) not in taken_up
    ]
    agreeing = sum(each.agrees for each in last.values())
    return _Standing(agreeing, len(last), len(open_issues), _count_like_drafts(agent, drafts))


def _count_like_drafts(agent: str, drafts: DraftGroups | None) -> int:
    first = drafts.groups[0].agent_ids if drafts is not None and drafts.majority else ()
    return len(first) if agent in first else 0


def _describe_choice(best: _Standing, others: Sequence[_Standing], drafts: DraftGroups | None) -> str:
    if not others:
        return "there is no other"
    if any(each.agreeing < best.agreeing for each in others):
        return f"{best.agreeing} of {best.critics} critics agree with it"
    if any(each.serious > best.serious for each in others):
        return f"it has the fewest serious issues left open ({best.serious})"
    if drafts is not None and any(each.drafts < best.drafts for each in others):
        count = sum(len(each.agent_ids) for each in drafts.groups)
        return f"{best.drafts} of {count} first drafts take the position of its author's"
    return "nothing is known that puts another one above it, and it comes first"


def describe_stand_in(stand_in: StandIn, name: Callable[[str], str] = str) -> str:
    """Return in a line whose work stands in for which answer, and why; `name` returns what an agent is called."""
    writer = stand_in.writer_agent_id
    whose = f"{name(writer)} wrote no answer" if writer else "no answer was made"
    instead = f"the last work of {name(stand_in.agent_id)} stands in for it"
    return f"{whose} ({stand_in.message}): {instead}, since {stand_in.choice}"
