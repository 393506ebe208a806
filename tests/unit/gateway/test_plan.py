"""Who answers, from what the environment and the file say."""

from pathlib import Path
from typing import Any

import pytest

from parley.config import loading as config
from parley.config.default import DEFAULT
from parley.gateway.plan import Plan, plan, roster
from parley.gateway.routing.route import DefaultRoute
from parley.gateway.settings import GatewaySettings
from parley.gateway.wire.api import Api
from parley.runtime.errors import ConfigurationError


def plan_text(text: str = "", environment: dict[str, str] | None = None, **values: Any) -> Plan:
    given = {
        "openai_api_key": None,
        "openai_base_url": None,
        "openrouter_api_key": None,
        "model": None,
        **values,
    }
    return plan(GatewaySettings(**given), config.loads(text, "agents.yaml", Path()), environment or {})


def test_nothing_set_leaves_no_provider() -> None:
    assert plan_text().providers == ()


def test_a_key_alone_means_openai_itself_with_a_small_current_model() -> None:
    found = plan_text(openai_api_key="k")
    assert [provider.base_url for provider in found.providers] == ["https://api.openai.com/v1"]
    assert found.providers[0].api is Api.RESPONSES
    assert found.defaults == (DefaultRoute("openai", "gpt-5-mini"),)


def test_a_base_url_alone_needs_no_key_and_takes_the_first_model_listed() -> None:
    found = plan_text(openai_base_url="http://localhost:8000/v1")
    assert found.providers[0].api_key is None
    assert found.providers[0].api is None
    assert found.defaults == (DefaultRoute("openai", None),)


@pytest.mark.parametrize(
    ("line", "api"),
    [
        ("kind: openai", Api.RESPONSES),
        ("kind: openai, api: auto", Api.RESPONSES),
        ("kind: openai, api: chat", Api.CHAT),
        ('base_url: "https://eu.api.openai.com/v1"', Api.RESPONSES),
        ('base_url: "https://api.openai.com.example/v1"', None),
        ('base_url: "https://notapi.openai.com/v1"', None),
        ("kind: openrouter", None),
        ('base_url: "http://localhost:1/v1"', None),
        ('base_url: "http://localhost:1/v1", api: responses', Api.RESPONSES),
    ],
)
def test_openais_own_hosts_are_asked_by_responses_and_a_fixed_api_is_kept_to(
    line: str, api: Api | None
) -> None:
    found = plan_text(f"providers:\n  - {{name: mine, {line}, api_key_env: MY_KEY}}\n", {"MY_KEY": "k"})
    assert (found.providers[0].api, found.providers[0].first_api) == (api, Api.CHAT)


def test_openrouter_stands_behind_openai() -> None:
    found = plan_text(openai_api_key="k", openrouter_api_key="r")
    assert found.defaults == (
        DefaultRoute("openai", "gpt-5-mini"),
        DefaultRoute("openrouter", "openai/gpt-5-mini"),
    )
    assert found.open_providers == ("openai", "openrouter")


@pytest.mark.parametrize(
    ("model", "default"),
    [
        ("m", DefaultRoute("openai", "m")),
        ("openai/m", "openai/m"),
        ("openrouter/a/b", "openrouter/a/b"),
        ("vendor/m", DefaultRoute("openai", "vendor/m")),
    ],
)
def test_a_named_model_may_name_its_provider(model: str, default: str | DefaultRoute) -> None:
    assert plan_text(openai_api_key="k", openrouter_api_key="r", model=model).defaults == (default,)


def test_a_key_that_the_file_needs_is_missed_with_file_line_and_name() -> None:
    text = "agents:\n  - role: architect\n    model: gpt-x\n"
    with pytest.raises(ConfigurationError, match=r"agents\.yaml:3: .*OPENAI_API_KEY"):
        plan_text(text)


def test_routes_of_the_file_carry_what_is_known_of_them_and_are_the_defaults() -> None:
    text = """
providers:
  - {name: mine, base_url: "http://localhost:1/v1", api_key_env: MY_KEY}
  - {name: keyless, base_url: "http://localhost:2/v1"}
routes:
  - {provider: mine, model: m, context_tokens: 4096, input_price: 0.5, output_price: 2}
  - {provider: keyless, model: n, name: fast, stronger: true}
"""
    found = plan_text(text, {"MY_KEY": "s3cret"})
    assert found.defaults == ("mine/m", "fast")
    assert found.routes[0].context_tokens == 4096
    assert (found.routes[0].input_price, found.routes[1].input_price) == (0.5, None)
    assert [route.stronger for route in found.routes] == [False, True]
    assert found.open_providers == ("mine", "keyless")
    assert "s3cret" not in repr(found)
    assert plan_text(text).open_providers == ("keyless",)


def test_a_provider_without_a_key_is_never_given_another_ones() -> None:
    text = 'providers:\n  - {name: mine, base_url: "http://localhost:1/v1"}\n'
    found = plan_text(text, openai_api_key="k")
    assert {provider.name: provider.api_key is None for provider in found.providers} == {
        "mine": True,
        "openai": False,
    }


def test_without_a_file_there_is_an_agent_for_every_role_and_a_judge() -> None:
    found = roster(DEFAULT)
    assert found.default_team == ("architect", "performance")
    assert found.default_judge == "judge"
    assert list(found.agents) == sorted(found.agents)
    assert {agent.role for agent in found.agents.values()} == {
        "architect",
        "performance",
        "security",
        "testing",
        "simplicity",
        "data-modeling",
        "generalist",
    }


def test_a_file_with_agents_has_those_and_no_others() -> None:
    text = "agents:\n  - {role: security, id: sue, name: Sue, routes: [openai/m], temperature: 0.3}\n"
    found = roster(config.loads(text, "agents.yaml", Path()))
    assert list(found.agents) == ["judge", "sue"]
    sue = found.agents["sue"]
    assert (sue.name, sue.role, list(sue.routes), sue.temperature) == ("Sue", "security", ["openai/m"], 0.3)


@pytest.mark.parametrize("key", ["sk-0123\n", "sk-“0123”"])
def test_a_key_that_cannot_be_sent_stops_the_start_and_is_not_repeated(key: str) -> None:
    with pytest.raises(
        ConfigurationError, match="OPENAI_API_KEY: holds characters that no key has"
    ) as caught:
        plan_text(openai_api_key=key)
    assert "0123" not in str(caught.value)


def test_a_base_url_that_cannot_be_asked_stops_the_start_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://[::1/v1")
    with pytest.raises(ConfigurationError, match="OPENAI_BASE_URL: is not an address"):
        GatewaySettings.load()
