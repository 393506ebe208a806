"""The formats that the configuration knows, and what is asked of each."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest

from parley.cli.app import debate
from parley.cli.input.debate_request import DebateOptions
from parley.cli.input.parameters import Count
from parley.config import loading as config
from parley.config.contract_keys import keys_of
from parley.config.entries import DebateEntry
from parley.config.errors import ConfigError
from parley.config.formats import DEFAULT, FORMAT_SETTINGS, FORMATS, Format, find_format
from parley.config.messages import debate_message, keys_of_field
from parley.runtime.contract_settings import enum_labels
from parley.v1.arena_pb2 import (
    DEBATE_PROTOCOL_SOCRATIC,
    DUTY_CRITIC,
    DUTY_VOTER,
    JUDGE_CHOICE_BY_CALIBRATION,
    TOPOLOGY_KIND_SPARSE,
    TOPOLOGY_KIND_STAR,
    AgentDuties,
    ArenaSettings,
    RoundTopology,
    StoppingSettings,
    TeamSettings,
    Topology,
    TricksterSettings,
)
from parley.v1.debate_pb2 import Clarifications, DebateSpec
from parley.v1.moderated_pb2 import ModeratedSettings, Perspective
from parley.v1.panel_pb2 import (
    EFFORT_QUICK,
    EFFORT_STANDARD,
    EFFORT_THOROUGH,
    PanelSettings,
)
from parley.v1.voting_pb2 import (
    VOTE_BALLOTS_LAST_VOTE,
    VOTE_WEIGHTS_ACCURACY,
    VOTING_METHOD_SUPERMAJORITY,
    VotingSettings,
)
from tests.support.guides import ROOT


def settings_of(message: Any, path: str) -> Iterator[str]:
    """The path of every setting below a message that a configuration file can say."""
    for key in keys_of(message):
        here = ".".join((path, *(each.name for each in key.path)))
        yield here
        if key.setting.nested or (
            key.field.is_repeated and key.field.message_type and not key.setting.mapping
        ):
            yield from settings_of(key.field.message_type, f"{here}[0]" if key.field.is_repeated else here)


FIELDS = [
    *settings_of(DebateSpec.DESCRIPTOR, "spec"),
    *settings_of(Clarifications.DESCRIPTOR, "spec.clarifications"),
]


@pytest.mark.parametrize("field", FIELDS)
def test_every_setting_of_the_contract_has_a_key_that_the_file_may_hold(field: str) -> None:
    key = keys_of_field(field)[0].removeprefix("debate.")
    entry: Any = DebateEntry
    for part in key.split("."):
        known = {each.name: each.type for each in dataclasses.fields(entry)}
        name = part.partition("[")[0]
        assert name in known, f"{field}: {key}"
        entry = next((each for each in inner_types(known[name]) if dataclasses.is_dataclass(each)), None)


def inner_types(kind: Any) -> Iterator[Any]:
    yield kind
    for each in get_args(kind):
        yield from inner_types(each)


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_the_number_of_rounds_replaces_what_the_section_says(each: Format) -> None:
    spec = debate_message(config.loads("debate: {rounds: 2}", "debate.yaml", Path()).debate, each.name)
    each.set_rounds(spec, 7)
    assert spec.WhichOneof("format_settings") == each.name
    settings = getattr(spec, each.name)
    assert 7 in {value for field, value in settings.ListFields() if "rounds" in field.name}
    assert 2 not in {value for field, value in settings.ListFields() if "rounds" in field.name}


@pytest.mark.parametrize(
    ("section", "option", "expected"),
    [
        ("rounds: 5", "quick", PanelSettings(effort=EFFORT_QUICK)),
        ("rounds: 5", "standard", PanelSettings(effort=EFFORT_STANDARD, rounds=5)),
        ("effort: standard", "thorough", PanelSettings(effort=EFFORT_THOROUGH)),
        (
            "termination: {rule: quality, threshold: 80}",
            "thorough",
            PanelSettings(effort=EFFORT_THOROUGH),
        ),
    ],
)
def test_an_effort_replaces_what_the_section_says_against_it(
    section: str, option: str, expected: PanelSettings
) -> None:
    spec = debate_message(config.loads(f"debate: {{{section}}}", "debate.yaml", Path()).debate)
    DEFAULT.set_option(spec, "effort", option)
    assert spec.panel == expected


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("quick", PanelSettings(rounds=2)),
        ("thorough", PanelSettings(rounds=2, effort=EFFORT_THOROUGH)),
    ],
)
def test_a_number_of_rounds_replaces_the_effort_that_allows_none(
    section: str, expected: PanelSettings
) -> None:
    spec = debate_message(config.loads(f"debate: {{effort: {section}}}", "debate.yaml", Path()).debate)
    DEFAULT.set_rounds(spec, 2)
    assert spec.panel == expected


def test_the_formats_are_those_whose_settings_the_contract_gives_keys() -> None:
    with_keys = {each.path[0].name for each in keys_of(DebateSpec.DESCRIPTOR)}
    named = {each.name for each in FORMAT_SETTINGS.fields} & with_keys
    assert {each.name for each in FORMATS} == named, "a format is in FORMATS in config/formats.py"


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_the_command_has_the_options_that_the_contract_names_with_their_values(each: Format) -> None:
    options = {opt: option for option in debate.params for opt in option.opts}
    takes: object
    for name, key in each.options.items():
        option = options.get(f"--{name}")
        assert option is not None, f"--{name}: add the option to `debate` in cli/app.py"
        if key.field.enum_type is not None:
            values = list(enum_labels(key.field.enum_type))
            takes = list(option.type.choices) if isinstance(option.type, click.Choice) else option.type
            assert takes == values, f"--{name} in cli/app.py: its type is a choice of {values}"
        elif key.setting.HasField("max"):
            least, most = int(key.setting.min), int(key.setting.max)
            takes = (option.type._min, option.type._max) if isinstance(option.type, Count) else option.type
            assert takes in ((least, most), (1, most)), (
                f"--{name} in cli/app.py: its type is Count({most}, {least}), as its range in the contract"
            )
        else:
            is_flag = isinstance(option, click.Option) and option.is_flag
            assert is_flag, f"--{name} in cli/app.py: it is a flag (is_flag=True)"


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_the_options_that_the_contract_names_come_to_the_format(each: Format) -> None:
    given: Any = dict.fromkeys(DebateOptions.__struct_fields__, True)
    missing = each.options.keys() - DebateOptions(**given).of_format.keys()
    assert not missing, "add them to `DebateOptions.of_format` in cli/input/debate_request.py"


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_the_options_that_the_contract_names_have_a_row_in_the_guide(each: Format) -> None:
    guide = (ROOT / "docs" / "guides" / "cli.md").read_text(encoding="utf-8")
    missing = [name for name in each.options if f"| `--{name}" not in guide]
    assert not missing, "add a row to docs/guides/cli.md"


def test_a_format_is_found_by_its_name_whatever_the_version() -> None:
    assert find_format(None) is DEFAULT
    assert find_format(f"{DEFAULT.name}@1") is DEFAULT
    assert find_format("opera") is None


def test_a_format_that_is_not_known_here_gets_what_holds_for_all() -> None:
    entry = config.loads("debate: {rounds: 2, domain: storage}\n", "debate.yaml", Path()).debate
    assert debate_message(entry, "opera") == DebateSpec(domain="storage")


def test_the_file_may_say_the_format_and_a_name_that_is_given_counts_before_it() -> None:
    text = "debate: {format: arena, rounds: 2, arena: {revision_rounds: 4}}\n"
    entry = config.loads(text, "debate.yaml", Path()).debate
    assert entry is not None
    assert entry.format == "arena"
    assert debate_message(entry).arena.revision_rounds == 4
    assert debate_message(entry, "panel").panel.rounds == 2


@pytest.mark.parametrize(
    ("text", "chosen", "unused"),
    [
        ("rounds: 2", "panel", {}),
        ("rounds: 2", "arena", {"rounds": "use arena.revision_rounds"}),
        ("rounds: 2", "moderated", {"rounds": "use max_rounds"}),
        ("max_rounds: 2", "panel", {"max_rounds": "use rounds"}),
        ("termination: {rule: quality}", "moderated", {"termination": "the moderator ends the rounds"}),
        ("termination: {rule: quality}", "arena", {"termination": "use arena.convergence"}),
        ("synthesis_method: merge", "moderated", {"synthesis_method": "the moderator"}),
        ("arena: {observer: true}", "panel", {"arena": "choose the format arena"}),
        ("checkpoints: true", "arena", {"checkpoints": "choose the format moderated"}),
        ("max_concurrent_critiques: 2", "moderated", {"max_concurrent_critiques": "leave it out"}),
        ("max_concurrent_critiques: 2", "arena", {}),
        ("domain: storage, history_limit: 2, max_output_tokens: 9", "moderated", {}),
        (
            "rounds: 2, carry_forward: true, max_rounds: 3",
            "arena",
            dict.fromkeys(("rounds", "carry_forward", "max_rounds"), ""),
        ),
    ],
)
def test_keys_that_a_format_does_not_use_are_found_with_what_to_use_instead(
    text: str, chosen: str, unused: dict[str, str]
) -> None:
    places = config.loads(f"debate: {{{text}}}", "debate.yaml", Path()).places
    found_format = find_format(chosen)
    assert found_format is not None
    found = dict(found_format.find_unused_keys(lambda key: places.is_written(f"debate.{key}")))
    assert found.keys() == unused.keys()
    assert all(advice in found[key] for key, advice in unused.items()), found


def test_every_key_of_the_arena_sets_what_it_says() -> None:
    text = """
    debate:
      max_concurrent_critiques: 4
      arena:
        revision_rounds: 2
        max_extended_rounds: 0
        protocol: socratic
        topology: star
        hub: ada
        topologies: [{round: 4, topology: sparse, sparsity: 0.3}]
        consensus: supermajority
        allow_self_votes: false
        weighted_by: accuracy
        vote_early_end: false
        group_similar_choices: false
        ballots: last-vote
        judge_ballot: false
        convergence: false
        convergence_threshold: 80
        ready_signal: false
        ready_share: 60
        ready_confidence: 70
        early_stop_confidence: 95
        judge_termination: true
        unanimous_drafts: false
        stable_positions: false
        stable_positions_threshold: 10
        sequential: true
        sequential_threshold: 95
        grouping_agent: bo
        judge_selection: by-calibration
        duties: {ada: [critic, voter]}
        team_size: 2
        team_exploration: 0.5
        team_domain: storage
        trickster: {max_interventions: 3, threshold: 60, asks: true}
        observer: true
        verification: false
    """
    spec = debate_message(config.loads(text, "debate.yaml", Path()).debate, "arena")
    assert spec.concurrency == {"critiques": 4}
    assert spec.arena == ArenaSettings(
        revision_rounds=2,
        max_extended_rounds=0,
        protocol=DEBATE_PROTOCOL_SOCRATIC,
        topology=Topology(kind=TOPOLOGY_KIND_STAR, hub_agent_id="ada"),
        topologies=[RoundTopology(round=4, topology=Topology(kind=TOPOLOGY_KIND_SPARSE, sparsity=0.3))],
        voting=VotingSettings(
            method=VOTING_METHOD_SUPERMAJORITY,
            weighted_by=VOTE_WEIGHTS_ACCURACY,
            allow_self_votes=False,
            early_end=False,
            group_choices=False,
            ballots=VOTE_BALLOTS_LAST_VOTE,
            judge_ballot=False,
        ),
        stopping=StoppingSettings(
            convergence=False,
            convergence_threshold_percent=80,
            ready_signal=False,
            ready_share_percent=60,
            ready_confidence_percent=70,
            confidence_threshold_percent=95,
            judge_termination=True,
            unanimous_drafts=False,
            stable_positions=False,
            stable_positions_percent=10,
            sequential=True,
            sequential_percent=95,
        ),
        judge_choice=JUDGE_CHOICE_BY_CALIBRATION,
        team=TeamSettings(
            duties=[AgentDuties(agent_id="ada", duties=[DUTY_CRITIC, DUTY_VOTER])],
            size=2,
            exploration_share=0.5,
            domain="storage",
        ),
        grouping_agent_id="bo",
        trickster=TricksterSettings(max_interventions=3, threshold_percent=60, asks=True),
        observer=True,
        verification=False,
    )


def test_every_key_of_the_moderated_format_sets_what_it_says() -> None:
    text = """
    debate:
      format: moderated
      max_rounds: 4
      default_perspectives: 3
      checkpoints: false
      token_budget_per_round: 500
      round_timeout_seconds: 90
      checkpoint_timeout_seconds: 60
      total_timeout_seconds: 600
      custom_perspectives:
        - name: Compliance First
          priorities: [audit trails, data residency]
          trade_offs: Will accept slower development
          keywords: [gdpr]
          opposes: [Performance Advocate]
        - {name: Cost, priorities: [price], tradeOffs: Slower answers}
    """
    spec = debate_message(config.loads(text, "debate.yaml", Path()).debate)
    assert spec.moderated == ModeratedSettings(
        max_rounds=4,
        perspectives=3,
        checkpoints=False,
        token_budget_per_round=500,
        custom_perspectives=[
            Perspective(
                name="Compliance First",
                priorities=["audit trails", "data residency"],
                trade_offs="Will accept slower development",
                keywords=["gdpr"],
                opposes=["Performance Advocate"],
            ),
            Perspective(name="Cost", priorities=["price"], trade_offs="Slower answers"),
        ],
    )
    limits = spec.limits
    assert (limits.round.seconds, limits.checkpoint.seconds, limits.total.seconds) == (90, 60, 600)


@pytest.mark.parametrize(
    ("value", "tokens"), [("0", 0), ("unlimited", 0), ("64", 64), ("1000000", 1_000_000)]
)
def test_a_token_budget_is_a_number_or_none(value: str, tokens: int) -> None:
    entry = config.loads(f"debate: {{token_budget_per_round: {value}}}", "debate.yaml", Path()).debate
    settings = debate_message(entry, "moderated").moderated
    assert settings.HasField("token_budget_per_round")
    assert settings.token_budget_per_round == tokens


@pytest.mark.parametrize("value", ["63", "1000001", "-1", "true", "1.5", "many", "[1]"])
def test_another_token_budget_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=r"debate\.yaml:1: debate\.token_budget_per_round: must be "):
        config.loads(f"debate: {{token_budget_per_round: {value}}}", "debate.yaml", Path())


def test_the_moderated_format_leaves_unsaid_what_the_file_does_not_say() -> None:
    assert (
        debate_message(config.loads("debate: {rounds: 2}", "debate.yaml", Path()).debate, "moderated")
        == DebateSpec()
    )


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("spec.environment.team", "debate.environment.team"),
        ("spec.moderated.custom_perspectives", "debate.custom_perspectives"),
        ("spec.moderated.custom_perspectives[1].opposes[0]", "debate.custom_perspectives[1].opposes[0]"),
        ("spec.arena.topologies[0].topology", "debate.arena.topologies[0].topology"),
        ("spec.arena.topologies[1].topology.hub_agent_id", "debate.arena.topologies[1].hub"),
        ("spec.arena.team.duties[0].agent_id", "debate.arena.duties[0].agent_id"),
        ("spec.concurrency.refinements", "debate.max_concurrent_revisions"),
        ("spec.clarifications", "debate.interactive_clarifications"),
        ("spec.agents[0].role", None),
    ],
)
def test_an_element_of_a_list_comes_from_the_element_in_the_file(field: str, key: str | None) -> None:
    assert keys_of_field(field)[:1] == ((key,) if key else ())


@pytest.mark.parametrize(("value", "is_on"), [("true", True), ("false", False), ("{}", True)])
def test_the_trickster_can_be_switched_on_alone(value: str, is_on: bool) -> None:
    text = f"debate: {{arena: {{trickster: {value}}}}}"
    spec = debate_message(config.loads(text, "debate.yaml", Path()).debate, "arena")
    assert spec.arena.HasField("trickster") is is_on
    assert spec.arena.trickster == TricksterSettings()
