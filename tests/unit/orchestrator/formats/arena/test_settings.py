"""The arena's settings: each bad one is named, and good ones pass."""

import pytest

from parley.orchestrator.formats.arena.settings import SETTINGS, topology_of
from parley.runtime.validation import Violations
from parley.v1.arena_pb2 import (
    DUTY_CRITIC,
    DUTY_UNSPECIFIED,
    JUDGE_CHOICE_VOTED,
    TOPOLOGY_KIND_ALL_TO_ALL,
    TOPOLOGY_KIND_RING,
    TOPOLOGY_KIND_STAR,
    AgentDuties,
    ArenaSettings,
    RoundTopology,
    StoppingSettings,
    TeamSettings,
    Topology,
    TricksterSettings,
)
from tests.support.catching import list_violations


def list_refused(settings: ArenaSettings, agents: int = 3) -> list[str]:
    violations = Violations()
    SETTINGS.check(violations, settings, agents)
    return [each.field for each in list_violations(violations)]


def test_the_defaults_are_accepted_and_leave_nothing_unsaid() -> None:
    assert isinstance(SETTINGS.defaults, ArenaSettings)
    assert list_refused(SETTINGS.defaults) == []
    assert list_refused(ArenaSettings()) == []


RING = Topology(kind=TOPOLOGY_KIND_RING)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (ArenaSettings(revision_rounds=21), "revision_rounds"),
        (ArenaSettings(max_extended_rounds=-1), "max_extended_rounds"),
        (ArenaSettings(protocol=9), "protocol"),  # type: ignore[arg-type]
        (ArenaSettings(judge_choice=9), "judge_choice"),  # type: ignore[arg-type]
        (ArenaSettings(topology=Topology(kind=9)), "topology.kind"),  # type: ignore[arg-type]
        (ArenaSettings(topology=Topology(hub_agent_id="ada")), "topology.hub_agent_id"),
        (
            ArenaSettings(topology=Topology(kind=TOPOLOGY_KIND_STAR, hub_agent_id="A!")),
            "topology.hub_agent_id",
        ),
        (ArenaSettings(topology=Topology(kind=TOPOLOGY_KIND_RING, sparsity=0.5)), "topology.sparsity"),
        (ArenaSettings(topologies=[RoundTopology(round=1, topology=RING)]), "topologies[0].round"),
        (ArenaSettings(topologies=[RoundTopology(round=2, topology=RING)] * 2), "topologies"),
        (ArenaSettings(stopping=StoppingSettings(ready_share_percent=101)), "stopping.ready_share_percent"),
        (ArenaSettings(stopping=StoppingSettings(sequential_percent=49)), "stopping.sequential_percent"),
        (
            ArenaSettings(trickster=TricksterSettings(max_interventions=11)),
            "trickster.max_interventions",
        ),
        (
            ArenaSettings(trickster=TricksterSettings(threshold_percent=101)),
            "trickster.threshold_percent",
        ),
        (ArenaSettings(team=TeamSettings(duties=[AgentDuties(agent_id="ada")])), "team.duties[0].duties"),
        (
            ArenaSettings(team=TeamSettings(duties=[AgentDuties(agent_id="ada", duties=[DUTY_UNSPECIFIED])])),
            "team.duties[0].duties",
        ),
        (
            ArenaSettings(
                team=TeamSettings(
                    duties=[AgentDuties(agent_id=each, duties=[DUTY_CRITIC]) for each in ("ada", "bo", "cy")]
                )
            ),
            "team.duties",
        ),
        (ArenaSettings(team=TeamSettings(size=1)), "team.size"),
        (ArenaSettings(team=TeamSettings(size=4)), "team.size"),
        (ArenaSettings(team=TeamSettings(size=2, exploration_share=1.5)), "team.exploration_share"),
        (ArenaSettings(team=TeamSettings(exploration_share=0.5)), "team.exploration_share"),
        (ArenaSettings(team=TeamSettings(domain="storage")), "team.domain"),
        (ArenaSettings(team=TeamSettings(size=2), grouping_agent_id="ada"), "grouping_agent_id"),
        (
            ArenaSettings(
                topology=Topology(kind=TOPOLOGY_KIND_STAR, hub_agent_id="ada"), team=TeamSettings(size=2)
            ),
            "topology.hub_agent_id",
        ),
        (
            ArenaSettings(
                team=TeamSettings(
                    duties=[AgentDuties(agent_id=each, duties=[DUTY_CRITIC]) for each in ("ada", "bo")],
                    size=2,
                )
            ),
            "team.duties",
        ),
        (
            ArenaSettings(judge_choice=JUDGE_CHOICE_VOTED, team=TeamSettings(size=2)),
            "judge_choice",
        ),
    ],
    ids=map(str, range(25)),
)
def test_what_cannot_be_is_refused_by_name(settings: ArenaSettings, field: str) -> None:
    assert f"spec.arena.{field}" in list_refused(settings)


def test_a_team_that_is_chosen_of_more_agents_is_accepted() -> None:
    chosen = TeamSettings(size=2, exploration_share=0, domain="storage")
    assert list_refused(ArenaSettings(team=chosen)) == []
    everybody = TeamSettings(size=3)
    assert list_refused(ArenaSettings(team=everybody, grouping_agent_id="ada")) == []


def test_a_round_has_its_own_topology_or_that_of_the_debate() -> None:
    settings = ArenaSettings(
        topology=RING, topologies=[RoundTopology(round=4, topology=Topology(kind=TOPOLOGY_KIND_STAR))]
    )
    assert topology_of(settings, 3).kind == TOPOLOGY_KIND_RING
    assert topology_of(settings, 4).kind == TOPOLOGY_KIND_STAR
    assert topology_of(ArenaSettings(), 4).kind == TOPOLOGY_KIND_ALL_TO_ALL


def test_who_takes_no_part_cannot_be_named() -> None:
    violations = Violations()
    settings = ArenaSettings(
        topology=Topology(kind=TOPOLOGY_KIND_STAR, hub_agent_id="zed"),
        grouping_agent_id="zed",
        team=TeamSettings(
            duties=[AgentDuties(agent_id=each, duties=[DUTY_CRITIC]) for each in ("ada", "yve")]
        ),
    )
    SETTINGS.check_names(violations, settings, ["ada", "bo"])
    assert [each.field for each in list_violations(violations)] == [
        "spec.arena.topology.hub_agent_id",
        "spec.arena.grouping_agent_id",
        "spec.arena.team.duties[1].agent_id",
    ]
