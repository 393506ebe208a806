"""Which key goes where, and which models may be asked for."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from parley.config import loading as config
from parley.config.errors import ConfigError
from parley.gateway.plan import Plan, plan
from parley.gateway.routing.route import DefaultRoute
from parley.gateway.settings import GatewaySettings
from parley.runtime.errors import ConfigurationError

KEYS = dict.fromkeys(("OPENAI_API_KEY", "OPENROUTER_API_KEY", "AZURE_OPENAI_API_KEY"), "a-key-0123456789")


def plan_text(text: str, folder: Path = Path(), model: str | None = None) -> Plan:
    settings = GatewaySettings(
        openai_api_key=SecretStr(KEYS["OPENAI_API_KEY"]),
        openai_base_url=None,
        openrouter_api_key=SecretStr(KEYS["OPENROUTER_API_KEY"]),
        model=model,
    )
    return plan(settings, config.loads(text, "agents.yaml", folder), {**KEYS, "MINE": "k-1"})


@pytest.mark.parametrize(
    "entry",
    [
        "kind: openai, base_url: 'https://thief.example/v1', api_key_env: OPENAI_API_KEY",
        "base_url: 'https://thief.example/v1', api_key_env: OPENROUTER_API_KEY",
        "kind: azure-openai, base_url: 'https://thief.example/v1'",
        "base_url: 'http://api.openai.com/v1', api_key_env: OPENAI_API_KEY",
        "base_url: 'https://api.openai.com.thief.example/v1', api_key_env: OPENAI_API_KEY",
        "base_url: 'https://notapi.openai.com/v1', api_key_env: OPENAI_API_KEY",
        "base_url: 'https://openrouter.ai/api/v1', api_key_env: OPENAI_API_KEY",
        "kind: azure-openai, base_url: 'https://thief.eastus.cloudapp.azure.com/v1'",
    ],
)
def test_a_key_that_other_programs_use_too_is_sent_to_its_own_hosts_alone(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"agents\.yaml:1: .* is sent to .* alone, by https; put this"):
        plan_text(f"providers: [{{name: p, {entry}}}]\n")


@pytest.mark.parametrize(
    "entry",
    [
        "base_url: 'https://eu.api.openai.com/v1', api_key_env: OPENAI_API_KEY",
        "base_url: 'https://OPENROUTER.ai/api/v1', api_key_env: OPENROUTER_API_KEY",
        "kind: azure-openai, base_url: 'https://house.openai.azure.com/openai/v1'",
        "base_url: 'http://127.0.0.1:1/v1', api_key_env: MINE",
    ],
)
def test_its_own_hosts_get_it(entry: str) -> None:
    assert plan_text(f"providers: [{{name: p, {entry}}}]\n").providers[0].api_key is not None


HOUSE = "providers: [{name: p, base_url: 'http://127.0.0.1:1/v1', models: [small, vendor/large]}]\n"


def test_a_provider_with_a_list_of_models_serves_these_alone_and_the_first_by_default() -> None:
    found = plan_text(HOUSE)
    assert [route.name for route in found.routes] == ["p/small", "p/vendor/large"]
    assert "p" not in found.open_providers
    assert found.defaults[0] == DefaultRoute("p", "small")
    assert plan_text(HOUSE, model="vendor/large").defaults == (DefaultRoute("p", "vendor/large"),)


@pytest.mark.parametrize(
    "text",
    [
        HOUSE + "agents: [{role: architect, provider: p, model: huge}]\n",
        HOUSE + "agents: [{role: architect, routes: [p/huge]}]\n",
        HOUSE + "routes: [{provider: p, model: huge}]\n",
    ],
)
def test_a_file_that_asks_for_another_model_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"agents\.yaml:2: .* these models alone: small, vendor/large"):
        plan_text(text)


@pytest.mark.parametrize("model", ["huge", "p/huge"])
def test_so_is_a_setting(model: str) -> None:
    with pytest.raises(ConfigurationError, match="PARLEY_MODEL: p may be asked for these models alone"):
        plan_text(HOUSE, model=model)


FILE = "providers: [{name: p, base_url: 'https://h/v1', api_key_file: secrets/key}]\n"


def test_a_key_may_stand_in_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/key").write_text("house-key-1\n")
    key = plan_text(FILE, tmp_path).providers[0].api_key
    assert key is not None
    assert key.get_secret_value() == "house-key-1"


@pytest.mark.parametrize(
    ("held", "told"),
    [
        (None, "is no file"),
        (b"\n", "holds no key"),
        (b"k" * 20_000, "is too long"),
        (b"k\xff", "no key has"),
        (b"a\nb", "no key has"),
    ],
)
def test_a_file_that_holds_no_key_is_refused_without_its_words(
    held: bytes | None, told: str, tmp_path: Path
) -> None:
    if held is not None:
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets/key").write_bytes(held)
    with pytest.raises(ConfigurationError, match=told):
        plan_text(FILE, tmp_path)
