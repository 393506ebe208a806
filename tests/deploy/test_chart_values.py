"""Values of the chart that are wrong, or do not fit together, are refused by their names."""

import re
from typing import Any

import helm_python
import pytest

from tests.deploy.changed_values import change_value
from tests.deploy.chart import (
    render,
    values_of,
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("store.existingSecret", ""),
        ("mongodb.enabled", True),
        ("vectors.url", ""),
        ("qdrant.enabled", True),
        ("telemetry.endpoint", ""),
        ("services.orchestrator.autoscaling.minReplicas", 50),
        ("services.gateway.autoscaling.debates", 3),
        ("services.gateway.resources", {"limits": {"memory": ""}}),
        ("services.gateway.resources", {"requests": {"cpu": ""}}),
        ("image.tag", "latest"),
        ("image.pullPolicy", "Sometimes"),
        ("vectors.url", "qdrant:6334"),
        ("services.orchestrator.settings.max_debates", 0),
        ("services.orchestrator.settings.max_debate", 10),
        ("services.convergence.digest", "sha256:12"),
        ("defaults.preStopSeconds", 0),
        ("mongodb.image", "mongo"),
        ("telemetry.protocol", "http"),
        ("access.open", True),
        ("access.clients", []),
        ("access.clients", ["password"]),
        ("access.clients", ["mtls"]),
        ("access.serviceSecret.existingSecret", ""),
        ("services.orchestrator.settings.jwt_issuer", ""),
        ("tls.enabled", False),
        ("tls.inTheClear", True),
        ("tls.issuerRef.name", ""),
        ("trial.enabled", True),
        ("replicas", 3),
        ("networkPolicy.storePorts", []),
        ("networkPolicy.telemetryPorts", []),
        ("networkPolicy.telemetryPorts", [4318]),
        ("networkPolicy.orchestratorEgress", []),
        ("encryption.existingSecret", ""),
        ("encryption.keys", []),
        ("encryption.keys", ["command"]),
        ("encryption.keys", ["2026-11", "command"]),
        ("receipts.existingSecret", ""),
        ("receipts.keys", []),
        ("receipts", {"revoked": ["A" * 43]}),
        ("services.orchestrator.settings.mtls_rules", [{"subject": "cn:a", "roles": ["read"]}]),
        ("services.memory.settings", {"mtls_rules": []}),
        ("services.orchestrator.settings.jwt_keys_url", "https://login.example.org:8443/keys"),
        ("services.orchestrator.settings.research_search", "http://searxng.search.svc:8080"),
        ("services.orchestrator.settings.research_feeds", "https://a.example.org/feed,http://b.example.org/"),
        ("networkPolicy.providers", []),
        ("vectors.url", "https://qdrant.databases.svc:7000"),
        ("vectors.url", "https://qdrant.databases.svc"),
        ("vectors.url", "http://qdrant.databases.svc:6334"),
        ("vectors.existingSecret", "Parley_Vectors"),
        ("services.gateway.settings.openai_base_url", "http://vllm.models.svc:8000/v1"),
        ("services.convergence.settings.embedding_base_url", "https://embeddings.example.org/v1"),
        ("services.orchestrator.settings.max_debates", 16),
        ("tls.duration", "720h"),
        ("tls.renewBefore", "2160h"),
        ("services.gateway.settings.openai_base_url", "http://vllm:443/v1"),
        ("gateway.agents", "providers: [{name: vllm, base_url: 'http://vllm.models.svc:8000/v1'}]"),
        ("gateway.agents", "providers: [{name: house, base_url: 'https://models.example.org:8443/v1'}]"),
        ("gateway.agents", "providers: [{name: house]"),
        ("proxy.url", "http://proxy.example.org:3128"),
        ("image.registry", ""),
        ("service.type", "LoadBalancer"),
        ("route.parentRefs", []),
        ("services.memory.serviceAccount", {"create": False}),
        ("listen", "127.0.0.1"),
        ("podUser", 0),
        ("defaults.extraEnv", [{"value": "x"}]),
        ("fullnameOverride", "parley.prod"),
        ("nameOverride", "1parley"),
        ("defaults.podLabels", {"app.kubernetes.io/name": "other"}),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(path: str, value: Any) -> None:
    values = change_value(path, value)
    values.setdefault("route", {}).setdefault("enabled", path.startswith("route."))
    with pytest.raises(helm_python.HelmError) as refused:
        render(values)
    named = path.rpartition(".")[2] if not isinstance(value, dict) else next(iter(value))
    assert named in str(refused.value)


def test_debates_scale_nothing_where_no_metric_arrives() -> None:
    values = change_value("services.orchestrator.autoscaling", {"enabled": True, "debates": 10}, "minimal")
    with pytest.raises(helm_python.HelmError, match=re.escape("telemetry.endpoint is empty")):
        render(values)


def test_a_trial_without_a_certificate_is_refused_where_callers_need_one() -> None:
    rules = [{"subject": "uri:spiffe://a/*", "tenant": "a", "roles": ["debate"]}]
    values = change_value("services.orchestrator.settings.mtls_rules", rules, "minimal")
    values["access"]["clients"] = ["key", "mtls"]
    values["trial"] = {"enabled": True, "existingSecret": "key"}
    with pytest.raises(
        helm_python.HelmError, match=re.escape("trial.enabled is true, but access.clients has mtls")
    ):
        render(values)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("services.gateway.settings.openai_base_url", "https://models.example.org/v1"),
        ("vectors", {"url": "http://qdrant.databases.svc:6334"}),
        ("networkPolicy.enabled", False),
        ("image", {"pullPolicy": "Never"}),
        ("gateway.agents", "providers: [{name: house, base_url: 'https://models.example.org/v1'}]"),
        ("proxy.url", "http://proxy.example.org:443"),
        ("tls.renewBefore", "2159h59m59s"),
        ("defaults.podLabels", {"team": "platform"}),
    ],
)
def test_what_fits_together_is_taken(path: str, value: Any) -> None:
    assert render(change_value(path, value)).objects


def test_no_store_and_no_provider_are_refused_with_what_to_do() -> None:
    for gone, told in (
        ("store", "store.existingSecret is empty: name a Secret"),
        ("services", "services.gateway.existingSecret is empty: name a Secret"),
    ):
        values = {name: part for name, part in values_of("minimal").items() if name != gone}
        with pytest.raises(helm_python.HelmError, match=re.escape(told)):
            render(values)
