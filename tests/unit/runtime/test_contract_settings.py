"""Ranges and defaults that the contract says beside its fields."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from parley.runtime.contract_settings import check_settings, default_of, enum_labels, with_defaults
from parley.runtime.validation import Violations
from parley.v1.agent_pb2 import Agent
from parley.v1.arena_pb2 import ArenaSettings, Topology, TopologyKind, TricksterSettings
from parley.v1.debate_pb2 import DebateLimits, DebateSpec
from parley.v1.evaluation_pb2 import EvaluationSettings
from parley.v1.moderated_pb2 import ModeratedSettings, Perspective
from parley.v1.panel_pb2 import PanelSettings, Termination
from tests.support.catching import list_violations

LINES: dict[str, Any] = {"name": "Nature", "priorities": ["birdsong"], "trade_offs": "Slower."}


def list_refused(message: Message) -> list[str]:
    violations = Violations()
    check_settings(violations, "spec", message)
    return [f"{each.field} {each.description}" for each in list_violations(violations)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (PanelSettings(rounds=101), "spec.rounds is 101, must be 1 to 100, or 0 for the default"),
        (PanelSettings(rounds=-1), "spec.rounds is -1, must be 1 to 100, or 0 for the default"),
        (
            PanelSettings(termination=Termination(rule=77)),  # type: ignore[arg-type]
            "spec.termination.rule is not a known value; known values: fixed, convergence, quality, undisputed",
        ),
        (ArenaSettings(max_extended_rounds=11), "spec.max_extended_rounds must be 0 to 10"),
        (Agent(temperature=float("nan")), "spec.temperature must be 0 to 2"),
        (
            ArenaSettings(topology=Topology(sparsity=1.5)),
            "spec.topology.sparsity is 1.5, must be above 0 and at most 1, or 0 for the default",
        ),
        (
            ModeratedSettings(token_budget_per_round=63),
            "spec.token_budget_per_round is 63, must be 64 to 1000000, or 0 for unlimited",
        ),
        (DebateLimits(call=Duration(seconds=3601)), "spec.call must be 1 second to 1 hour"),
        (DebateLimits(round=Duration()), "spec.round must be 1 second to 24 hours"),
        (DebateLimits(total=Duration(seconds=604801)), "spec.total must be 1 second to 7 days"),
        (DebateLimits(waiting=Duration(seconds=-1)), "spec.waiting must be 0 to 24 hours"),
        (DebateSpec(concurrency={"critiques": 0}), "spec.concurrency.critiques must be 1 to 1024"),
        (DebateSpec(domain="d" * 65), "spec.domain must be at most 64 characters"),
        (
            EvaluationSettings(timeouts={"ada": Duration(seconds=0)}),
            "spec.timeouts.ada must be 1 second to 1 hour",
        ),
        (
            ModeratedSettings(custom_perspectives=[Perspective(**{**LINES, "priorities": []})]),
            "spec.custom_perspectives[0].priorities has 0, must have 1 to 10",
        ),
        (
            ModeratedSettings(custom_perspectives=[Perspective(**{**LINES, "keywords": ["a\nb"]})]),
            "spec.custom_perspectives[0].keywords[0] must be one line",
        ),
        (
            ModeratedSettings(custom_perspectives=[Perspective(**{**LINES, "trade_offs": " "})]),
            "spec.custom_perspectives[0].trade_offs is blank",
        ),
    ],
    ids=map(str, range(17)),
)
def test_a_setting_out_of_its_range_is_named_with_its_range(message: Message, expected: str) -> None:
    assert list_refused(message) == [expected]


@pytest.mark.parametrize(
    "message",
    [
        PanelSettings(),
        PanelSettings(rounds=100),
        ArenaSettings(max_extended_rounds=0),
        ModeratedSettings(token_budget_per_round=0),
        ModeratedSettings(custom_perspectives=[Perspective(**LINES)]),
        DebateLimits(waiting=Duration(), call=Duration(seconds=1)),
        Agent(temperature=0),
    ],
    ids=map(str, range(7)),
)
def test_settings_that_are_unset_or_in_range_are_accepted(message: Message) -> None:
    assert list_refused(message) == []


def test_fields_can_be_left_to_another_check() -> None:
    violations = Violations()
    spec = DebateSpec(panel=PanelSettings(rounds=101))
    check_settings(violations, "spec", spec, but={"panel"})
    violations.refuse()
    assert list_refused(spec) == ["spec.panel.rounds is 101, must be 1 to 100, or 0 for the default"]


def test_what_is_unset_gets_its_default_and_what_is_set_stays() -> None:
    filled = with_defaults(ArenaSettings(max_extended_rounds=0, trickster=TricksterSettings()))
    assert (filled.revision_rounds, filled.max_extended_rounds, filled.stopping.ready_share_percent) == (
        3,
        0,
        75,
    )
    assert filled.topology == Topology(kind=TopologyKind.TOPOLOGY_KIND_ALL_TO_ALL), "no sparsity is filled in"
    assert filled.trickster == TricksterSettings(), "whoever reads it applies its defaults"
    assert not filled.HasField("team")


def test_a_default_has_the_type_of_its_field() -> None:
    assert default_of(TricksterSettings, "max_interventions") == 2
    assert default_of(Topology, "sparsity") == 0.5
    assert default_of(Topology, "kind") == TopologyKind.TOPOLOGY_KIND_ALL_TO_ALL
    assert default_of(ArenaSettings, "verification") is True
    assert default_of(DebateSpec, "domain") == "general"
    with pytest.raises(KeyError, match="hub_agent_id has no default"):
        default_of(Topology, "hub_agent_id")


def test_the_values_of_an_enum_go_by_the_words_that_people_write() -> None:
    assert list(enum_labels(TopologyKind.DESCRIPTOR)) == [
        "all-to-all",
        "round-robin",
        "ring",
        "star",
        "sparse",
    ]
