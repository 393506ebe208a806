"""Where agents stood from their first drafts on, and which of their positions are the same. Pure functions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from parley.orchestrator.model.contributions import Contribution
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP, Critique
from parley.v1.effect_pb2 import TakenUpIssue

FIRST_DRAFT: Final = 0
"""The round of a stand that was taken before its agent had read another's work."""


class Stand(Struct, frozen=True):
    """Where an agent stood in the end of a round.

    Attributes:
        round: From 1, or `FIRST_DRAFT`.
        text: Its position, as the agent states it; empty if it states none.
        issues: What it took up in this round, most severe first.
    """

    agent: str
    round: int
    text: str
    issues: tuple[TakenUpIssue, ...] = ()

    @property
    def words(self) -> str:
        """The words of the position: those who use the same words take the same one."""
        return " ".join(self.text.split())


def list_stands(made: Sequence[Contribution]) -> list[Stand]:
    """Return where the authors of these contributions stood: at their first draft, and in the end of each round with work of theirs.

    Contributions are in the order in which they were made, in a round critiques before the work that answers them. Only work
    of the first round is a first draft: later, agents have read each other.
    """
    drafts: dict[str, Stand] = {}
    stands: dict[tuple[int, str], Stand] = {}
    critiques: dict[str, dict[str, Critique]] = {}
    first_round = min((each.round for each in made), default=0)
    for each in made:
        if each.target:
            critiques.setdefault(each.target, {})[each.agent] = each.critique or Critique()
        elif each.round == first_round and each.agent not in drafts:
            drafts[each.agent] = Stand(each.agent, FIRST_DRAFT, each.position)
        else:
            stands[each.round, each.agent] = Stand(
                each.agent, each.round, each.position, _issues_taken_up(each, critiques.get(each.agent, {}))
            )
    return [*drafts.values(), *(stands[place] for place in sorted(stands))]


def _issues_taken_up(made: Contribution, critiques: Mapping[str, Critique]) -> tuple[TakenUpIssue, ...]:
    """Return what an agent took up of the latest critiques of its work, which are by their critics."""
    taken_up = [each for each in made.answers if each.status == ISSUE_STATUS_TAKEN_UP]
    critics = critiques.keys() & {each.critic_agent_id for each in taken_up}
    severities = {
        (critic, issue.number): issue.severity for critic in critics for issue in critiques[critic].issues
    }
    taken_up.sort(key=lambda each: -severities.get((each.critic_agent_id, each.number), 0))
    return tuple(TakenUpIssue(critic_agent_id=each.critic_agent_id, number=each.number) for each in taken_up)


def first_and_last(stands: Sequence[Stand]) -> list[Stand]:
    """Return the first and the last stand of each agent."""
    first = {each.agent: each for each in reversed(stands)}
    last = {each.agent: each for each in stands}
    return [each for each in stands if each in (first[each.agent], last[each.agent])]


def distinct_positions(stands: Iterable[Stand]) -> list[str]:
    """Return the words of all positions that are stated, each once, in the order of the stands."""
    return list(dict.fromkeys(stand.words for stand in stands if stand.text))


def name_groups(groups: Iterable[Collection[str]], drafts: Iterable[Collection[str]]) -> dict[str, str]:
    """Return the name of each position by its words, given groups of words that are the same position.

    If it is known how the first drafts group, that stands: a later position belongs to the drafts that it is grouped with, and
    is left out if these differ.
    """
    names: dict[str, str] = {}
    for group in drafts:
        names |= dict.fromkeys(group, min(group))
    for group in groups:
        touched = {names[each] for each in group if each in names}
        if len(touched) <= 1:
            name = next(iter(touched), min(group))
            names |= {each: name for each in group if each not in names}
    return names
