"""The arena's settings: what they are by default, and what is refused."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings
from parley.orchestrator.phases.vote_terms import VOTING_DEFAULTS, check_voting_settings
from parley.runtime.validation import AGENT_ID, Violations
from parley.v1.arena_pb2 import (
    DEBATE_PROTOCOL_COLLABORATIVE,
    DUTY_PROPOSER,
    DUTY_VOTER,
    JUDGE_CHOICE_DESIGNATED,
    JUDGE_CHOICE_VOTED,
    TOPOLOGY_KIND_ALL_TO_ALL,
    TOPOLOGY_KIND_SPARSE,
    TOPOLOGY_KIND_STAR,
    ArenaSettings,
    DebateProtocol,
    Duty,
    JudgeChoice,
    StoppingSettings,
    TeamSettings,
    Topology,
    TopologyKind,
)

__all__ = ["SETTINGS", "topology_of"]

_MAX_REVISION_ROUNDS: Final = 20
_MAX_EXTENDED_ROUNDS: Final = 10
_MAX_INTERVENTIONS: Final = 10
_MAX_ROUND: Final = _MAX_REVISION_ROUNDS + _MAX_EXTENDED_ROUNDS + 5


def topology_of(settings: ArenaSettings, number: int) -> Topology:
    """Return the topology of a round, with its kind said."""
    own = next((each.topology for each in settings.topologies if each.round == number), settings.topology)
    told = Topology()
    told.CopyFrom(own)
    told.kind = own.kind or settings.topology.kind or TOPOLOGY_KIND_ALL_TO_ALL
    return told


def _check(violations: Violations, settings: Message, agents: int) -> None:
    assert isinstance(settings, ArenaSettings)
    path = "spec.arena"
    violations.check_setting(f"{path}.revision_rounds", settings.revision_rounds, _MAX_REVISION_ROUNDS)
    violations.check_range(
        f"{path}.max_extended_rounds", settings.max_extended_rounds, 0, _MAX_EXTENDED_ROUNDS
    )
    violations.check(
        that=settings.protocol in DebateProtocol.values(),
        field=f"{path}.protocol",
        otherwise="is not a known protocol",
    )
    violations.check(
        that=settings.judge_choice in JudgeChoice.values(),
        field=f"{path}.judge_choice",
        otherwise="is not a known choice",
    )
    seats = min(settings.team.size, agents) or agents
    violations.check(
        that=settings.judge_choice != JUDGE_CHOICE_VOTED or seats > 2,
        field=f"{path}.judge_choice",
        otherwise="a vote for the judge needs at least three agents, since none votes for itself",
    )
    _check_topology(violations, f"{path}.topology", settings.topology)
    for place, each in enumerate(settings.topologies):
        violations.check_range(f"{path}.topologies[{place}].round", each.round, 2, _MAX_ROUND)
        _check_topology(violations, f"{path}.topologies[{place}].topology", each.topology)
    _check_single(violations, f"{path}.topologies", (each.round for each in settings.topologies), "round")
    voters = seats - _without(settings.team, DUTY_VOTER)
    check_voting_settings(violations, f"{path}.voting", settings.voting, voters)
    _check_stopping(violations, f"{path}.stopping", settings.stopping)
    _check_duties(violations, f"{path}.team.duties", settings.team, seats)
    _check_choice_of_team(violations, f"{path}.team", settings, agents)
    for name, most in (("max_interventions", _MAX_INTERVENTIONS), ("threshold_percent", 100)):
        violations.check_setting(f"{path}.trickster.{name}", getattr(settings.trickster, name), most)


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
    violations.check(
        that=topology.kind in TopologyKind.values(), field=f"{path}.kind", otherwise="is not a known topology"
    )
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
        violations.check(
            that=0 < topology.sparsity <= 1,
            field=f"{path}.sparsity",
            otherwise="must be above 0 and at most 1",
        )


def _check_stopping(violations: Violations, path: str, stopping: StoppingSettings) -> None:
    for name in (
        "convergence_threshold_percent",
        "ready_share_percent",
        "ready_confidence_percent",
        "confidence_threshold_percent",
        "stable_positions_percent",
    ):
        violations.check_setting(f"{path}.{name}", getattr(stopping, name), 100)
    violations.check(
        that=stopping.sequential_percent == 0 or 50 <= stopping.sequential_percent <= 100,
        field=f"{path}.sequential_percent",
        otherwise="must be from 50 to 100",
    )


def _check_choice_of_team(violations: Violations, path: str, settings: ArenaSettings, agents: int) -> None:
    team = settings.team
    violations.check_range(f"{path}.size", team.size, 2 if team.size else 0, agents)
    violations.check_range(f"{path}.exploration_share", team.exploration_share, 0, 1)
    violations.check_label(f"{path}.domain", team.domain)
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
    """Note duties that nobody may have, whoever takes these seats."""
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
            that=_without(team, duty) < seats, field=path, otherwise=f"at least one agent must {what}"
        )


def _check_single(violations: Violations, path: str, values: Iterable[object], what: str) -> None:
    several = sorted(str(value) for value, count in Counter(values).items() if count > 1)
    violations.check(that=not several, field=path, otherwise=f"names a {what} twice: {', '.join(several)}")


def _without(team: TeamSettings, duty: "Duty.ValueType") -> int:
    return len({each.agent_id for each in team.duties if duty not in each.duties})


SETTINGS: Final = Settings(
    name="arena",
    defaults=ArenaSettings(
        revision_rounds=3,
        max_extended_rounds=1,
        protocol=DEBATE_PROTOCOL_COLLABORATIVE,
        topology=Topology(kind=TOPOLOGY_KIND_ALL_TO_ALL),
        voting=VOTING_DEFAULTS,
        stopping=StoppingSettings(
            convergence=True,
            convergence_threshold_percent=90,
            ready_signal=True,
            ready_share_percent=75,
            ready_confidence_percent=80,
            judge_termination=False,
            unanimous_drafts=True,
            stable_positions=True,
            stable_positions_percent=5,
            sequential=False,
            sequential_percent=90,
        ),
        judge_choice=JUDGE_CHOICE_DESIGNATED,
        verification=True,
    ),
    check=_check,
    check_names=_check_names,
)
