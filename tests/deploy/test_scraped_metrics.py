"""Metrics that a Prometheus fetches from pods: who may, where, and how its operator finds them."""

import copy
import re
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

from tests.deploy.chart import SETTINGS, Rendered, example, render, values_of
from tests.support.guides import find_blocks

CLIENTS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
MONITOR = {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}}


def with_metrics(name: str = "minimal", **metrics: Any) -> dict[str, Any]:
    values = copy.deepcopy(values_of(name))
    values["metrics"] = {"enabled": True, **metrics}
    values.setdefault("networkPolicy", {})["metricsClients"] = CLIENTS
    return values


def container(rendered: Rendered, service: str) -> Any:
    return rendered.one("Deployment", f"parley-{service}")["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("service", SETTINGS)
def test_a_pod_opens_no_port_for_metrics_unless_that_is_asked_for(service: str) -> None:
    for name in ("minimal", "production"):
        rendered = example(name)
        protocol = "http" if service == "edge" else "grpc"
        assert {each["name"] for each in container(rendered, service)["ports"]} == {protocol, "health"}
        assert not {each for each in rendered.variables(service) if "PROMETHEUS" in each}
        assert "OTEL_METRICS_EXPORTER" not in rendered.variables(service)
        assert rendered.of("ServiceMonitor") == ()


@pytest.mark.parametrize("service", SETTINGS)
def test_a_service_serves_metrics_at_the_port_that_its_pod_and_its_service_name(service: str) -> None:
    rendered = render(with_metrics(port=9500))
    given = rendered.variables(service)
    assert given["OTEL_METRICS_EXPORTER"] == "prometheus"
    assert given["OTEL_EXPORTER_PROMETHEUS_HOST"] == given["PARLEY_HOST"]
    assert given["OTEL_EXPORTER_PROMETHEUS_PORT"] == "9500"
    assert "service.instance.id=$(POD_NAME)" in given["OTEL_RESOURCE_ATTRIBUTES"]
    ports = {each["name"]: each["containerPort"] for each in container(rendered, service)["ports"]}
    assert ports["metrics"] == 9500
    served = rendered.one("Service", f"parley-{service}")["spec"]["ports"]
    (port,) = (each for each in served if each["name"] == "metrics")
    assert (port["port"], port["targetPort"]) == (9500, "metrics")


def test_metrics_still_go_to_the_collector_where_one_is_named() -> None:
    assert (
        render(with_metrics("production")).variables("memory")["OTEL_METRICS_EXPORTER"] == "otlp,prometheus"
    )


@pytest.mark.parametrize("service", SETTINGS)
def test_those_who_may_fetch_metrics_reach_that_port_of_a_pod_and_no_other(service: str) -> None:
    rules = render(with_metrics()).one("NetworkPolicy", f"parley-{service}")["spec"]["ingress"]
    reached = [rule["ports"] for rule in rules if rule["from"] == CLIENTS]
    assert reached == [[{"port": 9464, "protocol": "TCP"}]]
    open_to_others = [port["port"] for rule in rules if rule["from"] != CLIENTS for port in rule["ports"]]
    assert 9464 not in open_to_others


def test_the_operator_finds_each_pod_once() -> None:
    rendered = render(with_metrics(serviceMonitor=MONITOR))
    (monitor,) = rendered.of("ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    spec = monitor["spec"]
    assert spec["namespaceSelector"] == {"matchNames": ["debates"]}
    (endpoint,) = spec["endpoints"]
    assert endpoint == {"port": "metrics", "path": "/metrics", "interval": "15s"}
    found = [
        each["spec"]["selector"]["app.kubernetes.io/component"]
        for each in rendered.of("Service")
        if spec["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
        and endpoint["port"] in {port["name"] for port in each["spec"]["ports"]}
    ]
    assert sorted(found) == sorted(SETTINGS)


def test_kubernetes_takes_the_objects() -> None:
    for each in render(with_metrics("production", serviceMonitor=MONITOR)).objects:
        if each["kind"] in {"Service", "Deployment", "NetworkPolicy", "ConfigMap"}:
            kubernetes_validate.validate(each, "1.37", strict=True)


def test_the_dashboard_the_alerts_and_scaling_by_debates_need_no_collector_then() -> None:
    values = with_metrics("production")
    del values["telemetry"]
    rendered = render(values)
    assert rendered.of("PrometheusRule")
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" not in rendered.variables("orchestrator")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"metrics": {"serviceMonitor": {"enabled": True}}},
            "metrics.serviceMonitor.enabled is true, but metrics.enabled is false",
        ),
        (
            {"metrics": {"enabled": True}},
            "metrics.enabled is true, but networkPolicy.metricsClients is empty",
        ),
        (with_metrics(port=7499), "metrics.port is 7499"),
        (with_metrics(port=7403), "metrics.port is 7403"),
        (with_metrics(port=80), "port"),
        (with_metrics(serviceMonitor={"interval": "soon"}), "interval"),
    ],
)
def test_what_contradicts_itself_is_refused_by_its_name(values: dict[str, Any], told: str) -> None:
    with pytest.raises(helm_python.HelmError, match=re.escape(told)):
        render(values_of("minimal") | values)


def test_the_values_of_the_guide_let_the_operator_in() -> None:
    (block,) = (each for each in find_blocks("docs/guides/install.md") if "serviceMonitor" in each.text)
    rendered = render(values_of("minimal") | yaml.safe_load(block.text))
    assert rendered.of("ServiceMonitor")


def test_no_client_of_metrics_need_be_named_where_networks_are_open() -> None:
    values = with_metrics()
    values["networkPolicy"] = {"enabled": False}
    assert render(values).variables("memory")["OTEL_METRICS_EXPORTER"] == "prometheus"
