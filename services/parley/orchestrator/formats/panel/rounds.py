"""What comes of a panel's rounds: contributions, drafts and stands, requirements, and why the rounds ended."""

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from parley.orchestrator.log.replay import Steering
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.open_issues import is_structured
from parley.orchestrator.model.stands import Stand, list_stands
from parley.orchestrator.phases.requirements import Requirements
from parley.v1.debate_pb2 import DraftGroups
from parley.v1.event_pb2 import RoundsEnded, StepFailed
from parley.v1.memory_pb2 import PastDebate


class GroupedDrafts(Struct, frozen=True):
    """Drafts of a round with their positions, and how they group if that was found."""

    drafts: Sequence[Contribution] = ()
    groups: DraftGroups | None = None


class RoundsResult(Struct, frozen=True, dict=True):
    """What came of the rounds.

    Attributes:
        contributions: All contributions, oldest first.
        first: The first drafts among them.
        failed: Steps that failed.
        requirements: What an answer has to meet.
        end: Why the rounds ended.
        steering: What a person wants of the answer.
        past: Past debates like the question, best first.
    """

    contributions: Sequence[Contribution]
    first: GroupedDrafts
    failed: Sequence[StepFailed]
    rounds: int
    requirements: Requirements
    end: RoundsEnded
    steering: Steering
    past: Sequence[PastDebate] = ()

    @cached_property
    def finals(self) -> list[Contribution]:
        """The last work of each agent that has some."""
        work = [each for each in self.contributions if not each.target]
        return list({each.agent: each for each in work}.values())

    @property
    def earlier(self) -> list[Contribution]:
        """All but that, and but the critiques whose issues the judge reads with what became of them."""
        finals = {each.name for each in self.finals}
        last = max((each.round for each in self.contributions if each.target), default=0)
        return [
            each
            for each in self.contributions
            if each.name not in finals and not (each.round == last and is_structured(each))
        ]

    @cached_property
    def stands(self) -> list[Stand]:
        """Where each agent stood, from its first draft on."""
        stated = {each.name: each for each in self.first.drafts}
        return list_stands([stated.get(each.name, each) for each in self.contributions])

    @property
    def by_round(self) -> list[list[Contribution]]:
        """All contributions, round by round."""
        rounds: dict[int, list[Contribution]] = {number: [] for number in range(1, self.rounds + 1)}
        for each in self.contributions:
            rounds[each.round].append(each)
        return list(rounds.values())
