"""Who holds which position in an arena, round by round, as far as it is known."""

from collections.abc import Mapping, Sequence

from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.stopping import StatedPosition, group_agents, measure_shift, name_positions
from parley.v1.convergence_pb2 import AssessResponse
from parley.v1.debate_pb2 import DraftGroups


class PositionTracker:
    """The positions of the last round that was looked at, by names that mean nothing else."""

    def __init__(self) -> None:
        self._names: Mapping[str, str] | None = None
        self._sure: Mapping[str, float | None] = {}

    def start(self, drafts: DraftGroups | None) -> None:
        """Take the first drafts in, which no agent was asked about how sure of them it is."""
        if drafts is not None and drafts.certain:
            self._names = {agent: group.agent_ids[0] for group in drafts.groups for agent in group.agent_ids}

    def track_shift(
        self, number: int, work: Sequence[Contribution], assessed: AssessResponse | None
    ) -> float | None:
        """Return how far a round has shifted the positions, 0 to 1, and remember them; None if it is not known.

        If no agent has moved, it is known even if it is open who agrees with whom.
        """
        before, earlier = self._names, self._sure
        kept = _stable_agents(assessed)
        agents = [each.agent for each in work]
        found = _groups(agents, assessed)
        if kept.issuperset(agents):
            self._names = before or {agent: agent for agent in agents}
            before = self._names
        elif found is None:
            self._names = None
        else:
            self._names = name_positions(found, before or {}, kept, f"round {number}")
        self._sure = {each.agent: each.readiness.confidence for each in work}
        if before is None or self._names is None:
            return None
        return measure_shift(
            _to_stated_positions(before, earlier), _to_stated_positions(self._names, self._sure)
        )


def _stable_agents(assessed: AssessResponse | None) -> set[str]:
    stability = () if assessed is None else assessed.stability
    return {each.agent_id for each in stability if each.kept}


def _groups(agents: Sequence[str], assessed: AssessResponse | None) -> list[tuple[str, ...]] | None:
    if assessed is None or assessed.unsure:
        return None
    return group_agents(agents, {(each.agent_id, each.other_agent_id) for each in assessed.contradictions})


def _to_stated_positions(
    positions: Mapping[str, str], sure: Mapping[str, float | None]
) -> dict[str, StatedPosition]:
    return {agent: StatedPosition(position, sure.get(agent)) for agent, position in positions.items()}
