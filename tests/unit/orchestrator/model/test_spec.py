"""What a specification says once its defaults are filled in."""

from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration

from parley.orchestrator.model.spec import (
    DEFAULT_LIMITS,
    Price,
    dearest,
    format_settings,
    price_of,
    resolve_agent,
    with_default_limits,
    without_sections,
)
from parley.orchestrator.model.times import duration
from parley.runtime.contract_settings import with_defaults
from parley.v1.agent_pb2 import TOOL_FILE_READ, Agent, OwnRole, SummarySettings
from parley.v1.debate_pb2 import Clarifications, DebateLimits, DebateSpec


def test_a_number_that_names_no_tool_is_passed_over() -> None:
    numbers: list[Any] = [TOOL_FILE_READ, 0, 77]
    assert resolve_agent(Agent(id="ada", tools=numbers)).tools == [TOOL_FILE_READ]


def test_an_agent_without_a_name_is_called_by_its_id() -> None:
    assert resolve_agent(Agent(id="ada", role="architect")) == Agent(id="ada", name="ada", role="architect")


def test_an_agent_that_was_given_is_not_changed() -> None:
    given = Agent(id="ada", own_role=OwnRole(sections={"system": "Be bold."}, source="a.md"))
    bare = without_sections(resolve_agent(given))
    assert (given.name, dict(given.own_role.sections)) == ("", {"system": "Be bold."})
    assert bare.own_role == OwnRole(source="a.md")


def test_a_temperature_of_zero_is_not_an_unset_one() -> None:
    assert resolve_agent(Agent(id="ada", temperature=0)).HasField("temperature")
    assert not resolve_agent(Agent(id="ada")).HasField("temperature")


def test_summaries_are_made_unless_they_are_switched_off() -> None:
    assert with_defaults(SummarySettings()) == SummarySettings(enabled=True)
    assert resolve_agent(Agent(summaries=SummarySettings(threshold=9))).summaries.enabled
    assert not with_defaults(SummarySettings(enabled=False)).enabled
    assert not resolve_agent(Agent(summaries=SummarySettings(enabled=False))).summaries.enabled


def test_unset_settings_are_the_defaults_of_the_contract() -> None:
    limits = with_default_limits(DebateLimits(), DEFAULT_LIMITS)
    times = (limits.call, limits.round, limits.checkpoint, limits.waiting)
    assert [each.ToSeconds() for each in times] == [90, 300, 1800, 600]
    assert (limits.HasField("total"), limits.max_tokens, limits.max_cost_micros) == (False, 0, 0)
    assert format_settings(DebateSpec()) is None


def test_limits_that_are_not_said_are_those_of_the_format_and_a_wait_of_nothing_is_said() -> None:
    said = DebateLimits(max_tokens=7, waiting=Duration())
    said.call.FromTimedelta(timedelta(seconds=1.5))
    default = DebateLimits(
        call=duration(0.25), round=duration(12), waiting=duration(9), max_tokens=5, max_cost_micros=9
    )
    limits = with_default_limits(said, default)
    assert limits == DebateLimits(
        call=duration(1.5), round=duration(12), waiting=Duration(), max_tokens=7, max_cost_micros=9
    )
    assert limits.HasField("waiting")


def test_how_much_agents_may_ask_is_filled_in_number_by_number() -> None:
    assert with_defaults(Clarifications(max_times=1)) == Clarifications(max_per_agent=5, max_times=1)


def test_the_dearest_price_is_the_highest_of_each_kind_that_is_known() -> None:
    free = Agent(input_price_micros=0, output_price_micros=0)
    assert price_of(free) == Price(0, 0)
    assert price_of(Agent()) is None
    assert dearest([Price(5, 10), None, Price(7, 2)]) == Price(7, 10)
    assert dearest([None]) is None
