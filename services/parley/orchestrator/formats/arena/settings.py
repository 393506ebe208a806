"""The settings of arenas: what they are by default, what is refused, and what follows from them for each agent."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings
from parley.orchestrator.phases.count_votes import check_self_votes
from parley.runtime.contract_settings import with_defaults
from parley.runtime.validation import AGENT_ID, Violations
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import (
    DUTY_PROPOSER,
    DUTY_VOTER,
    JUDGE_CHOICE_VOTED,
    TOPOLOGY_KIND_ALL_TO_ALL,
    TOPOLOGY_KIND_SPARSE,
    TOPOLOGY_KIND_STAR,
    ArenaSettings,
    Duty,
    StoppingSettings,
    TeamSettings,
    Topology,
)


def topology_of(settings: ArenaSettings, number: int) -> Topology:
    """Return the topology of a round, with its kind said."""
    own = next((each.topology for each in settings.topologies if each.round == number), settings.topology)
    topology = Topology()
    topology.CopyFrom(own)
    topology.kind = own.kind or settings.topology.kind or TOPOLOGY_KIND_ALL_TO_ALL
    return topology


def _check_rules(violations: Violations, settings: Message, agents: int) -> None:
    assert isinstance(settings, ArenaSettings)
    path = "spec.arena"
    seats = min(settings.team.size, agents) or agents
    violations.check(
        that=settings.judge_choice != JUDGE_CHOICE_VOTED or seats > 2,
        field=f"{path}.judge_choice",
        otherwise="a vote for the judge needs at least three agents, since none votes for itself",
    )
    _check_topology(violations, f"{path}.topology", settings.topology)
    for place, each in enumerate(settings.topologies):
        _check_topology(violations, f"{path}.topologies[{place}].topology", each.topology)
    _check_single(violations, f"{path}.topologies", (each.round for each in settings.topologies), "round")
    voters = seats - _count_without_duty(settings.team, DUTY_VOTER)
    check_self_votes(violations, f"{path}.voting", settings.voting, voters)
    _check_duties(violations, f"{path}.team.duties", settings.team, seats)
    _check_choice_of_team(violations, f"{path}.team", settings, agents)


def _check_names(violations: Violations, settings: Message, agents: Collection[str]) -> None:
    assert isinstance(settings, ArenaSettings)
    named = {"spec.arena.topology.hub_agent_id": settings.topology.hub_agent_id}
    for place, each in enumerate(settings.topologies):
        named[f"spec.arena.topologies[{place}].topology.hub_agent_id"] = each.topology.hub_agent_id
    named["spec.arena.grouping_agent_id"] = settings.grouping_agent_id
    for place, duties in enumerate(settings.team.duties):
        named[f"spec.arena.team.duties[{place}].agent_id"] = duties.agent_id
    for field, agent in named.items():
        violations.check(
            that=not agent or agent in agents, field=field, otherwise=f"no agent {agent[:80]!r} takes part"
        )


def _check_topology(violations: Violations, path: str, topology: Topology) -> None:
    if topology.hub_agent_id:
        violations.check(
            that=topology.kind == TOPOLOGY_KIND_STAR,
            field=f"{path}.hub_agent_id",
            otherwise="only a star has a hub",
        )
        violations.check(
            that=bool(AGENT_ID.fullmatch(topology.hub_agent_id)),
            field=f"{path}.hub_agent_id",
            otherwise="is not an agent's id",
        )
    if topology.sparsity:
        violations.check(
            that=topology.kind == TOPOLOGY_KIND_SPARSE,
            field=f"{path}.sparsity",
            otherwise="only a sparse topology has one",
        )


def _check_choice_of_team(violations: Violations, path: str, settings: ArenaSettings, agents: int) -> None:
    team = settings.team
    violations.check(
        that=team.size <= agents,
        field=f"{path}.size",
        otherwise=f"is {team.size}, must be at most {agents}, the number of agents",
    )
    violations.check(
        that=bool(team.size) or not team.HasField("exploration_share"),
        field=f"{path}.exploration_share",
        otherwise="only a team of a size is chosen",
    )
    violations.check(
        that=bool(team.size) or not team.domain,
        field=f"{path}.domain",
        otherwise="only a team of a size is chosen",
    )
    named = {"topology.hub_agent_id": settings.topology.hub_agent_id}
    for place, each in enumerate(settings.topologies):
        named[f"topologies[{place}].topology.hub_agent_id"] = each.topology.hub_agent_id
    named["grouping_agent_id"] = settings.grouping_agent_id
    for field, agent in named.items():
        violations.check(
            that=not agent or not 0 < team.size < agents,
            field=f"spec.arena.{field}",
            otherwise="no agent can be named where the team is chosen, since it may not be in it",
        )


def _check_duties(violations: Violations, path: str, team: TeamSettings, seats: int) -> None:
    """Note duties that no agent may have, whoever takes these seats."""
    for place, each in enumerate(team.duties):
        violations.check(
            that=bool(AGENT_ID.fullmatch(each.agent_id)),
            field=f"{path}[{place}].agent_id",
            otherwise="is not an agent's id",
        )
        violations.check(
            that=bool(each.duties) and all(duty in Duty.values() and duty for duty in each.duties),
            field=f"{path}[{place}].duties",
            otherwise="must be proposer, critic or voter, and not empty",
        )
        _check_single(violations, f"{path}[{place}].duties", each.duties, "duty")
    _check_single(violations, path, (each.agent_id for each in team.duties), "agent")
    for duty, what in ((DUTY_PROPOSER, "propose"), (DUTY_VOTER, "vote")):
        violations.check(
            that=_count_without_duty(team, duty) < seats,
            field=path,
            otherwise=f"at least one agent must {what}",
        )


def _check_single(violations: Violations, path: str, values: Iterable[object], what: str) -> None:
    several = sorted(str(value) for value, count in Counter(values).items() if count > 1)
    violations.check(that=not several, field=path, otherwise=f"names a {what} twice: {', '.join(several)}")


def _count_without_duty(team: TeamSettings, duty: "Duty.ValueType") -> int:
    return len({each.agent_id for each in team.duties if duty not in each.duties})


SETTINGS: Final = Settings(
    name="arena", defaults=with_defaults(ArenaSettings()), check_rules=_check_rules, check_names=_check_names
)


def agents_with_duty(
    settings: ArenaSettings, agents: Sequence[Agent], duty: Duty.ValueType, muted: Collection[str] = ()
) -> tuple[Agent, ...]:
    """Return the agents that have a duty and are not muted, in their order."""
    said = {each.agent_id: each.duties for each in settings.team.duties}
    return tuple(each for each in agents if each.id not in muted and duty in said.get(each.id, (duty,)))


def asks_readiness(stopping: StoppingSettings) -> bool:
    """Return whether a rule goes by what agents say of themselves, so that they are asked for it."""
    return stopping.ready_signal or stopping.stable_positions or bool(stopping.confidence_threshold_percent)
