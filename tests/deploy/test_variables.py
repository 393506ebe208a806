"""Every variable of the chart is one that a service reads, and every one that it reads can be set."""

import re
from typing import Any

import pytest
from opentelemetry.sdk import environment_variables

from tests.deploy.chart import CHART, EXAMPLES, SETTINGS, example, render, values_of
from tests.deploy.values_schema import FROM_VALUES, OF_CALLERS, secrets_of, settings_schema, variable

_OF_THE_POD = {"POD_NAME"}
"""What other variables of the same container are made of."""
_STANDARD = {value for name, value in vars(environment_variables).items() if name.startswith("OTEL_")}
_OF_THE_CHART = {"OTEL_LOGS_EXPORTER"}
"""A standard variable that the SDK leaves to whoever configures it, here `runtime/telemetry.py`."""


def read_by(service: str) -> set[str]:
    return {variable(service, name) for name in SETTINGS[service].model_fields}


@pytest.mark.parametrize("service", SETTINGS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_variable_of_a_pod_is_one_that_its_service_reads(name: str, service: str) -> None:
    given = example(name).variables(service).keys() - _OF_THE_POD
    assert {each for each in given if each.startswith("OTEL_")} <= _STANDARD | _OF_THE_CHART
    assert {each for each in given if not each.startswith("OTEL_")} <= read_by(service)


@pytest.mark.parametrize("service", SETTINGS)
def test_a_variable_that_a_service_reads_can_be_set(service: str) -> None:
    fields = set(SETTINGS[service].model_fields) - (OF_CALLERS if service != "orchestrator" else set())
    assert fields == (
        set(settings_schema(service)["properties"]) | secrets_of(service) | (fields & FROM_VALUES)
    )
    given = {each for name in EXAMPLES for each in example(name).variables(service)}
    assert {variable(service, each) for each in fields & FROM_VALUES} - given - _optional() == set()


def _optional() -> set[str]:
    """What is made of values that no example has."""
    values: dict[str, Any] = values_of("production")
    values["gateway"]["prices"] = "{}"
    values["receipts"]["revoked"] = ["A" * 43]
    values["encryption"]["command"] = "kms-wrap"
    rendered = render(values)
    return {each for service in SETTINGS for each in rendered.variables(service)}


@pytest.mark.parametrize("service", SETTINGS)
def test_a_setting_of_a_value_reaches_the_service_as_it_was_written(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {
        name: _SAMPLES.get(name) or _sample(part)
        for name, part in settings_schema(service)["properties"].items()
        if name not in _PAIRED
    }
    values: dict[str, Any] = values_of("dev")
    values["services"] = {service: {"settings": wanted}}
    values["networkPolicy"] = {"enabled": False}  # it would have to let out what the samples name
    for name, value in render(values).variables(service).items():
        monkeypatch.setenv(name, value)
    read = SETTINGS[service]().model_dump(mode="json")
    assert {name: read[name] for name in wanted} == wanted


_PAIRED = {
    "agreement_encoder",
    "agreement_encoder_sha256",
    "agreement_tokenizer",
    "agreement_head",
    "support_head",
    "edge_oidc_issuer",
    "jwt_issuer",
    "mtls_rules",
}
"""Settings that need others: files which belong together, and those of ways in, which `access.clients` names."""
_SAMPLES = {
    "hook_folder": "/tmp",
    "hook_hosts": "10.1.0.0/16,hooks.example.org",
    "edge_origins": "https://console.example.org",
    "edge_oidc_scopes": "openid offline_access",
    "research_search": "https://search.example.org",
    "research_feeds": "https://example.org/a,https://example.org/b",
    "research_mcp": [
        {"name": "wiki", "command": "wiki-mcp --lang en", "tool": "search", "argument": "question"}
    ],
    "research_networks": "10.1.0.0/16,fd00:1::/32",
}
"""Settings whose value has a form."""


def _sample(part: dict[str, Any]) -> Any:
    match part["type"]:
        case "array":
            return [{"subject": "uri:spiffe://cluster/*", "tenant": "research", "roles": ["read"]}]
        case "boolean":
            return True
        case "integer":
            return int(part.get("maximum", 1000000))
        case "number":
            return float(part.get("maximum", 12.5))
        case _:
            return _text(part)


def _text(part: dict[str, Any]) -> str:
    if "enum" in part:
        return str(part["enum"][-1])
    tried = ("text: x", "https://models.svc:8000/v1", "11434,1234", "RS256,ES256", "acme=30,beta=0")
    return next(each for each in tried if re.search(part.get("pattern", ""), each))


def test_secrets_are_told_of_and_are_in_no_config_map() -> None:
    readme = (CHART / "README.md").read_text()
    for service in SETTINGS:
        for name in secrets_of(service):
            assert f"`{variable(service, name)}`" in readme
            assert all(
                variable(service, name) not in each["data"] for each in example("production").of("ConfigMap")
            )
